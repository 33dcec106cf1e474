"""Contingency tables of two labellings, from which all external indices are computed; purity and matched clusters."""

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


# Clusters matched to classes: purity, and the confusion matrix under the best one-to-one matching.


def purity_score(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    r"""Compute the share of rows that belong to the most frequent class of their cluster.

    .. math:: \frac1n \sum_k \max_j n_{jk}

    The score is above 0 and at most 1. It is the accuracy of predicting the most frequent class of each cluster.
    Several clusters can have the same class, so that the score increases with the number of clusters, up to 1 for
    clusters of one row. Do not use it to compare different numbers of clusters; `matched_confusion` uses each class
    once.

    Parameters
    ----------
    labels_true, labels_pred : array (n,)
        Classes and clusters of the same rows: integers, strings or other hashable values.
    sample_weight : array (n,), optional
        Sample weights.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n) operations.

    References
    ----------
    .. [1] Zhao & Karypis (2004), Empirical and theoretical comparisons of selected criterion functions for document
       clustering, Mach. Learn. 55.

    Examples
    --------
    >>> from coterie.metrics import purity_score
    >>> purity_score(["x", "x", "o", "o"], [0, 0, 0, 1])
    0.75
    """
    table = contingency_table(labels_true, labels_pred, sample_weight)
    largest = np.zeros(len(table.columns), table.cells.dtype)
    np.maximum.at(largest, table.column, table.cells)
    return float(min(1.0, largest.sum() / table.total))


@dataclass(frozen=True)
class MatchedConfusion:
    """A confusion matrix of classes (rows) and clusters (columns), and the matching of clusters to classes.

    Attributes
    ----------
    table : array (classes, clusters)
        Number of rows, or their weight, of each class in each cluster.
    classes : array (classes,)
        Labels of the rows of `table`.
    clusters : array (clusters,)
        Labels of the columns of `table`: matched clusters in the order of their classes, then the others.
    matching : dict
        The class of each matched cluster.
    accuracy : float
        Share of the rows whose cluster is matched to their class.
    """

    table: np.ndarray
    classes: np.ndarray
    clusters: np.ndarray
    matching: dict[Any, Any]
    accuracy: float


def matched_confusion(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> MatchedConfusion:
    r"""Compute the confusion matrix of classes and clusters under the best one-to-one matching.

    .. math:: \max_\pi \frac1n \sum_j n_{j \pi(j)}

    The accuracy is from 1 / max(K, classes) to 1. If there are more clusters than classes, some clusters have no class,
    and all their rows are counted as wrong: use `purity_score` if several clusters may represent one class.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight
        As in `purity_score`.

    Returns
    -------
    MatchedConfusion
        `table`, `classes`, `clusters`, `matching`, `accuracy`.

    Notes
    -----
    Takes O(n) operations, and at most O(K³) for the assignment problem.

    References
    ----------
    .. [1] Kuhn (1955), The Hungarian method for the assignment problem, Nav. Res. Logist. Q. 2.

    Examples
    --------
    >>> from coterie.metrics import matched_confusion
    >>> confusion = matched_confusion(["x", "x", "y", "y", "y"], [1, 1, 0, 0, 1])
    >>> confusion.table
    array([[2, 0],
           [1, 2]])
    >>> confusion.matching == {1: "x", 0: "y"}, confusion.accuracy
    (True, 0.8)
    """
    from scipy.optimize import linear_sum_assignment

    true, pred = labels_of_both(labels_true, labels_pred)
    nonzero = contingency_table(true.codes, pred.codes, sample_weight)
    machine.check_memory(true.k * pred.k * 8, f"a table of {true.k} x {pred.k} labels", "pass fewer different labels")
    table = np.zeros((true.k, pred.k), nonzero.cells.dtype)
    table[nonzero.row, nonzero.column] = nonzero.cells
    rows, columns = linear_sum_assignment(table, maximize=True)
    order = np.concatenate([columns, np.setdiff1d(np.arange(pred.k), columns)])
    matching = dict(zip(pred.names[columns].tolist(), true.names[rows].tolist(), strict=True))
    accuracy = float(min(1.0, table[rows, columns].sum() / nonzero.total))
    return MatchedConfusion(table[:, order], true.names, pred.names[order], matching, accuracy)
