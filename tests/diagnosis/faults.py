"""Tables with one known problem each, and clean tables."""

from __future__ import annotations

import numpy as np

from coterie import AgglomerativeClustering, KMeans
from coterie.datasets import make_moons, make_rings


def blobs(seed, n=600, d=2, k=3, apart=8.0):
    """Round normal clusters of equal size and unit width, at least `apart` from each other; and their labels."""
    rng = np.random.default_rng(seed)
    side = apart * max(2.0, 2.2 * k ** (1 / d))
    while True:
        centers = rng.uniform(0, side, (k, d))
        distances = np.linalg.norm(centers[:, None] - centers[None], axis=2)
        if distances[~np.eye(k, dtype=bool)].min(initial=np.inf) >= apart:
            break
        side *= 1.02
    y = np.arange(n) % k
    return centers[y] + rng.normal(size=(n, d)), y


def unscaled(seed, d=3):
    X, y = blobs(seed, d=d)
    return X * np.geomspace(1, 1000, d), y


def with_column(column):
    def table(seed):
        X, y = blobs(seed)
        return np.column_stack([X, column(X)]), y

    return table


def with_missing_values(seed):
    X, y = blobs(seed)
    X[::9, 1] = np.nan
    return X, y


def with_copies(seed):
    X, y = blobs(seed)
    return np.repeat(X[:100], 3, axis=0), np.repeat(y[:100], 3)


def with_outliers(seed, d=2):
    """One row in two hundred is 80 standard deviations away, each in a different direction."""
    rng = np.random.default_rng(seed)
    X, y = blobs(seed, d=d)
    direction = rng.normal(size=(3, d))
    X[:3] = X.mean(axis=0) + 80 * direction / np.linalg.norm(direction, axis=1)[:, None]
    return X, y


def one_cloud(seed, n=400, d=2):
    return np.random.default_rng(seed).normal(size=(n, d)), None


def even(seed, n=400, d=2):
    return np.random.default_rng(seed).uniform(size=(n, d)), None


def many_columns(seed):
    return np.random.default_rng(seed).normal(size=(300, 200)), None


def long_ones(seed, d=2):
    """Two clusters, twelve times as long as wide, side by side: K-means gains more by cutting across both."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, d))
    X[:, 0] *= 12
    y = np.arange(600) % 2
    X[:, 1] += 12 * y
    return X, y


def heavy(seed, d=2):
    rng = np.random.default_rng(seed)
    X, y = blobs(seed, d=d, k=2, apart=60)
    centers = np.array([X[y == j].mean(axis=0) for j in (0, 1)])
    return centers[y] + rng.normal(size=X.shape) / np.sqrt(rng.chisquare(3, len(X)) / 3)[:, None], y


def unequally_wide(seed, d=2):
    rng = np.random.default_rng(seed)
    y = np.arange(600) % 2
    X = rng.normal(size=(600, d)) * np.where(y == 0, 1, 5)[:, None]
    X[:, 0] += 16 * y
    return X, y


def unequally_large(seed):
    X, _ = blobs(seed, n=1200, k=2)
    index = np.flatnonzero((np.arange(1200) % 2 == 0) | (np.arange(1200) < 80))
    return X[index], index % 2


def lone_row(seed):
    X, y = blobs(seed)
    X[0] = X.max(axis=0) + 200
    return X, np.where(np.arange(len(X)) == 0, 3, y)


def one_ring(seed):
    X, y = make_rings(600, noise=0.02, random_state=seed)
    return X[y == 1], KMeans(1).fit(X[y == 1])


def halved_moons(seed):
    X, _ = make_moons(600, noise=0.03, random_state=seed)
    return X, AgglomerativeClustering(2, linkage="complete").fit(X)


def halved_rings(seed):
    X, _ = make_rings(600, noise=0.02, random_state=seed)
    return X, KMeans(2, random_state=seed).fit(X)


def rings(seed):
    return make_rings(600, noise=0.02, random_state=seed)[0], None


def moons(seed):
    return make_moons(600, noise=0.03, random_state=seed)[0], None


def fitted(k, table, **options):
    def fault(seed):
        X, _ = table(seed)
        return X, KMeans(k, random_state=seed, **options).fit(X)

    return fault


def mislabelled(seed):
    """A sixth of the rows have the label of another cluster."""
    X, y = blobs(seed)
    return X, np.where(np.arange(len(X)) // 3 % 6 == 0, (y + 1) % 3, y)


def bad_optimum(seed):
    """K-means from a poor initialisation: two centers in one cluster, one center between two distant clusters."""
    X = np.repeat(blobs(seed, k=1, n=200)[0][None], 3, axis=0) + np.array([[0, 0], [400, 0], [400, 12]])[:, None]
    X = X.reshape(-1, 2)
    start = np.array([X[0], X[1], X[200:].mean(axis=0)])
    return X, KMeans(3, init=start, n_init=1).fit(X)


FAULTS = {
    "missing_values": [with_missing_values],
    "unscaled_columns": [unscaled, lambda seed: unscaled(seed, d=20)],
    "dominating_column": [unscaled],
    "constant_columns": [with_column(lambda X: np.full(len(X), 7.0)), with_column(lambda X: np.arange(len(X)) == 5)],
    "correlated_columns": [with_column(lambda X: 3 - 2 * X[:, 0])],
    "duplicated_rows": [with_copies],
    "outliers": [with_outliers, lambda seed: (with_outliers(seed)[0], None), lambda seed: with_outliers(seed, d=100)],
    "concentration": [many_columns],
    "evenly_spread": [even, lambda seed: even(seed, d=3)],
    "one_cluster": [one_cloud, lambda seed: one_cloud(seed, d=30), lambda seed: one_cloud(seed, n=100, d=1), even],
    "elongated_clusters": [long_ones, lambda seed: long_ones(seed, d=10)],
    "heavy_tails": [heavy, lambda seed: heavy(seed, d=8)],
    "unequal_spread": [unequally_wide, lambda seed: unequally_wide(seed, d=10)],
    "unequal_sizes": [unequally_large],
    "tiny_clusters": [lone_row],
    "hollow_clusters": [one_ring, fitted(1, lambda seed: blobs(seed, k=2, apart=12))],
    "nested_clusters": [rings, halved_rings],
    "missed_pieces": [moons, halved_moons, lambda seed: (long_ones(seed)[0], None)],
    "too_many_clusters": [
        fitted(5, blobs),
        fitted(2, one_cloud),
        fitted(2, lambda seed: one_cloud(seed, d=5), search="none"),
    ],
    "too_few_clusters": [fitted(2, lambda seed: blobs(seed, k=4)), fitted(1, lambda seed: blobs(seed, d=20, k=2))],
    "boundary_rows": [mislabelled],
    "unstable_starts": [fitted(6, one_cloud)],
    "missed_optimum": [bad_optimum],
}
