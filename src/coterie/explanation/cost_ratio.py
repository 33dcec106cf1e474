"""The K-means cost of a threshold tree, over that of the clusters that it describes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.core.arrays import Array
from coterie.data.row_sample import sample_rows
from coterie.explanation.columns import Column
from coterie.explanation.rule_search import BinnedColumn
from coterie.explanation.rules import Condition

MAX_CLUSTERS = 50
WORK = 2e8  # rows · columns · clusters² of the sample that a tree is grown on
MIN_ROWS = 1000

# A threshold tree: a decision tree with one leaf for each cluster, grown for the K-means cost.
# A node holds rows and the centers of some clusters. A cut of one column must separate two of these centers; of all
# cuts, the one is chosen after which the rows are nearest to the centers on their own side. This is the greedy tree of
# Laber and Murtinho (2021); that of Dasgupta et al. (2020) minimises the rows that are separated from their center.


@dataclass(frozen=True)
class Cut:
    """A cut of the rows of a node: those in bins of `column` up to `bin`, or in the category `bin`, and the others."""

    column: int
    bin: int
    cost: float
    is_left: Array  # (k,) whether each center is on the left


@dataclass(frozen=True)
class Node:
    """A cut and two branches, or a leaf."""

    cluster: int  # nearest of the centers in this node, for a leaf
    cut: Cut | None = None
    left: "Node | None" = None
    right: "Node | None" = None


@dataclass(frozen=True)
class Rows:
    """Rows of the sample, and centers, for which a tree is grown."""

    columns: Sequence[BinnedColumn]
    center_bins: Array  # (k, d) bin of the center; of categories: the category that most rows of the cluster have
    distances: Array  # (m, k) weighted squares of the distances of rows to centers
    codes: Array  # (m,) cluster of each row


def grow(data: Rows, rows: Array | None = None, centers: Array | None = None) -> Node:
    """A tree with one leaf for each center, by default of all, if thresholds can separate them."""
    rows = np.arange(len(data.codes)) if rows is None else rows
    centers = np.arange(data.distances.shape[1]) if centers is None else centers
    cluster = int(centers[np.argmin(data.distances[np.ix_(rows, centers)].sum(axis=0))])
    cut = cheapest_cut(data, rows, centers) if len(centers) > 1 else None
    if cut is None:
        return Node(cluster)
    mask, is_left = goes_left(data.columns[cut.column], cut, rows), cut.is_left[centers]
    left, right = grow(data, rows[mask], centers[is_left]), grow(data, rows[~mask], centers[~is_left])
    return Node(cluster, cut, left, right)


def goes_left(column: BinnedColumn, cut: Cut, rows: Array | slice) -> Array:
    """Whether rows are on the left of a cut; those with a missing value are not."""
    codes = column.codes[rows]
    return np.asarray(codes == cut.bin if column.levels is not None else codes <= cut.bin)


def leaves(data: Rows, node: Node) -> Array:
    """The cluster of the leaf of each row (m,)."""
    if node.cut is None or node.left is None or node.right is None:
        return np.full(len(data.codes), node.cluster)
    is_left = goes_left(data.columns[node.cut.column], node.cut, slice(None))
    return np.where(is_left, leaves(data, node.left), leaves(data, node.right))


def cheapest_cut(data: Rows, rows: Array, centers: Array) -> Cut | None:
    """The cut after which the rows are nearest to the centers on their side."""
    D = data.distances[np.ix_(rows, centers)]
    best: Cut | None = None
    for j, column in enumerate(data.columns):
        positions = data.center_bins[centers, j]
        find = _cheapest_category if column.levels is not None else _cheapest_threshold
        result = find(column.codes[rows], column.bins, positions, D)
        if result is not None and (best is None or result[0] < best.cost):
            is_left = np.zeros(data.distances.shape[1], bool)
            is_left[centers] = positions == result[1] if column.levels is not None else positions <= result[1]
            best = Cut(j, result[1], result[0], is_left)
    return best


def _cheapest_threshold(codes: Array, bins: int, positions: Array, D: Array) -> tuple[float, int] | None:
    """Cost and last bin on the left of the best threshold of one column."""
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    left = np.minimum.accumulate(D[:, order], axis=1)
    right = np.minimum.accumulate(D[:, order[::-1]], axis=1)[:, ::-1]
    best: tuple[float, int] | None = None
    for m in np.flatnonzero(ordered[1:] > ordered[:-1]) + 1:  # number of centers on the left
        cuts = np.arange(ordered[m - 1], ordered[m])
        below = np.cumsum(np.bincount(codes, left[:, m - 1], bins + 1))
        above = np.cumsum(np.bincount(codes, right[:, m], bins + 1))
        cost = below[cuts] + above[-1] - above[cuts]
        i = int(np.argmin(cost))
        if best is None or cost[i] < best[0]:
            best = float(cost[i]), int(cuts[i])
    return best


def _cheapest_category(codes: Array, bins: int, positions: Array, D: Array) -> tuple[float, int] | None:
    """Cost and category of the best cut of one column: rows of one category, and all others."""
    best: tuple[float, int] | None = None
    for level in np.unique(positions):
        is_left = positions == level
        if is_left.all():
            continue
        is_level = codes == level
        cost = float(D[is_level][:, is_left].min(axis=1).sum() + D[~is_level][:, ~is_left].min(axis=1).sum())
        if best is None or cost < best[0]:
            best = cost, int(level)
    return best


def text_lines(data: Rows, node: Node, names: Sequence[str], indent: str = "") -> Iterator[str]:
    """The tree as text, one line for each branch."""
    if node.cut is None or node.left is None or node.right is None:
        yield f"{indent}cluster {names[node.cluster]}"
        return
    column = data.columns[node.cut.column]
    if column.levels is not None:
        is_left = Condition(column.name, values=(column.levels[node.cut.bin],))
    else:
        is_left = Condition(column.name, upper=column.bound(column.thresholds[node.cut.bin]))
    for condition, branch in ((is_left, node.left), ("otherwise", node.right)):
        if branch.cut is None:
            yield f"{indent}{condition}: cluster {names[branch.cluster]}"
        else:
            yield f"{indent}{condition}:"
            yield from text_lines(data, branch, names, indent + "  ")


def tree_of_clusters(
    sample: Sequence[Column], columns: Sequence[BinnedColumn], codes: Array, w: Array, names: Sequence[str], *,
    points: Array | None = None,
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
        [replace(column, codes=column.codes[members]) for column in columns],
        _center_bins(sample, columns, members, codes, w, k), distances, codes,
    )  # fmt: skip
    tree = grow(data)
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
