"""The cheapest clusters of given sizes: a transport of rows to clusters, by shortest paths between clusters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def transport(
    costs: np.ndarray,  # in  (n, k)
    least: np.ndarray,  # in  (k,) rows a cluster has at least
    most: np.ndarray,  # in  (k,) and at most; n rows fit in
    prices: np.ndarray,  # i/o (k,) of a place in each cluster, a guess; those that prove the result
    labels: np.ndarray,  # i/o (n,) where several clusters are the cheapest, a row stays if it can
) -> None:
    """Gives every row a cluster, at the least total cost with sizes within bounds.

    The prices prove it: at ``costs + prices`` no row has a cheaper cluster than its own, a place that costs is in a
    full cluster, and one that is paid for in a cluster with no more rows than it must have. Every step moves a row,
    or more, from clusters with too many to ones with too few on the shortest path, and keeps that true of all others.
    A last node, the market, takes and gives places: its arcs let a size vary between its bounds at the price 0.
    """
    k = costs.shape[1]
    price = np.append(prices, 0.0)
    labels[:] = _choices(costs + prices, labels)
    count = np.bincount(labels, minlength=k)
    places = np.where(prices > 0, most, np.where(prices < 0, least, np.clip(count, least, most)))
    excess = np.append(count - places, places.sum() - len(labels))
    while (excess > 0).any():
        arcs, rows = _arcs(costs, labels, least, most, places)
        path, length = _shortest(np.maximum(arcs + price - price[:, None], 0.0), excess)
        price -= np.minimum(length, length[path[-1]])
        steps = list(pairwise(path))
        room = [most[u] - places[u] if v == k else places[v] - least[v] if u == k else 1 for u, v in steps]
        amount = min(excess[path[0]], -excess[path[-1]], *room)
        for u, v in steps:
            if v == k:
                places[u] += amount
            elif u == k:
                places[v] -= amount
            else:
                labels[rows[u, v]] = v
        excess[path[0]] -= amount
        excess[path[-1]] += amount
    prices[:] = price[:k] - price[k]


def _choices(total: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The cheapest cluster of every row: its own if that is one of them."""
    known = np.maximum(labels, 0)
    stay = np.take_along_axis(total, known[:, None], axis=1)[:, 0] <= total.min(axis=1, initial=np.inf)
    return np.where(stay & (labels >= 0), labels, total.argmin(axis=1))


def _arcs(
    costs: np.ndarray, labels: np.ndarray, least: np.ndarray, most: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What it costs to move a row of each cluster to each other, at least, and which row (k + 1, k + 1)."""
    k = costs.shape[1]
    arcs, rows = np.full((k + 1, k + 1), np.inf), np.zeros((k + 1, k + 1), np.intp)
    for a in np.unique(labels):
        mine = np.flatnonzero(labels == a)
        moving = costs[mine] - costs[mine, a][:, None]
        rows[a, :k] = mine[moving.argmin(axis=0)]
        arcs[a, :k] = moving.min(axis=0)
    arcs[:k, k] = np.where(places < most, 0.0, np.inf)
    arcs[k, :k] = np.where(places > least, 0.0, np.inf)
    return arcs, rows


def _shortest(arcs: np.ndarray, excess: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The shortest path from nodes with too many rows to one with too few, and the lengths to all nodes on the way."""
    length, via = np.where(excess > 0, 0.0, np.inf), np.full(len(excess), -1)
    done = np.zeros(len(excess), bool)
    while True:
        waiting = np.where(done, np.inf, length)
        u = int(waiting.argmin())
        if not waiting[u] < np.inf:
            raise FloatingPointError("costs must be finite")
        if excess[u] < 0:
            break
        done[u] = True
        shorter = ~done & (length[u] + arcs[u] < length)
        length[shorter], via[shorter] = length[u] + arcs[u, shorter], u
    path = [u]
    while via[path[0]] >= 0:
        path.insert(0, int(via[path[0]]))
    return path, length
