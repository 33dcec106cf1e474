"""Unsquared distances and what medians are made of, compiled; the NumPy twin says what each name means."""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu import _read
from coterie.kernels.cpu.exact import distance
from coterie.kernels.cpu.jit import jit
from coterie.kernels.plain import Weights, weights
from coterie.kernels.plain.medians import NEAREST, Counts, Deviations, Pulls

STRIP = 8  # centers whose distances are taken together: what the columns add up stays in registers


def deviations(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> Deviations:
    weight, spread = np.zeros(len(centers)), np.zeros(centers.shape)
    moved = add_deviations(_read(X), _read(weights(w)), _read(centers), strips(centers), labels, weight, spread)
    return Deviations(weight, spread, int(moved))


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    out = np.empty((len(X), len(centers)), X.dtype)
    all_distances(_read(X), strips(centers), out)
    return out


def own_distances(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, metric: str) -> np.ndarray:
    out = np.empty(len(X))
    take_own_distances(_read(X), _read(centers), _read(labels), metric == "l1", out)
    return out


def counts(
    X: np.ndarray, w: Weights, labels: np.ndarray, low: np.ndarray, high: np.ndarray, edges: np.ndarray
) -> Counts:
    shape = (*low.shape, edges.shape[2] + 1)
    found = Counts(np.zeros(shape), np.full(shape, np.inf), np.full(shape, -np.inf))
    count(_read(X), _read(weights(w)), _read(labels), _read(low), _read(high), _read(edges), *found)
    return found


def pulls(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> Pulls:
    k = len(centers)
    found = Pulls(np.zeros(k), np.zeros(k), np.zeros(centers.shape), np.zeros(k))
    add_pulls(_read(X), _read(weights(w)), _read(centers), _read(labels), *found)
    return found


def strips(centers: np.ndarray) -> np.ndarray:
    """(k / STRIP, d, STRIP) in float64; those that fill up the last are infinitely far."""
    k, d = centers.shape
    padded = np.full((-(-k // STRIP) * STRIP, d), np.inf)
    padded[:k] = centers
    return np.ascontiguousarray(padded.reshape(-1, STRIP, d).transpose(0, 2, 1))


@jit
def take_strip(
    X,  # in  (n, d)
    i,  # in  the row
    strips,  # in  (k / STRIP, d, STRIP)
    s,  # in  the strip
    out,  # out (STRIP,)
):
    """L1 distances of a row to a strip of centers, added up in the order of the columns."""
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
    spread,  # out (k, d)
):
    """How many rows changed cluster."""
    stride = 0 if w.shape[0] == 1 else 1
    near, moved = np.empty(STRIP), 0
    for i in range(X.shape[0]):
        label, least = 0, np.inf
        for s in range(strips.shape[0]):
            take_strip(X, i, strips, s, near)
            for j in range(STRIP):
                if near[j] < least:
                    label, least = s * STRIP + j, near[j]
        moved += labels[i] != label
        labels[i] = label
        wi = w[i * stride]
        weight[label] += wi
        for t in range(X.shape[1]):
            spread[label, t] += wi * abs(np.float64(X[i, t]) - np.float64(centers[label, t]))
    return moved


@jit
def all_distances(
    X,  # in  (n, d)
    strips,  # in  (k / STRIP, d, STRIP)
    out,  # out (n, k)
):
    near = np.empty(STRIP)
    for i in range(X.shape[0]):
        for s in range(strips.shape[0]):
            take_strip(X, i, strips, s, near)
            for j in range(min(STRIP, out.shape[1] - s * STRIP)):
                out[i, s * STRIP + j] = near[j]


@jit
def take_own_distances(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # in  (n,)
    manhattan,  # in  whether in L1
    out,  # out (n,)
):
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
def count(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    labels,  # in  (n,)
    low,  # in  (k, d)
    high,  # in  (k, d)
    edges,  # in  (k, d, bins - 1)
    weight,  # out (k, d, bins)
    least,  # out (k, d, bins)
    most,  # out (k, d, bins)
):
    """A number of bins that is a power of two is halved until one is left."""
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
                least[j, t, b] = min(least[j, t, b], x)
                most[j, t, b] = max(most[j, t, b], x)


@jit
def add_pulls(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    centers,  # in  (k, d)
    labels,  # in  (n,)
    on,  # out (k,)
    inverse,  # out (k,)
    pull,  # out (k, d)
    cost,  # out (k,)
):
    stride = 0 if w.shape[0] == 1 else 1
    for i in range(X.shape[0]):
        j, wi = labels[i], w[i * stride]
        apart = distance(X, i, centers, j, 1.0)
        if apart == 0.0:
            on[j] += wi
            continue
        share = wi / max(apart, NEAREST)
        cost[j] += wi * apart
        inverse[j] += share
        for t in range(X.shape[1]):
            pull[j, t] += share * (np.float64(X[i, t]) - np.float64(centers[j, t]))
