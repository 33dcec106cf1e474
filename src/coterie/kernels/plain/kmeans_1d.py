"""Optimal K-means of one column: clusters are intervals of the sorted values, found by dynamic programming."""

import numpy as np


def interval_starts(
    values: np.ndarray,  # in  (m,) ascending, distinct
    weights: np.ndarray,  # in  (m,) above 0
    k: int,  # in  1 ... m
) -> np.ndarray:
    """Indices (k,) at which the `k` optimal intervals begin; the first is 0. O(k m^2) time.

    The cost of an interval is its sum of squares about its mean, relative to its first value, so nothing cancels
    whatever the origin and the distances between intervals.
    """
    cost = _interval_costs(*scale_values(values, weights))
    best, choices = cost[:, 0], []  # minimum cost of the values up to each, in one interval
    for _ in range(1, k):
        total = cost[:, 1:] + best[:-1]
        choices.append(total.argmin(axis=1) + 1)  # where the last interval begins
        best = total.min(axis=1)
    return _backtrack(choices, len(values))


def scale_values(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights divided by powers of two of their size; values are centered if that is exact.

    If all values are between half and twice their median, their differences from it are exact (Sterbenz' lemma).
    Otherwise they are at most three times their range away from zero, which is then an origin as good.
    """
    middle = values[len(values) // 2]
    low, high = sorted((middle / 2, middle * 2))
    if low <= values[0] and values[-1] <= high:
        values = values - middle
    return values / _power_of_two(max(-values[0], values[-1])), weights / _power_of_two(weights.max())


def _power_of_two(size: float) -> float:
    return float(2.0 ** np.clip(np.ceil(np.log2(size)), -1000, 1000)) if size > 0 else 1.0


def _interval_costs(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Cost of each interval (m, m): entry [j, i] is that of the values i to j; infinite for i > j."""
    m = len(values)
    cost = np.full((m, m), np.inf)
    weight, mean, squares = np.zeros(m), np.zeros(m), np.zeros(m)  # of the intervals from each value to value j
    for j in range(m):
        intervals = slice(j + 1)
        x = values[j] - values[intervals]
        step = x - mean[intervals]
        share = weights[j] / (weight[intervals] + weights[j])
        squares[intervals] += weight[intervals] * share * step**2
        mean[intervals] += share * step
        weight[intervals] += weights[j]
        cost[j, intervals] = squares[intervals]
    return cost


def _backtrack(choices: list[np.ndarray], m: int) -> np.ndarray:
    """Starts of the intervals, from the last to the first."""
    starts, end = [], m
    for choice in reversed(choices):
        end = int(choice[end - 1])
        starts.append(end)
    return np.array([0, *reversed(starts)])
