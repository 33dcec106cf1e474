"""Contingency tables of two labellings, from which all external indices are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.data.memory import as_weights
from coterie.errors import InputError
from coterie.metrics.labels import Array, Labels, as_labels

EXACT = 1 << 31  # if the sum of counts is below this, sums of their squares fit into int64


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


def contingency(labels_true: Any, labels_pred: Any, sample_weight: Any = None, *, whole: bool = False) -> Contingency:
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


def pairs(counts: Array) -> int:
    """The exact number of pairs of rows in the same cell: the sum of n (n - 1) / 2."""
    if int(counts.sum()) < EXACT:
        return (int(counts @ counts) - int(counts.sum())) // 2
    return sum(n * (n - 1) // 2 for n in map(int, counts))


def entropy(counts: Array) -> float:
    """The entropy of the distribution proportional to these counts, in nats."""
    share = counts[counts > 0] / counts.sum()
    return max(0.0, -float(share @ np.log(share)))


def mutual_information(table: Contingency) -> float:
    """The mutual information of the two labellings, in nats; from 0 to the smaller of their entropies."""
    share, rows, columns = (sums / table.total for sums in (table.cells, table.rows, table.columns))
    information = share @ np.log(share / (rows[table.row] * columns[table.column]))
    return float(np.clip(information, 0.0, min(entropy(table.rows), entropy(table.columns))))
