"""K-medians and geometric medians: L1 and Euclidean distances, and the sums from which medians are computed."""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from coterie.kernels.plain import Weights, cluster_sums, weights

MIN_DISTANCE = 2.0**-960  # minimum positive distance of a row to a center, so that its inverse is finite


class Deviations(NamedTuple):
    """Sums of one pass with L1 distances."""

    weight: np.ndarray  # (k,) of w
    deviation: np.ndarray  # (k, d) of w |x - c|
    moved: int  # number of rows whose label changed


class BinCounts(NamedTuple):
    """Weight and range of the values in each bin of each cluster and column."""

    weight: np.ndarray  # (k, d, bins)
    minimum: np.ndarray  # (k, d, bins); infinity in an empty bin
    maximum: np.ndarray  # (k, d, bins); minus infinity in an empty bin


class WeiszfeldSums(NamedTuple):
    """Sums of a step of Weiszfeld's algorithm for the geometric median."""

    at_center: np.ndarray  # (k,) of w, over rows equal to the center
    inverse: np.ndarray  # (k,) of w / |x - c|, over the other rows
    direction: np.ndarray  # (k, d) of w (x - c) / |x - c|
    cost: np.ndarray  # (k,) of w |x - c|


def deviations(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> Deviations:
    """Assign each row to its nearest center by L1 distance, the first one if several are, and update `labels`."""
    k = len(centers)
    nearest_center = cdist(X, centers, "cityblock").argmin(axis=1).astype(np.int32)
    moved = int(np.count_nonzero(nearest_center != labels))
    labels[:] = nearest_center
    w = np.broadcast_to(weights(w), len(X))
    weighted = w[:, None] * np.abs(X.astype(np.float64) - centers.take(nearest_center, axis=0))
    return Deviations(np.bincount(nearest_center, w, k), cluster_sums(weighted, nearest_center, k), moved)


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """L1 distances (n, k); columns are added in order, in float64."""
    return cdist(X, centers, "cityblock").astype(X.dtype, order="C", copy=False)


def assigned_distances(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, metric: str) -> np.ndarray:
    """Distance (n,) of each row to the center of its cluster; `metric` is "l1" or "l2"."""
    difference = X.astype(np.float64) - centers.take(labels, axis=0)
    return np.abs(difference).sum(axis=1) if metric == "l1" else _norms(difference)


def bin_counts(
    X: np.ndarray, w: Weights, labels: np.ndarray, low: np.ndarray, high: np.ndarray, edges: np.ndarray
) -> BinCounts:
    """Histograms of the values between `low` and `high` (k, d), both inclusive.

    A bin contains values up to its edge; the last one those above all edges. `edges` (k, d, bins - 1) ascend. Rows of
    weight 0 are ignored.
    """
    k, d, bins = *low.shape, edges.shape[2] + 1
    w = np.broadcast_to(weights(w), len(X))
    x = X.astype(np.float64)
    row, column = np.nonzero((x >= low[labels]) & (x <= high[labels]) & (w[:, None] > 0))
    x, cluster = x[row, column], labels[row]
    bin_index = (cluster * d + column) * bins + (edges[cluster, column] < x[:, None]).sum(axis=1)
    minimum, maximum = np.full(k * d * bins, np.inf), np.full(k * d * bins, -np.inf)
    np.minimum.at(minimum, bin_index, x)
    np.maximum.at(maximum, bin_index, x)
    sums = (np.bincount(bin_index, w[row], k * d * bins), minimum, maximum)
    return BinCounts(*(values.reshape(k, d, bins) for values in sums))


def weiszfeld_sums(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> WeiszfeldSums:
    """Sums of a step of Weiszfeld's algorithm for the given labels."""
    k = len(centers)
    w = np.broadcast_to(weights(w), len(X))
    difference = X.astype(np.float64) - centers.take(labels, axis=0)
    distance = _norms(difference)
    inverse = np.where(distance > 0, w / np.where(distance > 0, np.maximum(distance, MIN_DISTANCE), 1.0), 0.0)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(labels, values, k)

    direction = cluster_sums(inverse[:, None] * difference, labels, k)
    return WeiszfeldSums(total(np.where(distance > 0, 0.0, w)), total(inverse), direction, total(w * distance))


def _norms(difference: np.ndarray) -> np.ndarray:
    """Euclidean norms (n,); each row is scaled by a power of two, so that squares do not underflow or overflow."""
    columns = np.ascontiguousarray(difference.T)
    _, exponent = np.frexp(np.abs(columns).max(axis=0))
    unit = np.ldexp(0.5, exponent)
    return np.sqrt(np.square(columns / unit).sum(axis=0)) * unit
