"""Sums of unsquared distances, and what medians are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.kernels.plain import Weights, weights

NEAREST = 2.0**-960  # a row that is not on a center counts as no nearer than this: the inverse must be finite


class Deviations(NamedTuple):
    """What one pass under the L1 distance adds up."""

    weight: np.ndarray  # (k,) of w
    spread: np.ndarray  # (k, d) of w |x - c|, column by column
    moved: int  # rows that changed cluster


class Counts(NamedTuple):
    """What lies in each bin of each cluster and column."""

    weight: np.ndarray  # (k, d, bins)
    least: np.ndarray  # (k, d, bins) the least value; infinity in an empty bin
    most: np.ndarray  # (k, d, bins) the largest; minus infinity


class Pulls(NamedTuple):
    """How the rows of each cluster pull at its center, each with its weight in its own direction."""

    on: np.ndarray  # (k,) of w, of the rows on the center
    inverse: np.ndarray  # (k,) of w / |x - c|, of the others
    pull: np.ndarray  # (k, d) of w (x - c) / |x - c|
    cost: np.ndarray  # (k,) of w |x - c|


def deviations(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> Deviations:
    """Every row to its nearest center in L1, of several the first; `labels` is brought up to date."""
    k = len(centers)
    found = _manhattan(X, centers).argmin(axis=1).astype(np.int32)
    moved = int(np.count_nonzero(found != labels))
    labels[:] = found
    w = np.broadcast_to(weights(w), len(X))
    apart = w[:, None] * np.abs(X.astype(np.float64) - centers[found])
    spread = np.stack([np.bincount(found, column, k) for column in apart.T], axis=1)
    return Deviations(np.bincount(found, w, k), spread, moved)


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """L1 distances (n, k), taken in float64 in the order of the columns."""
    return _manhattan(X, centers).astype(X.dtype, copy=False)


def own_distances(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, metric: str) -> np.ndarray:
    """The distance of every row to the center of its cluster."""
    difference = X.astype(np.float64) - centers[labels]
    return np.abs(difference).sum(axis=1) if metric == "l1" else _lengths(difference)


def counts(
    X: np.ndarray, w: Weights, labels: np.ndarray, low: np.ndarray, high: np.ndarray, edges: np.ndarray
) -> Counts:
    """The values from `low` to `high` (k, d), both among them, in bins: each up to its edge, the last beyond all.

    `edges` (k, d, bins - 1) ascend; rows of weight zero count for nothing.
    """
    k, d, bins = *low.shape, edges.shape[2] + 1
    w = np.broadcast_to(weights(w), len(X))
    x = X.astype(np.float64)
    row, column = np.nonzero((x >= low[labels]) & (x <= high[labels]) & (w[:, None] > 0))
    x, at = x[row, column], labels[row]
    place = (at * d + column) * bins + (edges[at, column] < x[:, None]).sum(axis=1)
    least, most = np.full(k * d * bins, np.inf), np.full(k * d * bins, -np.inf)
    np.minimum.at(least, place, x)
    np.maximum.at(most, place, x)
    found = (np.bincount(place, w[row], k * d * bins), least, most)
    return Counts(*(values.reshape(k, d, bins) for values in found))


def pulls(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> Pulls:
    """The terms of a step of Weiszfeld's, at these labels."""
    k = len(centers)
    w = np.broadcast_to(weights(w), len(X))
    difference = X.astype(np.float64) - centers[labels]
    apart = _lengths(difference)
    inverse = np.where(apart > 0, w / np.where(apart > 0, np.maximum(apart, NEAREST), 1.0), 0.0)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(labels, values, k)

    pull = np.stack([total(inverse * column) for column in difference.T], axis=1)
    return Pulls(total(np.where(apart > 0, 0.0, w)), total(inverse), pull, total(w * apart))


def _manhattan(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    total = np.zeros((len(X), len(centers)))
    for x, c in zip(X.T.astype(np.float64), centers.T.astype(np.float64), strict=True):
        total += np.abs(x[:, None] - c)
    return total


def _lengths(difference: np.ndarray) -> np.ndarray:
    """Euclidean lengths, each row in a unit of its own: squares of small and of large numbers are numbers, too."""
    size = np.abs(difference).max(axis=1)
    unit = np.where(size > 0, 2.0 ** np.ceil(np.log2(np.where(size > 0, size, 1.0))), 1.0)
    return np.sqrt(((difference / unit[:, None]) ** 2).sum(axis=1)) * unit
