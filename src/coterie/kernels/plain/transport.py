"""Assignment of rows to clusters of bounded sizes at minimum cost: a transportation problem.

It is solved by successive shortest paths between clusters (Ahuja, Magnanti & Orlin 1993, Network Flows, section 9.7).
"""

from itertools import pairwise

import numpy as np


def transport(
    costs: np.ndarray,  # in  (n, k)
    size_min: np.ndarray,  # in  (k,) minimum number of rows of each cluster
    size_max: np.ndarray,  # in  (k,) maximum number of rows; their sum is at least n
    prices: np.ndarray,  # i/o (k,) dual variables: an initial guess, and the optimal ones
    labels: np.ndarray,  # i/o (n,) among equally cheap clusters, the current one is preferred
) -> None:
    """Assign each row to a cluster, at minimum total cost with sizes within bounds.

    The prices prove that the result is optimal: at ``costs + prices`` each row is in its cheapest cluster, clusters
    with a positive price have their maximum size, and those with a negative price their minimum size. Each step moves
    rows along the shortest path from clusters with too many rows to one with too few, and keeps these conditions. The
    arcs of an additional node, the slack node, let the capacity of a cluster vary between its bounds at price 0.
    """
    k = costs.shape[1]
    price = np.append(prices, 0.0)
    labels[:] = _cheapest(costs + prices, labels)
    count = np.bincount(labels, minlength=k)
    capacity = np.where(prices > 0, size_max, np.where(prices < 0, size_min, np.clip(count, size_min, size_max)))
    excess = np.append(count - capacity, capacity.sum() - len(labels))
    while (excess > 0).any():
        arcs, rows = _arcs(costs, labels, size_min, size_max, capacity)
        path, length = _shortest_path(np.maximum(arcs + price - price[:, None], 0.0), excess)
        price -= np.minimum(length, length[path[-1]])
        steps = list(pairwise(path))
        residual = [
            size_max[u] - capacity[u] if v == k else capacity[v] - size_min[v] if u == k else 1 for u, v in steps
        ]
        amount = min(excess[path[0]], -excess[path[-1]], *residual)
        for u, v in steps:
            if v == k:
                capacity[u] += amount
            elif u == k:
                capacity[v] -= amount
            else:
                labels[rows[u, v]] = v
        excess[path[0]] -= amount
        excess[path[-1]] += amount
    prices[:] = price[:k] - price[k]


def _cheapest(total: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The cheapest cluster (n,) of each row; the current one if it is among them."""
    current = np.maximum(labels, 0)
    is_cheapest = np.take_along_axis(total, current[:, None], axis=1)[:, 0] <= total.min(axis=1, initial=np.inf)
    return np.where(is_cheapest & (labels >= 0), labels, total.argmin(axis=1))


def _arcs(
    costs: np.ndarray, labels: np.ndarray, size_min: np.ndarray, size_max: np.ndarray, capacity: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Minimum cost of moving a row from each cluster to each other one, and the row that has it (k + 1, k + 1)."""
    k = costs.shape[1]
    arcs, rows = np.full((k + 1, k + 1), np.inf), np.zeros((k + 1, k + 1), np.intp)
    for a in np.unique(labels):
        members = np.flatnonzero(labels == a)
        differences = costs[members] - costs[members, a][:, None]
        rows[a, :k] = members[differences.argmin(axis=0)]
        arcs[a, :k] = differences.min(axis=0)
    arcs[:k, k] = np.where(capacity < size_max, 0.0, np.inf)
    arcs[k, :k] = np.where(capacity > size_min, 0.0, np.inf)
    return arcs, rows


def _shortest_path(arcs: np.ndarray, excess: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The shortest path (Dijkstra) from nodes with too many rows to one with too few; and path lengths to all nodes."""
    length, parent = np.where(excess > 0, 0.0, np.inf), np.full(len(excess), -1)
    is_final = np.zeros(len(excess), bool)
    while True:
        candidates = np.where(is_final, np.inf, length)
        u = int(candidates.argmin())
        if not candidates[u] < np.inf:
            raise FloatingPointError("costs must be finite")
        if excess[u] < 0:
            break
        is_final[u] = True
        is_shorter = ~is_final & (length[u] + arcs[u] < length)
        length[is_shorter], parent[is_shorter] = length[u] + arcs[u, is_shorter], u
    path = [u]
    while parent[path[0]] >= 0:
        path.insert(0, int(parent[path[0]]))
    return path, length
