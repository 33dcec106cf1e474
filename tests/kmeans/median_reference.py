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
    """Weighted median by sorting: the mean of the smallest values up to which the weight is >= half and > half."""
    x, w = x[w > 0], w[w > 0]
    order = np.argsort(x)
    cumulative, half = np.cumsum(w[order]), w.sum() / 2
    return (x[order][np.argmax(cumulative >= half)] + x[order][np.argmax(cumulative > half)]) / 2
