"""The radius of DBSCAN, if it is not given: a radius in the widest range of radii with the same number of clusters."""

import numpy as np

from coterie import kernels
from coterie.core.arrays import Array
from coterie.density.condensed_tree import CondensedTree, condense
from coterie.density.reachability import ROUNDING, reachability
from coterie.density.row_distances import RowDistances

POSITION = 0.75  # of the radius in its range, on a logarithmic scale: near the upper end, where few rows are noise
MIN_SHARE = 0.9  # of the rows in the cluster, if no radius has two clusters


def automatic_radius(distances: RowDistances, weight: Array, min_samples: float) -> float:
    """The radius for rows of these weights (n,). Clusters count if their weight is at least the root of the total."""
    total = float(weight.sum())
    core, edges = reachability(distances, weight, min(min_samples, total), lambda done: None)
    Z = kernels.select("linkage", len(weight), 1).linkage_matrix(edges, len(weight))
    tree = condense(Z, core, weight, max(min_samples, np.sqrt(total)) * (1 - ROUNDING))
    return stable_radius(tree) or single_cluster_radius(tree)


def stable_radius(tree: CondensedTree) -> float | None:
    """A radius in the widest range with the same number of clusters, at least two; None if no radius has two.

    The width is the logarithm of the ratio of the ends, times the share of rows that are not noise at the upper end.
    """
    if len(tree.cluster_parent) < 3:
        return None
    birth, end = _ranges(tree)
    radii, inverse = np.unique(np.concatenate([end, birth]), return_inverse=True)
    change = np.repeat([1.0, -1.0], len(end))  # a cluster exists from its end to its birth
    count = np.cumsum(np.bincount(inverse, change))[:-1]  # clusters between consecutive radii
    first = np.flatnonzero(np.diff(count, prepend=-1))
    low, high, count = radii[first], radii[np.append(first[1:], len(radii) - 1)], count[first]
    if not (count > 1).any():
        return None
    order = np.argsort(tree.row_lambda)[::-1]
    heights, weight = 1 / tree.row_lambda[order], np.append(0.0, np.cumsum(tree.row_weight[order]))
    share = weight[np.searchsorted(heights, high, side="right")]
    best = np.where(count > 1, np.log(high / low) * share, -1.0).argmax()
    return float(low[best] * (high[best] / low[best]) ** POSITION)


def _ranges(tree: CondensedTree) -> tuple[Array, Array]:
    """The largest and the smallest radius of each cluster except the root."""
    birth = 1 / tree.cluster_lambda[1:]
    end = tree.deaths()
    np.minimum.at(end, tree.cluster_parent[1:], tree.cluster_lambda[1:])
    return birth, np.minimum(1 / end[1:], birth)


def single_cluster_radius(tree: CondensedTree) -> float:
    """The smallest radius at which a share of `MIN_SHARE` of the rows are in one cluster."""
    order = np.argsort(tree.row_lambda)[::-1]
    weight = np.cumsum(tree.row_weight[order])
    row = order[np.searchsorted(weight, MIN_SHARE * (1 - ROUNDING) * weight[-1])]
    return float((1 + ROUNDING) / tree.row_lambda[row])  # not below the distance, whose inverse was rounded
