"""Contingency tables of two labellings, from which all external indices are computed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse

from coterie import machine
from coterie.core.arguments import not_negative
from coterie.core.arrays import Array
from coterie.data.memory import as_weights
from coterie.errors import InputError, ParameterError
from coterie.metrics.labels import Labels, as_labels


@dataclass(frozen=True)
class Contingency:
    """The nonzero cells of a table of classes (rows) and clusters (columns), and the sums of its rows and columns."""

    row: Array  # (cells,) class of each cell
    column: Array  # (cells,) cluster of each cell
    cells: Array  # (cells,) counts, or weights
    rows: Array  # (classes,) sums of the rows
    columns: Array  # (clusters,) sums of the columns

    @property
    def total(self) -> Any:
        return self.rows.sum()

    @property
    def identical(self) -> bool:
        """Whether the two labellings are the same partition."""
        return len(self.cells) == np.count_nonzero(self.rows) == np.count_nonzero(self.columns)


def labels_of_both(labels_true: Any, labels_pred: Any) -> tuple[Labels, Labels]:
    true, pred = as_labels(labels_true, "labels_true"), as_labels(labels_pred, "labels_pred")
    if len(true.codes) != len(pred.codes):
        raise InputError(
            f"labels_true has {len(true.codes)} entries and labels_pred has {len(pred.codes)}: "
            "both must label the same rows"
        )
    return true, pred


def contingency_table(
    labels_true: Any, labels_pred: Any, sample_weight: Any = None, *, whole: bool = False
) -> Contingency:
    """The contingency table of two labellings; if `whole`, weights must be integers, and the cells are int64."""
    true, pred = labels_of_both(labels_true, labels_pred)
    w = as_weights(sample_weight, len(true.codes))
    if whole and w is not None:
        _check_integers(w)
    row, column, cells = _nonzero_cells(true, pred, w)
    if whole or w is None:
        cells = cells.astype(np.int64)
    rows, columns = np.zeros(true.k, cells.dtype), np.zeros(pred.k, cells.dtype)
    np.add.at(rows, row, cells)
    np.add.at(columns, column, cells)
    return Contingency(row, column, cells, rows, columns)


def contingency_matrix(
    labels_true: Any,
    labels_pred: Any,
    *,
    eps: float | None = None,
    sparse: bool = False,
    dtype: Any = np.int64,
    sample_weight: Any = None,
) -> Any:
    """Count the rows of each class in each cluster.

    Parameters
    ----------
    labels_true, labels_pred : array (n,)
        Classes and clusters of the same rows: integers, strings or other hashable values.
    eps : float or None, default=None
        Number added to every cell, so that none is 0. The result is then of type float64, and cannot be sparse.
    sparse : bool, default=False
        Return a sparse CSR matrix, for many different labels.
    dtype : type, default=numpy.int64
        Type of the result, ignored if `eps` or `sample_weight` is given.
    sample_weight : array (n,), optional
        Sample weights. The result is then of type float64, the sum of the weights in each cell.

    Returns
    -------
    array or sparse CSR matrix (classes, clusters)
        Rows and columns are in the order of the sorted labels.

    Examples
    --------
    >>> from coterie.metrics import contingency_matrix
    >>> contingency_matrix(["a", "a", "b", "b"], [1, 0, 1, 1])
    array([[1, 1],
           [0, 2]])
    """
    if sparse and eps is not None:
        raise ParameterError(f"eps must be None with sparse=True, because no cell would be 0; got eps={eps!r}")
    table = contingency_table(labels_true, labels_pred, sample_weight)
    shape = len(table.rows), len(table.columns)
    cells = table.cells.astype(dtype) if sample_weight is None else table.cells
    matrix = scipy_sparse.csr_matrix((cells, (table.row, table.column)), shape)
    if sparse:
        return matrix
    machine.check_memory(shape[0] * shape[1] * 8, f"a table of {shape[0]} x {shape[1]} labels", "pass sparse=True")
    return matrix.toarray() if eps is None else matrix.toarray() + not_negative("eps", eps)


def table_of_matrix(matrix: Any) -> Contingency:
    """The contingency table with these counts, an array or sparse matrix (classes, clusters)."""
    cells = scipy_sparse.coo_array(matrix)
    if cells.ndim != 2 or not (cells.data >= 0).all() or not cells.data.any():
        raise InputError("contingency must be a matrix (classes, clusters) of counts: at least 0, and not all 0")
    cells.eliminate_zeros()
    return Contingency(cells.row, cells.col, cells.data, cells.sum(axis=1), cells.sum(axis=0))


def _nonzero_cells(true: Labels, pred: Labels, w: Array | None) -> tuple[Array, Array, Array]:
    """Rows, columns and values of the nonzero cells."""
    position = true.codes * pred.k + pred.codes
    if true.k * pred.k <= 4 * len(position) + 64:
        cells = np.arange(true.k * pred.k)
    else:
        cells, position = np.unique(position, return_inverse=True)
    sums = np.bincount(position.ravel(), w, len(cells))
    nonzero = np.flatnonzero(sums)
    return cells[nonzero] // pred.k, cells[nonzero] % pred.k, sums[nonzero]


def _check_integers(w: Array) -> None:
    invalid = np.flatnonzero(w != np.floor(w))
    if len(invalid):
        raise InputError(
            "sample_weight must be integers for this index, which counts pairs of rows; "
            f"row {invalid[0]} has {w[invalid[0]]:g}. "
            "mutual_info_score, normalized_mutual_info_score and purity_score support any weights"
        )
