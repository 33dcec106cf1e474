"""Assignment of rows to clusters of bounded sizes at minimum cost, compiled; see `plain.transport`."""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit

SAMPLE_EVERY = 16  # one of this number of rows is in the sample whose prices are computed first
MIN_ROWS = 4  # minimum number of rows of the sample for each cluster
LIST_SIZES = (4, 64)  # minimum and maximum number of rows in the list of a pair of clusters: an eighth of a cluster


class Problem(NamedTuple):
    """A problem and its current solution. For each pair of clusters there is a list of the rows that move cheapest."""

    costs: Any  # (n, k)
    size_min: Any  # (k,)
    size_max: Any  # (k,)
    labels: Any  # (n,)
    price: Any  # (k + 1,) of the clusters and the slack node
    capacity: Any  # (k,) maximum size if the price is positive, minimum size if it is negative
    excess: Any  # (k + 1,) rows above the capacity; of the slack node: unused capacity
    keys: Any  # (k, k, size) costs of moving rows from one cluster to another, descending
    rows: Any  # (k, k, size) these rows
    held: Any  # (k, k) their number
    limit: Any  # (k, k) minimum cost of the rows that are not listed
    arcs: Any  # (k + 1, k + 1) minimum cost of moving a row from one cluster to another
    length: Any  # (k + 1,) of the shortest path to each node, if it is not longer than the one that was chosen
    parent: Any  # (k + 1,) previous node on that path; -1 at its start
    is_final: Any  # (k + 1,) whether the path is known


