"""The K-means cost of a threshold tree, over that of the clusters that it describes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coterie.core.arrays import Array
from coterie.data.row_sample import sample_rows
from coterie.explanation.columns import Column
from coterie.explanation.rule_search import BinnedColumn
from coterie.explanation.threshold_tree import FindCut, Rows, grow, leaves, text_lines

MAX_CLUSTERS = 50
WORK = 2e8  # rows · columns · clusters² of the sample that a tree is grown on
MIN_ROWS = 1000


def tree_of_clusters(
    sample: Sequence[Column], columns: Sequence[BinnedColumn], codes: Array, w: Array, names: Sequence[str], *,
    points: Array | None = None, find_cut: FindCut | None = None,
) -> tuple[float | None, str]:  # fmt: skip
    """The cost ratio of a threshold tree, and its text; rows in no cluster are left out.

    `points` (m, p) are the rows of the sample in the space of the cost; by default the standardised columns.
    """
    k = len(names)
    if not columns or not 2 <= k <= MAX_CLUSTERS:
        return None, ""
    members = np.flatnonzero((codes >= 0) & (w > 0))
    max_rows = max(MIN_ROWS, int(WORK / (len(columns) * k * k)))
    members = members[sample_rows(len(members), max_rows)]
    codes, w = codes[members], w[members]
    if len(np.unique(codes)) < k:
        return None, ""
    P = _standardised(sample, members, w) if points is None else _filled(points[members].astype(np.float64))
    centers = _means(P, codes, w, k)
    cost = float(w @ ((P - centers[codes]) ** 2).sum(axis=1))
    if not 0 < cost < np.inf:
        return None, ""
    distances = np.stack([((P - center) ** 2).sum(axis=1) for center in centers], axis=1) * w[:, np.newaxis]
    data = Rows(
        [_of_rows(column, members) for column in columns], _center_bins(sample, columns, members, codes, w, k),
        distances, codes,
    )  # fmt: skip
    tree = grow(data, find_cut)
    leaf = leaves(data, tree)
    leaf_cost = float(w @ ((P - _means(P, leaf, w, k)[leaf]) ** 2).sum(axis=1))
    return leaf_cost / cost, "\n".join(text_lines(data, tree, names))


def _filled(P: Array) -> Array:
    """Points in which missing values are means of their columns."""
    is_missing = np.isnan(P)
    if not is_missing.any():
        return P
    means = np.where(is_missing, 0.0, P).sum(axis=0) / np.maximum((~is_missing).sum(axis=0), 1)
    return np.where(is_missing, means, P)


def _standardised(sample: Sequence[Column], rows: Array, w: Array) -> Array:
    """Numbers with mean 0 and variance 1, missing values as means; and one-hot columns of categories (m, p)."""
    parts = []
    for column in sample:
        values = column.values[rows]
        if column.levels is not None:
            parts.append((values[:, np.newaxis] == np.arange(len(column.levels))).astype(np.float64))
            continue
        present = np.isfinite(values)
        if not (w[present] > 0).any():
            continue
        x = values - np.median(values[present])
        x /= max(float(np.abs(x[present]).max()), np.finfo(np.float64).tiny)  # so that squares are in range
        mean = np.average(x[present], weights=w[present])
        deviation = np.sqrt(np.average((x[present] - mean) ** 2, weights=w[present]))
        if deviation > 0:
            parts.append(np.where(present, (x - mean) / deviation, 0.0)[:, np.newaxis])
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(rows), 1))


def _means(P: Array, codes: Array, w: Array, k: int) -> Array:
    """Weighted means of the rows of each cluster (k, p); zeros for a cluster without rows."""
    mass = np.bincount(codes, w, k)
    sums = np.stack([np.bincount(codes, w * x, k) for x in P.T], axis=1)
    return sums / np.where(mass > 0, mass, 1.0)[:, np.newaxis]


def _of_rows(column: BinnedColumn, rows: Array) -> BinnedColumn:
    return replace(column, codes=column.codes[rows])


def _center_bins(
    sample: Sequence[Column], columns: Sequence[BinnedColumn], rows: Array, codes: Array, w: Array, k: int
) -> Array:
    """The bin of the mean of each cluster; of categories, the most frequent category (k, d)."""
    by_name = {column.name: column for column in sample}
    result = np.zeros((k, len(columns)), np.int64)
    for i, column in enumerate(columns):
        values = by_name[column.name].values[rows]
        if column.levels is not None:
            present = values >= 0
            counts = np.zeros((k, len(column.levels)))
            np.add.at(counts, (codes[present], values[present]), w[present])
            result[:, i] = counts.argmax(axis=1)
            continue
        present = np.isfinite(values)
        mass = np.bincount(codes[present], w[present], k)
        means = np.bincount(codes[present], w[present] * values[present], k) / np.where(mass > 0, mass, 1.0)
        result[:, i] = np.searchsorted(column.thresholds, means, side="left")
    return result
