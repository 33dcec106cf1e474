"""The best clusters of one column: runs of its sorted values."""

from __future__ import annotations

import numpy as np


def cuts(
    values: np.ndarray,  # in  (m,) ascending, no two alike
    weights: np.ndarray,  # in  (m,) above 0
    k: int,  # in  1 ... m
) -> np.ndarray:
    """Where each of the `k` runs of least total squared deviation from their means begins (k,); the first at 0.

    Every run's cost is a sum of squares about its own mean, taken from its first value: whatever the origin and
    however far apart the runs, nothing cancels. k m^2 operations.
    """
    cost = _costs(*in_units(values, weights))
    best, choices = cost[:, 0], []  # of the values up to each, in one run
    for _ in range(1, k):
        total = cost[:, 1:] + best[:-1]
        choices.append(total.argmin(axis=1) + 1)  # where the last run begins
        best = total.min(axis=1)
    return _walk_back(choices, len(values))


def in_units(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same in powers of two of their size, moved to the origin where that changes no digit.

    Where all values lie between half of their median and twice that, the difference from it is exact (Sterbenz);
    elsewhere they are no farther from zero than three times their range, and zero is as good an origin.
    """
    middle = values[len(values) // 2]
    low, high = sorted((middle / 2, middle * 2))
    if low <= values[0] and values[-1] <= high:
        values = values - middle
    return values / _power_of_two(max(-values[0], values[-1])), weights / _power_of_two(weights.max())


def _power_of_two(size: float) -> float:
    return float(2.0 ** np.clip(np.ceil(np.log2(size)), -1000, 1000)) if size > 0 else 1.0


def _costs(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The cost of every run (m, m): of the values i ... j at [j, i], infinite for i > j."""
    m = len(values)
    cost = np.full((m, m), np.inf)
    weight, mean, squares = np.zeros(m), np.zeros(m), np.zeros(m)  # of the runs from each value to the j-th
    for j in range(m):
        runs = slice(j + 1)
        x = values[j] - values[runs]
        step = x - mean[runs]
        share = weights[j] / (weight[runs] + weights[j])
        squares[runs] += weight[runs] * share * step**2
        mean[runs] += share * step
        weight[runs] += weights[j]
        cost[j, runs] = squares[runs]
    return cost


def _walk_back(choices: list[np.ndarray], m: int) -> np.ndarray:
    starts, end = [], m
    for choice in reversed(choices):
        end = int(choice[end - 1])
        starts.append(end)
    return np.array([0, *reversed(starts)])
