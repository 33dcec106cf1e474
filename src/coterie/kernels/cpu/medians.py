"""K-medians and geometric medians, compiled; for the definitions and arguments see `plain.medians`."""

import numpy as np

from coterie.kernels.cpu import read_only
from coterie.kernels.cpu.exact_distance import distance
from coterie.kernels.cpu.jit import jit
from coterie.kernels.plain import Weights, weights
from coterie.kernels.plain.medians import MIN_DISTANCE, BinCounts, Deviations, WeiszfeldSums

STRIP = 8  # centers whose distances are computed together, in registers


def deviations(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> Deviations:
    weight, deviation = np.zeros(len(centers)), np.zeros(centers.shape)
    moved = add_deviations(*map(read_only, (X, weights(w), centers)), strips(centers), labels, weight, deviation)
    return Deviations(weight, deviation, int(moved))


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    out = np.empty((len(X), len(centers)), X.dtype)
    all_distances(read_only(X), strips(centers), out)
    return out


def assigned_distances(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, metric: str) -> np.ndarray:
    out = np.empty(len(X))
    write_assigned_distances(read_only(X), read_only(centers), read_only(labels), metric == "l1", out)
    return out


def bin_counts(
    X: np.ndarray, w: Weights, labels: np.ndarray, low: np.ndarray, high: np.ndarray, edges: np.ndarray
) -> BinCounts:
    shape = (*low.shape, edges.shape[2] + 1)
    sums = BinCounts(np.zeros(shape), np.full(shape, np.inf), np.full(shape, -np.inf))
    add_to_bins(*map(read_only, (X, weights(w), labels, low, high, edges)), *sums)
    return sums


def weiszfeld_sums(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> WeiszfeldSums:
    k = len(centers)
    sums = WeiszfeldSums(np.zeros(k), np.zeros(k), np.zeros(centers.shape), np.zeros(k))
    add_weiszfeld_sums(read_only(X), read_only(weights(w)), read_only(centers), read_only(labels), *sums)
    return sums


def strips(centers: np.ndarray) -> np.ndarray:
    """Centers in strips (k / STRIP, d, STRIP) in float64; the last one is padded with infinity."""
    k, d = centers.shape
    padded = np.full((-(-k // STRIP) * STRIP, d), np.inf)
    padded[:k] = centers
    return np.ascontiguousarray(padded.reshape(-1, STRIP, d).transpose(0, 2, 1))


@jit
def strip_distances(
    X,  # in  (n, d)
    i,  # in  index of the row
    strips,  # in  (k / STRIP, d, STRIP)
    s,  # in  index of the strip
    out,  # out (STRIP,)
):
    """L1 distances of a row to a strip of centers, added in the order of the columns."""
    a = b = c = d = e = f = g = h = 0.0
    for t in range(X.shape[1]):
        x = np.float64(X[i, t])
        a += abs(x - strips[s, t, 0])
        b += abs(x - strips[s, t, 1])
        c += abs(x - strips[s, t, 2])
        d += abs(x - strips[s, t, 3])
        e += abs(x - strips[s, t, 4])
        f += abs(x - strips[s, t, 5])
        g += abs(x - strips[s, t, 6])
        h += abs(x - strips[s, t, 7])
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = a, b, c, d, e, f, g, h


@jit
def add_deviations(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    centers,  # in  (k, d)
    strips,  # in  (k / STRIP, d, STRIP)
    labels,  # i/o (n,)
    weight,  # out (k,)
    deviation,  # out (k, d)
):
    """Assign rows to their nearest centers and add deviations; return the number of labels that changed."""
    stride = 0 if w.shape[0] == 1 else 1
    near, moved = np.empty(STRIP), 0
    for i in range(X.shape[0]):
        label, minimum = 0, np.inf
        for s in range(strips.shape[0]):
            strip_distances(X, i, strips, s, near)
            for j in range(STRIP):
                if near[j] < minimum:
                    label, minimum = s * STRIP + j, near[j]
        moved += labels[i] != label
        labels[i] = label
        wi = w[i * stride]
        weight[label] += wi
        for t in range(X.shape[1]):
            deviation[label, t] += wi * abs(np.float64(X[i, t]) - np.float64(centers[label, t]))
    return moved


@jit
def all_distances(
    X,  # in  (n, d)
    strips,  # in  (k / STRIP, d, STRIP)
    out,  # out (n, k)
):
    """L1 distances of all rows to all centers."""
    near = np.empty(STRIP)
    for i in range(X.shape[0]):
        for s in range(strips.shape[0]):
            strip_distances(X, i, strips, s, near)
            for j in range(min(STRIP, out.shape[1] - s * STRIP)):
                out[i, s * STRIP + j] = near[j]


@jit
def write_assigned_distances(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # in  (n,)
    manhattan,  # in  whether distances are L1
    out,  # out (n,)
):
    """Distance of each row to the center of its cluster."""
    for i in range(X.shape[0]):
        j = labels[i]
        if manhattan:
            total = 0.0
            for t in range(X.shape[1]):
                total += abs(np.float64(X[i, t]) - np.float64(centers[j, t]))
            out[i] = total
        else:
            out[i] = distance(X, i, centers, j, 1.0)


@jit
def add_to_bins(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    labels,  # in  (n,)
    low,  # in  (k, d)
    high,  # in  (k, d)
    edges,  # in  (k, d, bins - 1)
    weight,  # out (k, d, bins)
    minimum,  # out (k, d, bins)
    maximum,  # out (k, d, bins)
):
    """Histograms; the bin is found by bisection, so the number of bins must be a power of two."""
    stride = 0 if w.shape[0] == 1 else 1
    for i in range(X.shape[0]):
        j, wi = labels[i], w[i * stride]
        if wi == 0.0:
            continue
        for t in range(X.shape[1]):
            x = np.float64(X[i, t])
            if low[j, t] <= x <= high[j, t]:
                b, half = 0, weight.shape[2] >> 1
                while half > 0:
                    if edges[j, t, b + half - 1] < x:
                        b += half
                    half >>= 1
                weight[j, t, b] += wi
                minimum[j, t, b] = min(minimum[j, t, b], x)
                maximum[j, t, b] = max(maximum[j, t, b], x)


@jit
def add_weiszfeld_sums(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    centers,  # in  (k, d)
    labels,  # in  (n,)
    at_center,  # out (k,)
    inverse,  # out (k,)
    direction,  # out (k, d)
    cost,  # out (k,)
):
    """Sums of Weiszfeld's algorithm."""
    stride = 0 if w.shape[0] == 1 else 1
    for i in range(X.shape[0]):
        j, wi = labels[i], w[i * stride]
        length = distance(X, i, centers, j, 1.0)
        if length == 0.0:
            at_center[j] += wi
            continue
        ratio = wi / max(length, MIN_DISTANCE)
        cost[j] += wi * length
        inverse[j] += ratio
        for t in range(X.shape[1]):
            direction[j, t] += ratio * (np.float64(X[i, t]) - np.float64(centers[j, t]))
