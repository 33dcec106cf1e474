"""Density valleys: lower between clusters than at their centers, or not."""

import numpy as np
import pytest

from coterie import KMeans, choose_k
from coterie.selection.stability import HalfFits
from coterie.selection.valleys import THRESHOLD, density_ratios

KS = [2, 3, 4]


def half_fits(X, ks=KS, seed=0, **options):
    rng = np.random.default_rng(seed)
    return HalfFits(KMeans(random_state=0), X, ks, 10, None, 1, rng, **{"plain_kmeans": True, **options})


def clusters(*centers, n=100, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(center, 1, (n, 2)) for center in centers])


def test_the_k_with_the_most_separate_clusters_is_the_best():
    result = half_fits(clusters((0, 0), (9, 0), (0, 9))).valleys()
    assert result.best == 3
    np.testing.assert_allclose(result.apart[:2], [2, 3], atol=0.1)
    assert result.apart[2] < 2.5


@pytest.mark.parametrize("kind", ["normal", "exponential", "uniform", "lognormal"])
def test_one_population_has_no_valley(kind):
    X = getattr(np.random.default_rng(0), kind)(size=(600, 2))
    result = half_fits(X).valleys()
    assert result.best is None
    assert (result.apart < 1).all()


def test_noise_of_many_columns_has_no_valley():
    """The fitted rows of noise are always apart along the line between their centers; the other rows are not."""
    X = np.random.default_rng(0).normal(size=(120, 60))
    labels = KMeans(2, random_state=0).fit(X[:60]).predict(X)
    is_fitted = np.arange(120) < 60
    assert (density_ratios(X, labels, is_fitted, None) > THRESHOLD).all()
    assert half_fits(X).valleys().best is None


def test_a_weight_of_all_rows_changes_no_ratio():
    X = clusters((0, 0), (5, 0))
    labels, is_fitted = (X[:, 0] > 2.5).astype(np.int32), np.arange(200) % 2 == 0
    ratios = density_ratios(X, labels, is_fitted, None)
    np.testing.assert_allclose(density_ratios(X, labels, is_fitted, np.full(200, 4.0)), ratios)
    assert (ratios < THRESHOLD).all()
    assert density_ratios(X, np.zeros(200, np.int32), is_fitted, None).tolist() == [1.0]


@pytest.mark.parametrize("measure", ["valleys", "prediction_strength"])
def test_one_compiled_call_and_separate_fits_agree(measure):
    X = clusters((0, 0), (7, 0), (0, 7))
    together, separate = (getattr(half_fits(X, plain_kmeans=plain), measure)() for plain in (True, False))
    assert together.best == separate.best == 3


@pytest.mark.parametrize(("offset", "size"), [(-1e8, 8.0), (0.0, 2.0**-600), (0.0, 2.0**600)])
def test_offset_scale_and_equal_centers_are_no_division_by_zero(offset, size):
    """Rows of float32 near -10⁸ are multiples of 8: their means were equal in float32, of clusters that are apart."""
    X = np.repeat([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [2.0, 1.0]], 40, axis=0)
    dtype = np.float32 if offset else np.float64
    labels, is_fitted = np.arange(160, dtype=np.int32) // 40, np.arange(160) % 2 == 0
    ratios = density_ratios((offset + size * X).astype(dtype), labels, is_fitted, None)
    np.testing.assert_array_equal(ratios, density_ratios(X, labels, is_fitted, None))
    assert (density_ratios(X, np.arange(160) % 4, is_fitted, None) == 1.0).all()  # four clusters with one center


def test_halves_with_fewer_distinct_rows_than_clusters():
    X = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [1.0, 9.0]], [200, 200, 1, 1], axis=0)
    result = half_fits(X).prediction_strength()
    assert result.ks.tolist() == KS
    assert np.isfinite(result.mean).all()


def test_valleys_are_a_criterion_of_choose_k():
    result = choose_k(clusters((0, 0), (9, 0), (0, 9)), range(1, 6), criteria=["valleys"], random_state=0)
    assert result.recommended == 3
    assert [row["valleys"] is None for row in result.table()] == [True, False, False, False, False]
    assert "best" in str(result.results["valleys"])
