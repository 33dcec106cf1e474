"""The table that all external indices are made of: how much of each class lies in each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.errors import InputError
from coterie.data.memory import as_weights
from coterie.metrics.labels import Array, Labels, as_labels

EXACT = 1 << 31  # counts whose squares, and sums of such, int64 holds


@dataclass(frozen=True)
class Contingency:
    """Cells that are not zero, and the sums over rows (classes) and columns (clusters) of the table."""

    row: Array  # (cells,) the class of each cell
    column: Array  # (cells,) its cluster
    cells: Array  # (cells,) counts, or weights
    rows: Array  # (classes,) sums
    columns: Array  # (clusters,) sums

    @property
    def total(self) -> Any:
        return self.rows.sum()

    @property
    def identical(self) -> bool:
        """Whether the two divide the rows in the same way."""
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
    """The table of two labellings; with `whole` of counts, which weights must be, else of weights."""
    true, pred = labels_of_both(labels_true, labels_pred)
    w = as_weights(sample_weight, len(true.codes))
    if whole and w is not None:
        _check_counts(w)
    row, column, cells = _cells(true, pred, w)
    if whole or w is None:
        cells = cells.astype(np.int64)
    rows, columns = np.zeros(true.k, cells.dtype), np.zeros(pred.k, cells.dtype)
    np.add.at(rows, row, cells)
    np.add.at(columns, column, cells)
    return Contingency(row, column, cells, rows, columns)


def _cells(true: Labels, pred: Labels, w: Array | None) -> tuple[Array, Array, Array]:
    """Rows, columns and values of the cells that are not zero."""
    place = true.codes * pred.k + pred.codes
    cells = np.arange(true.k * pred.k) if true.k * pred.k <= 4 * len(place) + 64 else None
    if cells is None:
        cells, place = np.unique(place, return_inverse=True)
    sums = np.bincount(place.ravel(), w, len(cells))
    kept = np.flatnonzero(sums)
    return cells[kept] // pred.k, cells[kept] % pred.k, sums[kept]


def _check_counts(w: Array) -> None:
    odd = np.flatnonzero(w != np.floor(w))
    if len(odd):
        raise InputError(
            f"sample_weight must be whole numbers here, for pairs of rows are counted; row {odd[0]} has {w[odd[0]]:g}. "
            "Indices of shares take any weights: mutual_info_score, normalized_mutual_info_score, purity_score"
        )


def pairs(counts: Array) -> int:
    """Pairs of rows within the same cell, exactly: the sum of n (n - 1) / 2."""
    if int(counts.sum()) < EXACT:
        return (int(counts @ counts) - int(counts.sum())) // 2
    return sum(n * (n - 1) // 2 for n in map(int, counts))


def entropy(counts: Array) -> float:
    """Of shares in proportion to these counts, in nats."""
    share = counts[counts > 0] / counts.sum()
    return max(0.0, -float(share @ np.log(share)))


def mutual_information(table: Contingency) -> float:
    """Of the two labellings, in nats; from 0 to the lesser of their entropies."""
    share, rows, columns = (sums / table.total for sums in (table.cells, table.rows, table.columns))
    information = share @ np.log(share / (rows[table.row] * columns[table.column]))
    return float(np.clip(information, 0.0, min(entropy(table.rows), entropy(table.columns))))
