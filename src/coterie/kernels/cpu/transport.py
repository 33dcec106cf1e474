"""Assignment of rows to clusters of bounded sizes at minimum cost, compiled; see `plain.transport`."""

import numpy as np

from coterie.kernels.cpu.jit import jit

SAMPLE_EVERY = 16  # one of this number of rows is in the sample whose prices are computed first
MIN_ROWS = 4  # minimum number of rows of the sample for each cluster
LIST_SIZES = (4, 64)  # minimum and maximum number of rows in the list of a pair of clusters: an eighth of a cluster


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
    price, excess, capacity = np.zeros(k + 1), np.zeros(k + 1, np.int64), np.zeros(k, np.int64)
    for j in range(k):
        price[j] = prices[j]
    assign_cheapest(costs, price, labels, excess)
    if set_capacities(size_min, size_max, price, capacity, excess) > max_moves:
        return -1
    size = min(max(n // (8 * k), LIST_SIZES[0]), LIST_SIZES[1])
    keys, rows = np.empty((k, k, size)), np.empty((k, k, size), np.int32)
    held, limit = np.zeros((k, k), np.int64), np.full((k, k), np.inf)
    arcs, length = np.full((k + 1, k + 1), np.inf), np.empty(k + 1)
    parent, is_final = np.empty(k + 1, np.int64), np.empty(k + 1, np.bool_)
    for i in sort_by_cluster(labels, k):
        list_row(costs, i, labels[i], keys, rows, held, limit)
    for j in range(k):
        set_arcs(costs, labels, j, keys, rows, held, limit, arcs)
        set_slack_arcs(j, size_min, size_max, capacity, arcs)
    moves = 0
    while True:
        end = shortest_path(arcs, price, excess, length, parent, is_final)
        if end < 0:
            break
        for j in range(k + 1):
            price[j] -= min(length[j], length[end])
        moves += augment(
            end, parent, costs, size_min, size_max, labels, capacity, excess, keys, rows, held, limit, arcs
        )
    for j in range(k):
        prices[j] = price[j] - price[k]
    return moves


@jit
def sort_by_cluster(
    labels,  # in  (n,)
    k,
):
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
def assign_cheapest(
    costs,  # in  (n, k)
    price,  # in  (k + 1,)
    labels,  # i/o (n,)
    excess,  # out (k + 1,) number of rows of each cluster
):
    """Assign each row to its cheapest cluster at these prices."""
    for i in range(costs.shape[0]):
        best = labels[i] if 0 <= labels[i] < costs.shape[1] else 0
        low = costs[i, best] + price[best]
        for j in range(costs.shape[1]):
            if costs[i, j] + price[j] < low:
                best, low = j, costs[i, j] + price[j]
        labels[i] = best
        excess[best] += 1


@jit
def set_capacities(
    size_min,  # in  (k,)
    size_max,  # in  (k,)
    price,  # in  (k + 1,)
    capacity,  # out (k,) maximum size if the price is positive, minimum size if it is negative
    excess,  # i/o (k + 1,) in: number of rows; out: rows above the capacity; of the slack node: unused capacity
):
    """Set the capacities; return the number of rows above them."""
    k, total = capacity.shape[0], 0
    for j in range(k):
        if price[j] > 0.0:
            capacity[j] = size_max[j]
        elif price[j] < 0.0:
            capacity[j] = size_min[j]
        else:
            capacity[j] = min(max(excess[j], size_min[j]), size_max[j])
        excess[j] -= capacity[j]
        excess[k] -= excess[j]
        total += max(excess[j], 0)
    return total


@jit
def list_row(
    costs,  # in  (n, k)
    i,
    a,  # in  cluster of row `i`
    keys,  # i/o (k, k, size) costs of moving rows from one cluster to another, descending
    rows,  # i/o (k, k, size) these rows
    held,  # i/o (k, k) their number
    limit,  # i/o (k, k) minimum cost of the rows that are not listed
):
    """Insert a row into the lists of its cluster, if it is among the cheapest to move."""
    for b in range(costs.shape[1]):
        key = costs[i, b] - costs[i, a]
        if b != a and key < limit[a, b]:
            insert(key, i, a, b, keys, rows, held, limit)


@jit
def insert(
    key,
    i,
    a,
    b,
    keys,  # i/o (k, k, size)
    rows,  # i/o (k, k, size)
    held,  # i/o (k, k)
    limit,  # i/o (k, k)
):
    """Insert a row into one list; among equal keys, the first row is last. A full list loses its costliest row."""
    count = held[a, b]
    if count < keys.shape[2]:
        at = count
        while at > 0 and keys[a, b, at - 1] <= key:
            keys[a, b, at], rows[a, b, at] = keys[a, b, at - 1], rows[a, b, at - 1]
            at -= 1
        held[a, b] = count + 1
    else:
        limit[a, b] = keys[a, b, 0]
        if key >= keys[a, b, 0]:
            return
        at = 0
        while at + 1 < count and keys[a, b, at + 1] > key:
            keys[a, b, at], rows[a, b, at] = keys[a, b, at + 1], rows[a, b, at + 1]
            at += 1
    keys[a, b, at], rows[a, b, at] = key, i


@jit
def set_arcs(
    costs,  # in  (n, k)
    labels,  # in  (n,)
    a,
    keys,  # i/o (k, k, size)
    rows,  # i/o (k, k, size)
    held,  # i/o (k, k)
    limit,  # i/o (k, k)
    arcs,  # out (k + 1, k + 1) minimum cost of moving a row of `a` to each cluster
):
    """Update the arcs of `a`: remove rows that have left it from its lists, and rebuild empty lists."""
    for b in range(costs.shape[1]):
        if b == a:
            continue
        while held[a, b] > 0 and labels[rows[a, b, held[a, b] - 1]] != a:
            held[a, b] -= 1
        if held[a, b] == 0 and limit[a, b] < np.inf:
            limit[a, b] = np.inf
            for i in range(costs.shape[0]):
                if labels[i] == a and costs[i, b] - costs[i, a] < limit[a, b]:
                    insert(costs[i, b] - costs[i, a], i, a, b, keys, rows, held, limit)
        arcs[a, b] = keys[a, b, held[a, b] - 1] if held[a, b] > 0 else np.inf


@jit
def set_slack_arcs(
    a,
    size_min,  # in  (k,)
    size_max,  # in  (k,)
    capacity,  # in  (k,)
    arcs,  # out (k + 1, k + 1)
):
    """Arcs to and from the slack node: whether the capacity of `a` can increase or decrease."""
    slack = capacity.shape[0]
    arcs[a, slack] = 0.0 if capacity[a] < size_max[a] else np.inf
    arcs[slack, a] = 0.0 if capacity[a] > size_min[a] else np.inf


@jit
def shortest_path(
    arcs,  # in  (k + 1, k + 1)
    price,  # in  (k + 1,)
    excess,  # in  (k + 1,)
    length,  # out (k + 1,) of the shortest path to each node, if it is not longer than the one returned
    parent,  # out (k + 1,) previous node on that path; -1 at its start
    is_final,  # out (k + 1,)
):
    """The node with too few rows that is nearest to those with too many (Dijkstra); -1 if none has too many."""
    nodes, has_excess = length.shape[0], False
    for v in range(nodes):
        length[v] = 0.0 if excess[v] > 0 else np.inf
        parent[v], is_final[v] = -1, False
        has_excess |= excess[v] > 0
    while has_excess:
        u = -1
        for v in range(nodes):
            if not is_final[v] and (u < 0 or length[v] < length[u]):
                u = v
        if not length[u] < np.inf:
            raise FloatingPointError("costs must be finite")
        if excess[u] < 0:
            return u
        is_final[u] = True
        for v in range(nodes):
            if not is_final[v]:
                path_length = length[u] + max(arcs[u, v] + (price[v] - price[u]), 0.0)  # negative only by rounding
                if path_length < length[v]:
                    length[v], parent[v] = path_length, u
    return -1


@jit
def augment(
    end,
    parent,  # in  (k + 1,) path to `end`
    costs,  # in  (n, k)
    size_min,  # in  (k,)
    size_max,  # in  (k,)
    labels,  # i/o (n,)
    capacity,  # i/o (k,)
    excess,  # i/o (k + 1,)
    keys,  # i/o (k, k, size)
    rows,  # i/o (k, k, size)
    held,  # i/o (k, k)
    limit,  # i/o (k, k)
    arcs,  # i/o (k + 1, k + 1)
):
    """Move one row along each arc of the path, or as much capacity as possible; return the number of moved rows."""
    slack, moved = capacity.shape[0], 0
    start, amount = start_and_amount(end, parent, size_min, size_max, capacity, excess)
    v = end
    while parent[v] >= 0:
        u = parent[v]
        if u == slack:
            capacity[v] -= amount
        elif v == slack:
            capacity[u] += amount
        else:
            i = rows[u, v, held[u, v] - 1]
            labels[i] = v
            list_row(costs, i, v, keys, rows, held, limit)
            moved += 1
        v = u
    excess[start] -= amount
    excess[end] += amount
    v = end
    while v >= 0:
        if v != slack:
            set_arcs(costs, labels, v, keys, rows, held, limit, arcs)
            set_slack_arcs(v, size_min, size_max, capacity, arcs)
        v = parent[v]
    return moved


@jit
def start_and_amount(
    end,
    parent,  # in  (k + 1,)
    size_min,  # in  (k,)
    size_max,  # in  (k,)
    capacity,  # in  (k,)
    excess,  # in  (k + 1,)
):
    """Start of the path to `end`, and the amount to move: one row, or as much capacity as possible."""
    slack, amount = capacity.shape[0], -excess[end]
    v = end
    while parent[v] >= 0:
        u = parent[v]
        if u == slack:
            amount = min(amount, capacity[v] - size_min[v])
        elif v == slack:
            amount = min(amount, size_max[u] - capacity[u])
        else:
            amount = 1
        v = u
    return v, min(amount, excess[v])
