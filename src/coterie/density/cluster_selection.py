"""Select clusters of a condensed tree, and assign its rows to them."""

from dataclasses import dataclass

import numpy as np

from coterie import kernels
from coterie.core.arrays import Array
from coterie.density.condensed_tree import CondensedTree

ROUNDING = 1e-10  # relative difference of stabilities that counts as rounding


@dataclass(frozen=True)
class SelectionRule:
    """The options of `HDBSCAN` that select clusters."""

    method: str  # 'eom' or 'leaf'
    epsilon: float
    max_size: float
    allow_single: bool


@dataclass(frozen=True)
class SelectedClusters:
    """The selected clusters, in the order of their first rows, and the rows in them."""

    clusters: Array  # (K,) clusters of the condensed tree
    labels: Array  # (n,) int32, -1 for noise
    probabilities: Array  # (n,)
    persistence: Array  # (K,)


def select_clusters(tree: CondensedTree, rule: SelectionRule) -> SelectedClusters:
    """Select the clusters of a tree, none of them inside another."""
    kernel = kernels.select("condensed_tree", len(tree.row_cluster))
    stability, k = tree.stabilities(), len(tree.cluster_parent)
    if rule.method == "eom":
        is_selected = kernel.excess_of_mass(
            tree.cluster_parent, stability, tree.cluster_size, rule.max_size, rule.allow_single, ROUNDING
        )
    else:
        is_selected = np.ones(k, bool)
        is_selected[tree.cluster_parent[1:]] = False
        is_selected[0] = k == 1 and rule.allow_single
    if rule.epsilon > 0 and not is_selected[0]:
        with np.errstate(divide="ignore"):
            birth = 1 / tree.cluster_lambda
        is_selected = kernel.merge_below(tree.cluster_parent, birth, is_selected, rule.epsilon, rule.allow_single)
    clusters = np.flatnonzero(is_selected)
    labels = label_clusters(tree, tree.row_cluster, tree.row_lambda, clusters, rule.epsilon)
    used, first = np.unique(labels[labels >= 0], return_index=True)
    order = used[np.argsort(first)]
    number = np.full(len(clusters) + 1, -1, np.int32)  # the last one is that of noise
    number[order] = np.arange(len(order))
    clusters, labels = clusters[order], number[labels]
    probabilities = membership(tree.row_lambda, tree.deaths()[clusters], labels)
    return SelectedClusters(clusters, labels, probabilities, _persistence(tree, clusters, labels, stability))


def label_clusters(tree: CondensedTree, cluster: Array, density: Array, selected: Array, epsilon: float) -> Array:
    """Positions among the `selected` clusters (K,) of rows that leave a cluster at a density; -1 for noise."""
    kernel = kernels.select("condensed_tree", len(tree.row_cluster))
    number = np.full(len(tree.cluster_parent), -1, np.int32)
    number[selected] = np.arange(len(selected))
    ancestor = kernel.selected_ancestors(tree.cluster_parent, number >= 0)
    labels: Array = np.where(ancestor >= 0, number[ancestor], np.int32(-1))[cluster]
    if len(selected) == 1 and selected[0] == 0:  # one cluster of all rows: those that leave before its end are noise
        end = 1 / epsilon if epsilon > 0 else tree.deaths()[0]
        labels = np.where(density >= end, labels, np.int32(-1))
    return labels


def membership(density: Array, death: Array, labels: Array) -> Array:
    """Densities of rows relative to the maximum of their cluster, at most 1; 0 for noise. `death` (K,) by label."""
    inside = labels >= 0
    result = np.zeros(len(labels))
    result[inside] = np.minimum(density[inside] / death[labels[inside]], 1.0)
    return result


def joint_densities(tree: CondensedTree, cluster: Array, density: Array, selected: Array) -> Array:
    """The highest density at which rows that leave a cluster at a density are in one cluster with each selected one."""
    join = np.empty((len(tree.cluster_parent), len(selected)))
    split = np.zeros_like(join)  # by ancestor of a selected cluster: density at which the branch to it is split off
    for j, node in enumerate(selected.tolist()):
        while node > 0:
            split[tree.cluster_parent[node], j] = tree.cluster_lambda[node]
            node = int(tree.cluster_parent[node])
    for c in range(len(join)):
        join[c] = np.where(split[c] > 0, split[c], join[tree.cluster_parent[c]] if c else 0.0)
        join[c, selected == c] = np.inf
    return np.minimum(join[cluster], density[:, None])


def soft_memberships(tree: CondensedTree, cluster: Array, density: Array, selected: Array) -> Array:
    """Memberships (m, K) of rows in the selected clusters; their sum is the membership in the nearest of them."""
    joint = joint_densities(tree, cluster, density, selected)
    if joint.shape[1] == 0:
        return joint
    relative = np.minimum(joint / tree.deaths()[selected], 1.0)
    total = np.take_along_axis(relative, joint.argmax(axis=1)[:, None], 1)
    highest = joint.max(axis=1, keepdims=True)
    shares = np.divide(joint, highest, out=np.ones_like(joint), where=highest > 0)
    result: Array = total * shares / shares.sum(axis=1, keepdims=True)
    return result


def _persistence(tree: CondensedTree, clusters: Array, labels: Array, stability: Array) -> Array:
    """Stability of each cluster over that of as many rows that never leave it: from 0 to 1."""
    inside = labels >= 0
    weight = np.bincount(labels[inside], tree.row_weight[inside], len(clusters))
    return np.minimum(stability[clusters] / weight, 1.0)
