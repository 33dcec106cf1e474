"""The cheapest clusters of given sizes: a transport of rows to clusters, by shortest paths between clusters."""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit

PART = 16  # of as many rows, one is in the part whose prices are found first
ENOUGH = 4  # rows of that part for each cluster, or it is not worth the trouble
LISTED = (4, 64)  # rows kept at hand for each pair of clusters, at least and at most: an eighth of a cluster


def transport(
    costs: np.ndarray,  # in  (n, k)
    least: np.ndarray,  # in  (k,) rows a cluster has at least
    most: np.ndarray,  # in  (k,) and at most; n rows fit in
    prices: np.ndarray,  # i/o (k,) of a place in each cluster, a guess; those that prove the result
    labels: np.ndarray,  # i/o (n,) where several clusters are the cheapest, a row stays if it can
) -> None:
    """Gives every row a cluster, at the least total cost with sizes within bounds.

    Where the prices are far off, better ones are those of a part of the rows and of the places.
    """
    n, k = costs.shape
    few = -(-n // PART)
    if few >= ENOUGH * k and settle(costs, least, most, prices, labels, n // PART) >= 0:
        return
    if few >= ENOUGH * k:
        transport(costs[::PART].copy(), least * few // n, -(-most * few // n), prices, labels[::PART].copy())
    settle(costs, least, most, prices, labels, n)


@jit
def settle(
    costs,  # in  (n, k)
    least,  # in  (k,)
    most,  # in  (k,)
    prices,  # i/o (k,)
    labels,  # i/o (n,)
    patience,  # in  rows to be moved, beyond which to give up
):
    """How many rows went from cluster to cluster; -1 if there were too many.

    At the prices every row takes the cheapest cluster. Where too many rows take one, rows go along the shortest path
    of clusters to one that has places, and prices change by just as much as keeps every row content. A last node, the
    market, takes and gives places: its arcs let a size vary between its bounds at the price 0.
    """
    n, k = costs.shape
    price, excess, places = np.zeros(k + 1), np.zeros(k + 1, np.int64), np.zeros(k, np.int64)
    for j in range(k):
        price[j] = prices[j]
    choose(costs, price, labels, excess)
    if open_places(least, most, price, places, excess) > patience:
        return -1
    size = min(max(n // (8 * k), LISTED[0]), LISTED[1])
    keys, rows = np.empty((k, k, size)), np.empty((k, k, size), np.int32)
    held, limit = np.zeros((k, k), np.int64), np.full((k, k), np.inf)
    arcs, length = np.full((k + 1, k + 1), np.inf), np.empty(k + 1)
    via, done = np.empty(k + 1, np.int64), np.empty(k + 1, np.bool_)
    for i in by_cluster(labels, k):
        list_row(costs, i, labels[i], keys, rows, held, limit)
    for j in range(k):
        set_arcs(costs, labels, j, keys, rows, held, limit, arcs)
        set_market(j, least, most, places, arcs)
    moves = 0
    while True:
        end = shortest(arcs, price, excess, length, via, done)
        if end < 0:
            break
        for j in range(k + 1):
            price[j] -= min(length[j], length[end])
        moves += push(end, via, costs, least, most, labels, places, excess, keys, rows, held, limit, arcs)
    for j in range(k):
        prices[j] = price[j] - price[k]
    return moves


@jit
def by_cluster(
    labels,  # in  (n,)
    k,
):
    """The rows of the first cluster, of the second, ...: the lists of one cluster stay in the cache."""
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
def choose(
    costs,  # in  (n, k)
    price,  # in  (k + 1,)
    labels,  # i/o (n,)
    excess,  # out (k + 1,) how many rows chose each cluster
):
    """The cheapest cluster of every row, at these prices."""
    for i in range(costs.shape[0]):
        best = labels[i] if 0 <= labels[i] < costs.shape[1] else 0
        low = costs[i, best] + price[best]
        for j in range(costs.shape[1]):
            if costs[i, j] + price[j] < low:
                best, low = j, costs[i, j] + price[j]
        labels[i] = best
        excess[best] += 1


@jit
def open_places(
    least,  # in  (k,)
    most,  # in  (k,)
    price,  # in  (k + 1,)
    places,  # out (k,) as many as the price allows: all that may be where they cost, the fewest where they are paid for
    excess,  # i/o (k + 1,) rows of each cluster; how many more than places. Of the market: places without rows
):
    """How many rows are in excess."""
    k, much = places.shape[0], 0
    for j in range(k):
        if price[j] > 0.0:
            places[j] = most[j]
        elif price[j] < 0.0:
            places[j] = least[j]
        else:
            places[j] = min(max(excess[j], least[j]), most[j])
        excess[j] -= places[j]
        excess[k] -= excess[j]
        much += max(excess[j], 0)
    return much


@jit
def list_row(
    costs,  # in  (n, k)
    i,
    a,  # in  the cluster of row `i`
    keys,  # i/o (k, k, size) what it costs to move rows of a cluster to another, descending
    rows,  # i/o (k, k, size) which rows
    held,  # i/o (k, k) how many
    limit,  # i/o (k, k) rows that are not listed cost no less
):
    """Puts a row on the lists of its cluster, as far as it is among the cheapest to move."""
    for b in range(costs.shape[1]):
        key = costs[i, b] - costs[i, a]
        if b != a and key < limit[a, b]:
            put(key, i, a, b, keys, rows, held, limit)


@jit
def put(
    key,
    i,
    a,
    b,
    keys,  # i/o (k, k, size)
    rows,  # i/o (k, k, size)
    held,  # i/o (k, k)
    limit,  # i/o (k, k)
):
    """Keeps one list in order, of equal keys the first row last; the costliest row of a full list makes way."""
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
    arcs,  # out (k + 1, k + 1) what it costs to move a row of `a` to each cluster, at least
):
    """Rows that have left `a` are struck off its lists; a list that has run out is made anew."""
    for b in range(costs.shape[1]):
        if b == a:
            continue
        while held[a, b] > 0 and labels[rows[a, b, held[a, b] - 1]] != a:
            held[a, b] -= 1
        if held[a, b] == 0 and limit[a, b] < np.inf:
            limit[a, b] = np.inf
            for i in range(costs.shape[0]):
                if labels[i] == a and costs[i, b] - costs[i, a] < limit[a, b]:
                    put(costs[i, b] - costs[i, a], i, a, b, keys, rows, held, limit)
        arcs[a, b] = keys[a, b, held[a, b] - 1] if held[a, b] > 0 else np.inf


@jit
def set_market(
    a,
    least,  # in  (k,)
    most,  # in  (k,)
    places,  # in  (k,)
    arcs,  # out (k + 1, k + 1)
):
    """Whether a place may be added to `a`, and taken from it."""
    market = places.shape[0]
    arcs[a, market] = 0.0 if places[a] < most[a] else np.inf
    arcs[market, a] = 0.0 if places[a] > least[a] else np.inf


@jit
def shortest(
    arcs,  # in  (k + 1, k + 1)
    price,  # in  (k + 1,)
    excess,  # in  (k + 1,)
    length,  # out (k + 1,) of the shortest path to each node, as far as it is no longer than the one returned
    via,  # out (k + 1,) the node before, on that path; -1 at its start
    done,  # out (k + 1,)
):
    """The node short of rows that is nearest to those with too many (Dijkstra); -1 if none has too many."""
    nodes, needed = length.shape[0], False
    for v in range(nodes):
        length[v] = 0.0 if excess[v] > 0 else np.inf
        via[v], done[v] = -1, False
        needed |= excess[v] > 0
    while needed:
        u = -1
        for v in range(nodes):
            if not done[v] and (u < 0 or length[v] < length[u]):
                u = v
        if not length[u] < np.inf:
            raise FloatingPointError("costs must be finite")
        if excess[u] < 0:
            return u
        done[u] = True
        for v in range(nodes):
            if not done[v]:
                there = length[u] + max(arcs[u, v] + (price[v] - price[u]), 0.0)  # below 0 by rounding only
                if there < length[v]:
                    length[v], via[v] = there, u
    return -1


@jit
def push(
    end,
    via,  # in  (k + 1,) the path to `end`
    costs,  # in  (n, k)
    least,  # in  (k,)
    most,  # in  (k,)
    labels,  # i/o (n,)
    places,  # i/o (k,)
    excess,  # i/o (k + 1,)
    keys,  # i/o (k, k, size)
    rows,  # i/o (k, k, size)
    held,  # i/o (k, k)
    limit,  # i/o (k, k)
    arcs,  # i/o (k + 1, k + 1)
):
    """One row goes along each arc of the path; where it is places alone, as many as can. How many rows went."""
    market, moved = places.shape[0], 0
    start, amount = widest(end, via, least, most, places, excess)
    v = end
    while via[v] >= 0:
        u = via[v]
        if u == market:
            places[v] -= amount
        elif v == market:
            places[u] += amount
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
        if v != market:
            set_arcs(costs, labels, v, keys, rows, held, limit, arcs)
            set_market(v, least, most, places, arcs)
        v = via[v]
    return moved


@jit
def widest(
    end,
    via,  # in  (k + 1,)
    least,  # in  (k,)
    most,  # in  (k,)
    places,  # in  (k,)
    excess,  # in  (k + 1,)
):
    """Where the path to `end` starts, and how much goes along it: one row, or many places."""
    market, amount = places.shape[0], -excess[end]
    v = end
    while via[v] >= 0:
        u = via[v]
        if u == market:
            amount = min(amount, places[v] - least[v])
        elif v == market:
            amount = min(amount, most[u] - places[u])
        else:
            amount = 1
        v = u
    return v, min(amount, excess[v])
