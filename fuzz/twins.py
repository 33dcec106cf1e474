"""Plain definitions of metrics and distances, in NumPy alone, that the library is compared with."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

Array = np.ndarray[Any, Any]


def contingency(a: Array, b: Array, w: Array) -> Array:
    """Weight of the rows with each pair of labels (classes, clusters)."""
    classes, i = np.unique(a, return_inverse=True)
    clusters, j = np.unique(b, return_inverse=True)
    table = np.zeros((len(classes), len(clusters)))
    np.add.at(table, (i, j), w)
    return table


def pairs_in_common(a: Array, b: Array) -> tuple[int, int, int, int]:
    """Pairs of rows: together in both, in `a` only, in `b` only, in neither."""
    upper = np.triu_indices(len(a), 1)
    in_a, in_b = (a[:, None] == a)[upper], (b[:, None] == b)[upper]
    return int((in_a & in_b).sum()), int((in_a & ~in_b).sum()), int((~in_a & in_b).sum()), int((~in_a & ~in_b).sum())


def rand(a: Array, b: Array) -> float:
    both, first, second, neither = pairs_in_common(a, b)
    total = both + first + second + neither
    return 1.0 if total == 0 else (both + neither) / total


def fowlkes_mallows(a: Array, b: Array) -> float:
    """1 for equal partitions, also if every cluster has one row."""
    both, first, second, _ = pairs_in_common(a, b)
    if first == second == 0:
        return 1.0
    return 0.0 if both == 0 else both / np.sqrt((both + first) * (both + second))


def mutual_information(table: Array) -> float:
    p = table / table.sum()
    outer = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
    there = p > 0
    return float((p[there] * np.log(p[there] / outer[there])).sum())


def entropy(weights: Array) -> float:
    p = weights[weights > 0] / weights.sum()
    return float(-(p * np.log(p)).sum())


def purity(table: Array) -> float:
    return float(table.max(axis=0).sum() / table.sum())


def best_match(table: Array) -> float:
    """Largest weight on the diagonal over all ways to match clusters with classes."""
    square = np.zeros((max(table.shape),) * 2)
    square[: table.shape[0], : table.shape[1]] = table
    rows = np.arange(len(square))
    return max(float(square[rows, list(order)].sum()) for order in permutations(range(len(square))))


def within_squares(X: Array, labels: Array, w: Array) -> float:
    total = 0.0
    for label in np.unique(labels):
        mine = labels == label
        if w[mine].sum() > 0:
            mean = np.average(X[mine], axis=0, weights=w[mine])
            total += float(w[mine] @ ((X[mine] - mean) ** 2).sum(axis=1))
    return total


def davies_bouldin(X: Array, labels: Array, w: Array) -> float:
    groups = [labels == label for label in np.unique(labels)]
    means = np.array([np.average(X[g], axis=0, weights=w[g]) for g in groups])
    widths = [np.average(np.linalg.norm(X[g] - m, axis=1), weights=w[g]) for g, m in zip(groups, means, strict=True)]
    gaps = np.linalg.norm(means[:, None] - means, axis=2)
    ratios = np.where(gaps > 0, np.add.outer(widths, widths) / gaps, np.inf)  # of equal means, also if both are 0
    worst = np.where(np.eye(len(means), dtype=bool), 0.0, ratios).max(axis=1)
    return float(np.mean(worst))


def silhouettes(X: Array, labels: Array) -> Array:
    distances = cdist(X, X)
    found = np.zeros(len(X))
    for i in range(len(X)):
        own = (labels == labels[i]) & (np.arange(len(X)) != i)
        if own.any():
            a = distances[i, own].mean()
            b = min(distances[i, labels == other].mean() for other in np.unique(labels) if other != labels[i])
            found[i] = 0.0 if max(a, b) == 0 else (b - a) / max(a, b)
    return found


def dunn(X: Array, labels: Array) -> float:
    distances, same = cdist(X, X), labels[:, None] == labels
    return float(distances[~same].min() / distances[same].max())


def dtw_table(x: Array, y: Array, cost: str = "squared", radius: float = np.inf) -> Array:
    """Smallest cost of a path to each pair of moments, by the recursion that defines it (lengths, channels)."""
    gaps = np.abs(x[:, None] - y[None])
    local = (gaps**2).sum(axis=2) if cost == "squared" else gaps.sum(axis=2)
    total = np.full((len(x) + 1, len(y) + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            if abs(i - j) <= radius:
                total[i + 1, j + 1] = local[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return total[1:, 1:]


def soft_dtw(x: Array, y: Array, gamma: float) -> float:
    local = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    total = np.full((len(x) + 1, len(y) + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            before = -np.array([total[i, j], total[i, j + 1], total[i + 1, j]]) / gamma
            total[i + 1, j + 1] = local[i, j] - gamma * np.logaddexp.reduce(before)
    return float(total[-1, -1])


def cosine_costs(X: Array, centers: Array) -> Array:
    """One minus the cosine of each row and each center (n, k), from their difference: small values lose no digits."""
    X, centers = (_unit_rows(rows) for rows in (X, centers))
    return 0.5 * ((X[:, None] - centers) ** 2).sum(axis=2)


def _unit_rows(X: Array) -> Array:
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1.0)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1.0)


def lengths(gaps: Array, metric: str) -> Array:
    """Lengths (n, k) of differences (n, k, d) in the l1 or l2 norm."""
    return np.abs(gaps).sum(axis=2) if metric == "l1" else np.sqrt((gaps**2).sum(axis=2))


def fuzzy_costs(squares: Array, m: float) -> Array:
    """The cost of rows (n,) at optimal memberships, from their squared distances to the centers (n, k)."""
    low = squares.min(axis=1, keepdims=True)
    ratio = np.divide(low, squares, out=np.zeros_like(squares), where=squares > 0)
    shares = (ratio ** (1.0 / (m - 1.0))).sum(axis=1)
    return np.where(low[:, 0] > 0, low[:, 0] * shares ** (1.0 - m), 0.0)
