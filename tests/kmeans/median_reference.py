"""Medians by sorting, and distances by their definition."""

import numpy as np
import pytest

METRICS = pytest.mark.parametrize("metric", ["l1", "l2"])
TYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def draws(seed=0):
    return np.random.default_rng(seed)


def lengths(X, centers, metric):
    difference = np.asarray(X, np.float64)[:, None] - np.asarray(centers, np.float64)
    return np.abs(difference).sum(axis=2) if metric == "l1" else np.sqrt((difference**2).sum(axis=2))


def weighted_median(x, w):
    """By sorting: the mean of the least values up to which lies at least, and more than, half of the weight."""
    x, w = x[w > 0], w[w > 0]
    order = np.argsort(x)
    until, half = np.cumsum(w[order]), w.sum() / 2
    return (x[order][np.argmax(until >= half)] + x[order][np.argmax(until > half)]) / 2
