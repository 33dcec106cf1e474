"""X-means and G-means, and the test of normality they split by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.metrics import adjusted_rand_score
from coterie.selection import g_means, x_means
from coterie.selection.normality import anderson_darling, critical_value, p_value
from coterie.selection.splitting import spherical_bic

BOTH = pytest.mark.parametrize("split", [x_means, g_means])


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(600, 3, centers=6, cluster_std=0.5, random_state=2)


# the test of normality


@pytest.mark.parametrize("draw", ["normal", "uniform", "exponential"])
@pytest.mark.parametrize("n", [8, 30, 500])
def test_the_statistic_is_scipys(draw, n):
    x = getattr(np.random.default_rng(n), draw)(size=n)
    theirs = stats.anderson(x, "norm", method="interpolate").statistic
    assert anderson_darling(x).statistic == pytest.approx(theirs * (1 + 0.75 / n + 2.25 / n**2), rel=1e-10)


def test_a_value_of_weight_three_is_three_values():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=50).round(1), rng.integers(0, 4, 50).astype(float)
    weighted, repeated = anderson_darling(x, w), anderson_darling(np.repeat(x, w.astype(int)))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-10)


def test_origin_and_unit_do_not_matter():
    x = np.random.default_rng(1).normal(size=100)
    assert anderson_darling(1e3 * x + 1e6).statistic == pytest.approx(anderson_darling(x).statistic, rel=1e-6)


@pytest.mark.parametrize("a, p", [(0.631, 0.10), (0.752, 0.05), (0.873, 0.025), (1.035, 0.01)])
def test_critical_values_of_the_book(a, p):
    """D'Agostino and Stephens (1986), table 4.7, for mean and variance estimated."""
    assert p_value(a) == pytest.approx(p, rel=0.03)
    assert critical_value(p) == pytest.approx(a, rel=0.01)


def test_the_critical_value_of_the_paper():
    """Hamerly and Elkan give 1.8692 for 0.0001, by another approximation of the same distribution."""
    assert critical_value(1e-4) == pytest.approx(1.8692, rel=0.02)


def test_p_values_fall_and_stay_probabilities():
    p = np.array([p_value(a) for a in np.linspace(0, 200, 20_001)])
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) <= 2e-3).all()  # the four pieces of the approximation meet with steps that small
    assert p_value(1e9) > 0


def test_normal_numbers_are_rejected_as_often_as_said():
    rng = np.random.default_rng(0)
    rejected = np.mean([anderson_darling(rng.normal(size=40)).p_value < 0.05 for _ in range(2000)])
    assert rejected == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 2000))


# BIC


