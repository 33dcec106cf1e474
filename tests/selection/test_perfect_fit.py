"""Tables of a few rows that are repeated often: each distinct row is a cluster."""

import numpy as np
import pytest

from coterie import GaussianMixture, choose_k, diagnose
from coterie.selection.perfect_fit import MAX_DISTINCT, MIN_REPEATS, is_full_grid

pytestmark = pytest.mark.usefixtures("short_searches")
CHEAP = ("tendency", "silhouette", "calinski_harabasz", "davies_bouldin", "gap", "prediction_strength", "valleys")


def points(k):
    """k points, far from each other and on no grid."""
    angles = 2 * np.pi * np.arange(k) / k
    return 10 * np.c_[np.cos(angles), np.sin(angles)] + np.random.default_rng(k).normal(size=(k, 2))


def repeated(k, times=20):
    return np.repeat(points(k), times, axis=0)


def quick(X, ks="auto", **options):
    return choose_k(X, ks, budget="quick", random_state=0, **options)


@pytest.mark.parametrize("k", range(2, 9))
@pytest.mark.parametrize("form", [np.float64, np.float32, "weights"])
def test_repeated_points_are_the_clusters(k, form):
    if form == "weights":
        result = quick(points(k), criteria=CHEAP, sample_weight=np.full(k, 20.0))
    else:
        result = quick(repeated(k).astype(form), criteria=CHEAP)
    assert (result.recommended, result.strength) == (k, "clear")
    assert f"only {k} distinct rows" in result.reason
    assert all(value is None or np.isfinite(value) for row in result.table() for value in row.values())


@pytest.mark.parametrize("budget", ["normal", "thorough"])
def test_the_budget_does_not_matter(budget):
    result = choose_k(repeated(3), budget=budget, random_state=0)
    assert (result.recommended, result.strength) == (3, "clear")


def test_the_likelihood_of_mixtures_has_no_maximum_there_and_is_not_counted():
    result = quick(repeated(4), estimator=GaussianMixture())
    assert result.recommended == 4
    assert {vote.criterion: vote.weight for vote in result.votes}["icl"] == 0


def test_requested_numbers_may_end_at_the_distinct_rows():
    """No larger number can be compared, so it is not doubtful for being the largest."""
    assert quick(repeated(12), range(2, 13), criteria=CHEAP).strength == "clear"
    assert quick(repeated(3), range(2, 4), criteria=CHEAP).recommended == 3


@pytest.mark.parametrize("times", [1, MIN_REPEATS - 1])
def test_a_cluster_for_each_row_is_no_result_without_repetitions(times):
    X = np.repeat(np.random.default_rng(0).normal(size=(8, 2)), times, axis=0)
    result = quick(X, range(2, 9))
    assert result.recommended < 8
    assert result.support[-1] == 0
    assert quick(X).ks.max() < 8


def test_many_distinct_rows_are_numbers_that_were_rounded():
    X = np.random.default_rng(0).normal(size=(600, 2)).round()
    assert len(np.unique(X, axis=0)) > MAX_DISTINCT
    result = quick(X, criteria=["silhouette"])
    assert result.perfect_k is None
    assert result.ks.max() <= MAX_DISTINCT


def test_counts_and_scales_are_never_clear():
    result = quick(np.random.default_rng(0).binomial(6, 0.5, (300, 1)), criteria=CHEAP)
    assert result.strength == "weak"
    assert "regular grid" in result.reason


def test_a_grid_has_every_combination_or_equal_steps():
    square = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    assert is_full_grid(square)
    assert not is_full_grid(square[:3])
    assert is_full_grid(np.c_[np.arange(4.0), np.zeros(4)])
    assert not is_full_grid(np.array([[0.0], [1], [3]]))
    assert not is_full_grid(np.array([[0.0], [1]])), "two values have no step to compare with"


@pytest.mark.parametrize("k", [2, 5, 8])
def test_a_diagnosis_finds_the_same_clusters(k):
    result = diagnose(X=repeated(k), random_state=0)
    assert f"K = {k}" in str(result)
    assert not {"too_many_clusters", "too_few_clusters", "one_cluster"} & {each.check for each in result.findings}