def transport(
    costs: np.ndarray,  # in  (n, k)
    size_min: np.ndarray,  # in  (k,) minimum number of rows of each cluster
    size_max: np.ndarray,  # in  (k,) maximum number of rows; their sum is at least n
    prices: np.ndarray,  # i/o (k,) dual variables: an initial guess, and the optimal ones
    labels: np.ndarray,  # i/o (n,) among equally cheap clusters, the current one is preferred
) -> None:
    """Assign each row to a cluster, at minimum total cost with sizes within bounds.

    If the initial prices are far from optimal, better ones are computed first from a sample of the rows.
    """
    n, k = costs.shape
    n_sample = -(-n // SAMPLE_EVERY)
    if n_sample >= MIN_ROWS * k and solve(costs, size_min, size_max, prices, labels, n // SAMPLE_EVERY) >= 0:
        return
    if n_sample >= MIN_ROWS * k:
        sample = slice(None, None, SAMPLE_EVERY)
        bounds = size_min * n_sample // n, -(-size_max * n_sample // n)
        transport(costs[sample].copy(), *bounds, prices, labels[sample].copy())
    solve(costs, size_min, size_max, prices, labels, n)


@jit
def solve(
    costs,  # in  (n, k)
    size_min,  # in  (k,)
    size_max,  # in  (k,)
    prices,  # i/o (k,)
    labels,  # i/o (n,)
    max_moves,  # in  maximum number of rows to move
):
    """Solve by successive shortest paths; return the number of rows that were moved, or -1 if there are too many.

    At the initial prices each row is in its cheapest cluster. Then rows are moved along the shortest path from clusters
    with too many rows to one with too few, and prices are updated so that each row stays in its cheapest cluster. The
    arcs of an additional node, the slack node, let the capacity of a cluster vary between its bounds at price 0.
    """
    n, k = costs.shape
    size = min(max(n // (8 * k), LIST_SIZES[0]), LIST_SIZES[1])
    p = Problem(
        costs, size_min, size_max, labels, np.zeros(k + 1), np.zeros(k, np.int64), np.zeros(k + 1, np.int64),
        np.empty((k, k, size)), np.empty((k, k, size), np.int32), np.zeros((k, k), np.int64), np.full((k, k), np.inf),
        np.full((k + 1, k + 1), np.inf), np.empty(k + 1), np.empty(k + 1, np.int64), np.empty(k + 1, np.bool_),
    )  # fmt: skip
    for j in range(k):
        p.price[j] = prices[j]
    assign_cheapest(p)
    if set_capacities(p) > max_moves:
        return -1
    moves = move_rows(p, sort_by_cluster(labels, k))
    for j in range(k):
        prices[j] = p.price[j] - p.price[k]
    return moves


@jit
def move_rows(p, order):
    """Move rows until no cluster has too many; return how many. It creates no arrays, so references are not counted."""
    for position in range(order.shape[0]):
        list_row(p, order[position], p.labels[order[position]])
    for j in range(p.capacity.shape[0]):
        set_arcs(p, j)
    moves = 0
    while True:
        end = shortest_path(p)
        if end < 0:
            return moves
        for j in range(p.price.shape[0]):
            p.price[j] -= min(p.length[j], p.length[end])
        moves += augment(p, end)


@jit
def sort_by_cluster(labels, k):
    """Rows (n,) sorted by cluster, so that the lists of one cluster stay in the cache."""
    start, order = np.zeros(k + 1, np.int64), np.empty(labels.shape[0], np.int32)
    for i in range(labels.shape[0]):
        start[labels[i] + 1] += 1
    for j in range(k):
        start[j + 1] += start[j]
    for i in range(labels.shape[0]):
        order[start[labels[i]]] = i
        start[labels[i]] += 1
    return order


@jit
def assign_cheapest(p):
    """Assign each row to its cheapest cluster at the current prices; count the rows of each cluster in `excess`."""
    costs, labels, price, excess = p.costs, p.labels, p.price, p.excess
    for i in range(costs.shape[0]):
        best = labels[i] if 0 <= labels[i] < costs.shape[1] else 0
        low = costs[i, best] + price[best]
        for j in range(costs.shape[1]):
            if costs[i, j] + price[j] < low:
                best, low = j, costs[i, j] + price[j]
        labels[i] = best
        excess[best] += 1


@jit
def set_capacities(p):
    """Set the capacities, and subtract them from the numbers of rows; return the number of rows above them."""
    capacity, excess = p.capacity, p.excess
    k, total = capacity.shape[0], 0
    for j in range(k):
        if p.price[j] > 0.0:
            capacity[j] = p.size_max[j]
        elif p.price[j] < 0.0:
            capacity[j] = p.size_min[j]
        else:
            capacity[j] = min(max(excess[j], p.size_min[j]), p.size_max[j])
        excess[j] -= capacity[j]
        excess[k] -= excess[j]
        total += max(excess[j], 0)
    return total


@jit
def list_row(p, i, a):
    """Insert row `i` into the lists of its cluster `a`, if it is among the cheapest to move."""
    costs, limit = p.costs, p.limit
    for b in range(costs.shape[1]):
        key = costs[i, b] - costs[i, a]
        if b != a and key < limit[a, b]:
            insert(p, key, i, a, b)


@jit
def insert(p, key, i, a, b):
    """Insert a row into one list; among equal keys, the first row is last. A full list loses its costliest row."""
    keys, rows, count = p.keys[a, b], p.rows[a, b], p.held[a, b]
    if count < keys.shape[0]:
        at = count
        while at > 0 and keys[at - 1] <= key:
            keys[at], rows[at] = keys[at - 1], rows[at - 1]
            at -= 1
        p.held[a, b] = count + 1
    else:
        p.limit[a, b] = keys[0]
        if key >= keys[0]:
            return
        at = 0
        while at + 1 < count and keys[at + 1] > key:
            keys[at], rows[at] = keys[at + 1], rows[at + 1]
            at += 1
    keys[at], rows[at] = key, i


@jit
def set_arcs(p, a):
    """Update the arcs of `a`: remove rows that have left it from its lists, and rebuild empty lists.

    Those to and from the slack node say whether its capacity can increase or decrease.
    """
    costs, labels, held, limit, arcs, slack = p.costs, p.labels, p.held, p.limit, p.arcs, p.capacity.shape[0]
    for b in range(costs.shape[1]):
        if b == a:
            continue
        while held[a, b] > 0 and labels[p.rows[a, b, held[a, b] - 1]] != a:
            held[a, b] -= 1
        if held[a, b] == 0 and limit[a, b] < np.inf:
            limit[a, b] = np.inf
            for i in range(costs.shape[0]):
                if labels[i] == a and costs[i, b] - costs[i, a] < limit[a, b]:
                    insert(p, costs[i, b] - costs[i, a], i, a, b)
        arcs[a, b] = p.keys[a, b, held[a, b] - 1] if held[a, b] > 0 else np.inf
    arcs[a, slack] = 0.0 if p.capacity[a] < p.size_max[a] else np.inf
    arcs[slack, a] = 0.0 if p.capacity[a] > p.size_min[a] else np.inf


@jit
def shortest_path(p):
    """The node with too few rows that is nearest to those with too many (Dijkstra); -1 if none has too many."""
    excess, length, price = p.excess, p.length, p.price
    nodes, has_excess = length.shape[0], False
    for v in range(nodes):
        length[v] = 0.0 if excess[v] > 0 else np.inf
        p.parent[v], p.is_final[v] = -1, False
        has_excess |= excess[v] > 0
    while has_excess:
        u = -1
        for v in range(nodes):
            if not p.is_final[v] and (u < 0 or length[v] < length[u]):
                u = v
        if not length[u] < np.inf:
            raise FloatingPointError("costs must be finite")
        if excess[u] < 0:
            return u
        p.is_final[u] = True
        for v in range(nodes):
            if not p.is_final[v]:
                path_length = length[u] + max(p.arcs[u, v] + (price[v] - price[u]), 0.0)  # negative only by rounding
                if path_length < length[v]:
                    length[v], p.parent[v] = path_length, u
    return -1


@jit
def augment(p, end):
    """Move one row along each arc of the path to `end`, or as much capacity as possible.

    Returns the number of moved rows.
    """
    slack, moved = p.capacity.shape[0], 0
    start, amount = start_and_amount(p, end)
    v = end
    while p.parent[v] >= 0:
        u = p.parent[v]
        if u == slack:
            p.capacity[v] -= amount
        elif v == slack:
            p.capacity[u] += amount
        else:
            i = p.rows[u, v, p.held[u, v] - 1]
            p.labels[i] = v
            list_row(p, i, v)
            moved += 1
        v = u
    p.excess[start] -= amount
    p.excess[end] += amount
    v = end
    while v >= 0:
        if v != slack:
            set_arcs(p, v)
        v = p.parent[v]
    return moved


@jit
def start_and_amount(p, end):
    """Start of the path to `end`, and the amount to move: one row, or as much capacity as possible."""
    slack, amount = p.capacity.shape[0], -p.excess[end]
    v = end
    while p.parent[v] >= 0:
        u = p.parent[v]
        if u == slack:
            amount = min(amount, p.capacity[v] - p.size_min[v])
        elif v == slack:
            amount = min(amount, p.size_max[u] - p.capacity[u])
        else:
            amount = 1
        v = u
    return v, min(amount, p.excess[v])