def naive_bic(X, labels):
    n, d = X.shape
    names, sizes = np.unique(labels, return_counts=True)
    k = len(names)
    inertia = sum(((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum() for j in names)
    variance = inertia / (d * (n - k))
    likelihood = 0.0
    for j, size in zip(names, sizes, strict=True):
        mine = X[labels == j]
        squares = ((mine - mine.mean(axis=0)) ** 2).sum(axis=1)
        likelihood += (np.log(size / n) - d / 2 * np.log(2 * np.pi * variance) - squares / (2 * variance)).sum()
    return -2 * likelihood + (k - 1 + k * d + 1) * np.log(n)


def test_bic_is_that_of_balls_of_one_variance(blobs):
    X, _ = blobs
    found = x_means(X)
    assert found.bic == pytest.approx(naive_bic(X, found.labels), rel=1e-9)


def test_the_first_split_lowers_bic_by_its_statistic(blobs):
    X, _ = blobs
    found = x_means(X, k_max=2)
    first, one = found.history[0], np.zeros(len(X))
    assert (first.weight, found.n_clusters) == (len(X), 2)
    assert first.statistic == pytest.approx(naive_bic(X, one) - naive_bic(X, found.labels), rel=1e-6)


def test_bic_of_as_many_clusters_as_rows_is_infinite():
    assert spherical_bic(0.0, np.ones(3), 2) == np.inf


# the two


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_clear_blobs_are_counted(split, seed):
    X, y = make_blobs(600, 3, centers=6, cluster_std=0.4, random_state=seed)
    found = split(X)
    assert found.n_clusters == 6
    assert adjusted_rand_score(y, found.labels) > 0.99


@BOTH
@pytest.mark.parametrize("d", [1, 2, 10])
def test_a_single_gaussian_is_one_cluster(split, d):
    X = np.random.default_rng(d).normal(size=(500, d))
    assert split(X).n_clusters == 1


def test_x_means_looks_beyond_a_cut_that_gains_nothing():
    """Four equal clusters at the corners of a square: to halve it gains as much as it costs."""
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) * 10.0
    grid = np.concatenate([corners + np.array([20 * i, 20 * j]) for i in range(2) for j in range(2)])
    X = np.repeat(grid, 40, axis=0) + np.random.default_rng(0).normal(size=(640, 2))
    found = x_means(X)
    assert not any(split.split and split.statistic > 0 for split in found.history if split.round == 1)
    assert found.n_clusters == 16


def test_long_clusters_are_one_to_g_means_and_many_to_x_means():
    X = np.random.default_rng(0).normal(size=(500, 2)) * [8, 1]
    assert g_means(X).n_clusters == 1
    assert x_means(X).n_clusters > 1


@BOTH
def test_the_result_is_one_thing(split, blobs):
    X, _ = blobs
    found = split(X)
    assert found.centers.shape == (found.n_clusters, 3)
    np.testing.assert_array_equal(found.model.predict(X), found.labels)
    assert found.inertia == pytest.approx(((X - found.centers[found.labels]) ** 2).sum())
    assert [row["round"] for row in found.table()] == sorted(split.round for split in found.history)
    assert f"{found.n_clusters} clusters" in str(found)


def test_a_cluster_is_split_if_and_only_if_its_statistic_is_above_the_threshold(blobs):
    X, _ = blobs
    for split in g_means(X, significance=0.01).history:
        assert split.split == (split.statistic > split.threshold) == (split.p_value < 0.01)


@BOTH
def test_weight_two_is_the_row_twice(split, blobs):
    X, _ = blobs
    w = np.where(np.arange(len(X)) % 3 == 0, 2.0, 1.0)
    weighted, repeated = split(X, sample_weight=w), split(np.repeat(X, w.astype(int), axis=0))
    assert weighted.n_clusters == repeated.n_clusters
    assert weighted.bic == pytest.approx(repeated.bic, rel=1e-9)
    first, second = (np.array([[s.weight, s.statistic] for s in found.history]) for found in (weighted, repeated))
    np.testing.assert_allclose(first, second, rtol=1e-6)


@BOTH
def test_rows_of_weight_zero_do_not_count(split, blobs):
    X, _ = blobs
    far = np.concatenate([X, X[:50] + 100])
    w = np.concatenate([np.ones(len(X)), np.zeros(50)])
    assert split(far, sample_weight=w).bic == pytest.approx(split(X).bic, rel=1e-9)


@BOTH
def test_the_same_bits_every_time_on_any_number_of_threads(split, blobs):
    X, _ = blobs
    one, again, four = (split(X, n_jobs=n_jobs, random_state=0) for n_jobs in (1, 1, 4))
    assert one.history == again.history == four.history
    np.testing.assert_array_equal(one.centers, four.centers)


@BOTH
def test_float32_stays_and_frames_and_sparse_rows_work(split, blobs):
    X, _ = blobs
    single = split(X.astype(np.float32))
    assert single.centers.dtype == np.float32
    assert single.n_clusters == split(pd.DataFrame(X)).n_clusters == split(sparse.csr_array(X)).n_clusters == 6


@BOTH
def test_limits_are_kept(split, blobs):
    X, _ = blobs
    assert split(X, k_max=4).n_clusters == 4
    assert split(X, k_min=3, random_state=0).n_clusters >= 3


@BOTH
def test_equal_rows_are_never_split(split):
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [5.0, 0.0]], 10, axis=0)
    found = split(X, k_max=20)
    assert found.n_clusters <= 3
    assert np.isfinite(found.bic)
    assert split(np.ones((5, 2))).n_clusters == 1


@BOTH
def test_a_true_answer_to_progress_ends_the_rounds(split, blobs):
    X, _ = blobs
    seen = []
    found = split(X, callback=lambda report: seen.append(report) or True)
    assert len(seen) == 1
    assert found.n_clusters <= 2


def test_a_search_finds_small_clusters_beside_large_ones():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1, (n, 2)) for c, n in ((0, 2000), (30, 60), (40, 60), (50, 60))])
    assert x_means(X, search="fast", random_state=0).n_clusters == 4


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"k_min": 0}, ParameterError, "k_min must be a whole number of at least 1"),
        ({"k_min": 5, "k_max": 3}, ParameterError, "k_max must be a whole number of at least 5"),
        ({"significance": 0}, ParameterError, "significance must be a number between 0 and 1"),
        ({"search": "long"}, ParameterError, "search must be"),
        ({"callback": 3}, ParameterError, "callback must be"),
        ({"sample_weight": [1.0]}, InputError, "sample_weight"),
    ],
)
def test_invalid_options_raise_an_error(options, error, message):
    with pytest.raises(error, match=message):
        g_means(np.random.default_rng(0).normal(size=(20, 2)), **options)


@BOTH
def test_missing_values_raise_an_error(split):
    with pytest.raises(InputError, match="NaN"):
        split([[0.0], [np.nan], [1.0]])
