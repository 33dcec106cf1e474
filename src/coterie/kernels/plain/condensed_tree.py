"""Condensed trees of density-based clusters. `kernels.cpu.condensed_tree` compiles the same loops for many rows.

Merges of equal height are one merge of several parts, so the result does not depend on the order of the rows. Clusters
are numbered from the root, which is 0; parents have lower numbers than children.
"""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def condense(
    left: Array,  # (n - 1,) first child of each merge; children 0 to n - 1 are rows, n + i is merge i
    right: Array,  # (n - 1,)
    height: Array,  # (n - 1,) never decreasing
    weight: Array,  # (n,) of the rows
    core: Array,  # (n,) core distances
    min_size: float,  # minimum weight of a cluster
) -> tuple[Array, Array, Array, Array, Array]:
    """The cluster that each row leaves, and the height; parent, height of birth and weight of each cluster.

    A cluster is split where at least two parts of a merge have the minimum weight. Smaller parts leave the cluster. A
    single row with the minimum weight is a part of its own below the first merge that is higher than its core distance.
    """
    n = len(weight)
    root = 2 * n - 2
    size, parent = np.empty(2 * n - 1), np.empty(2 * n - 1, np.int64)
    size[:n] = weight
    for i in range(n - 1):
        size[n + i] = size[left[i]] + size[right[i]]
        parent[left[i]] = parent[right[i]] = n + i
    top, is_part, n_parts = np.arange(2 * n - 1), np.zeros(2 * n - 1, np.bool_), np.zeros(2 * n - 1, np.int64)
    for node in range(root - 1, -1, -1):
        above = height[parent[node] - n]
        is_lower = (core[node] if node < n else height[node - n]) < above
        if node >= n and not is_lower:
            top[node] = top[parent[node]]
        if is_lower and size[node] >= min_size:
            is_part[node] = True
            n_parts[top[parent[node]]] += 1
    cluster, leaves_at = np.zeros(2 * n - 1, np.int64), np.empty(2 * n - 1)
    leaves_at[root] = height[n - 2] if n > 1 else core[0]
    cluster_parent, birth, cluster_size = np.zeros(2 * n - 1, np.int64), np.full(2 * n - 1, np.inf), np.empty(2 * n - 1)
    count, cluster_size[0] = 1, size[root]
    for node in range(root - 1, -1, -1):
        up = top[parent[node]]
        cluster[node], leaves_at[node] = cluster[up], leaves_at[parent[node]]
        if not is_part[node]:
            cluster[node] = cluster[parent[node]]
            continue
        leaves_at[node] = core[node] if node < n else height[node - n]
        if n_parts[up] > 1:
            cluster_parent[count], birth[count], cluster_size[count] = cluster[up], height[up - n], size[node]
            cluster[node] = count
            count += 1
    return cluster[:n], leaves_at[:n], cluster_parent[:count], birth[:count], cluster_size[:count]


def excess_of_mass(
    parent: Array,  # (k,)
    stability: Array,  # (k,)
    size: Array,  # (k,)
    max_size: float,
    allow_root: bool,
    tolerance: float,  # relative difference below which two stabilities are equal
) -> Array:
    """Clusters (k,) of maximum total stability, none of them inside another; of equal ones, the larger cluster."""
    k = len(parent)
    below, is_selected = np.zeros(k), np.zeros(k, np.bool_)
    for c in range(k - 1, -1, -1):
        if c == 0 and not allow_root:
            break
        is_selected[c] = below[c] <= stability[c] * (1.0 + tolerance) and size[c] <= max_size
        below[parent[c]] += stability[c] if is_selected[c] else below[c]
    is_inside = np.zeros(k, np.bool_)
    for c in range(1, k):
        is_inside[c] = is_inside[parent[c]] or is_selected[parent[c]]
        if is_inside[c]:
            is_selected[c] = False
    return is_selected


def merge_below(parent: Array, birth: Array, is_selected: Array, epsilon: float, allow_root: bool) -> Array:
    """Replace selected clusters (k,) that are born below the height `epsilon` by their first ancestor born above it."""
    k = len(parent)
    result = np.zeros(k, np.bool_)
    for c in range(k):
        if not is_selected[c]:
            continue
        node = c
        while node > 0 and (birth[node] < epsilon or (node != c and birth[node] == epsilon)):
            if parent[node] == 0 and not allow_root:
                break
            node = parent[node]
        result[node] = True
    is_inside = np.zeros(k, np.bool_)
    for c in range(1, k):
        is_inside[c] = is_inside[parent[c]] or result[parent[c]]
        if is_inside[c]:
            result[c] = False
    return result


def selected_ancestors(parent: Array, is_selected: Array) -> Array:
    """The cluster itself or its first ancestor that is selected (k,); -1 if there is none."""
    ancestor = np.full(len(parent), -1)
    for c in range(len(parent)):
        if is_selected[c]:
            ancestor[c] = c
        elif c > 0:
            ancestor[c] = ancestor[parent[c]]
    return ancestor


def subtree_minima(parent: Array, values: Array) -> Array:
    """Minimum of `values` (k,) over each cluster and all its descendants."""
    minima = values.copy()
    for c in range(len(parent) - 1, 0, -1):
        minima[parent[c]] = min(minima[parent[c]], minima[c])
    return minima
