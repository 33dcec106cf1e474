"""Adding a constant to all rows changes no index, as long as the sums are exact."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import metrics

rng = np.random.default_rng(7)
LABELS = rng.integers(0, 5, 900)
ROWS = (rng.integers(-512, 512, (900, 3)) + 20 * LABELS[:, None]) / 256
WEIGHTS = rng.integers(0, 4, 900).astype(float)
WEIGHTS[:5] = 0
INDICES = {
    "inertia": metrics.inertia,
    "bcss": metrics.bcss,
    "tss": lambda X, labels, **how: metrics.tss(X, **how),
    "calinski_harabasz": metrics.calinski_harabasz_score,
    "davies_bouldin": metrics.davies_bouldin_score,
    **{
        f"silhouette {method} {metric}": lambda X, labels, method=method, metric=metric, **how: (
            metrics.silhouette_score(X, labels, approximation=method, metric=metric, **how)
        )
        for method in ("exact", "simplified", "medoid")
        for metric in ("euclidean", "sqeuclidean")
    },
    **{
        f"dunn {inter} {intra} {metric}": lambda X, labels, inter=inter, intra=intra, metric=metric, **how: (
            metrics.dunn_score(X, labels, intercluster=inter, intracluster=intra, metric=metric, **how)
        )
        for inter, intra in (("centroid", "centroid"), ("average", "complete"))
        for metric in ("euclidean", "manhattan", "chebyshev")
    },
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("dtype, offsets", [(np.float64, (2.0**20, -(2.0**44), 2.0**44)), (np.float32, (2.0**15,))])
def test_a_constant_added_to_all_rows_changes_nothing(name, weights, dtype, offsets):
    rows = ROWS.astype(dtype)
    expected = INDICES[name](rows, LABELS, sample_weight=weights)
    for offset in offsets:
        moved = rows + dtype(offset)
        np.testing.assert_array_equal(moved - dtype(offset), rows)
        assert INDICES[name](moved, LABELS, sample_weight=weights) == expected


def exact(rows, labels):
    """Davies-Bouldin and Calinski-Harabasz in numbers of 64 bits of precision, near the origin."""
    rows = (rows - rows[0]).astype(np.longdouble)
    groups = [rows[labels == label] for label in np.unique(labels)]
    means = np.array([group.mean(axis=0) for group in groups])
    wide = np.array([np.sqrt(((g - m) ** 2).sum(axis=1)).mean() for g, m in zip(groups, means, strict=True)])
    apart = np.sqrt(((means[:, None] - means) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    within = sum(((g - m) ** 2).sum() for g, m in zip(groups, means, strict=True))
    between = sum(len(g) * ((m - rows.mean(axis=0)) ** 2).sum() for g, m in zip(groups, means, strict=True))
    ratio = between / (len(groups) - 1) / (within / (len(rows) - len(groups)))
    return float(((wide[:, None] + wide) / apart).max(axis=1).mean()), float(ratio)


def test_means_that_differ_by_less_than_the_offset_is_rounded_by():
    """Labels by chance: means of 12,500 rows differ by some 1e-5, about 1e8, where numbers are 1.5e-8 apart."""
    chance = np.random.default_rng(0)
    rows, labels = 1e8 + 1e-3 * chance.normal(size=(50_000, 3)), chance.integers(0, 4, 50_000)
    found = metrics.davies_bouldin_score(rows, labels), metrics.calinski_harabasz_score(rows, labels)
    np.testing.assert_allclose(found, exact(rows, labels), rtol=1e-10)


def test_clusters_far_from_each_other_lose_nothing_either():
    """No single origin is near all of these rows."""
    far = np.where(LABELS < 2, 2.0**44, -(2.0**43))[:, None]
    assert metrics.inertia(ROWS + far, LABELS) == metrics.inertia(ROWS, LABELS)
    near = LABELS < 2  # the cluster next to each of these two is the other
    how = {"approximation": "simplified", "average": None}
    of_all = metrics.silhouette_score(ROWS + far, LABELS, **how)
    np.testing.assert_array_equal(of_all[:2], metrics.silhouette_score(ROWS[near], LABELS[near], **how))
