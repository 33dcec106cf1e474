"""Tables of a few rows that are repeated often: each distinct row is a cluster."""

import numpy as np
import pytest

from coterie import GaussianMixture, choose_k, diagnose
from coterie.selection.perfect_fit import MAX_DISTINCT, MIN_REPEATS, has_groups, is_grid

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


def answers(*values, n=300):
    """Rows of answers on a scale, each column one of `values`."""
    return np.random.default_rng(0).choice(values, (n, 1)).astype(float)


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).binomial(6, 0.5, (300, 1)),
        answers(1, 2, 3, 4, 6),  # nobody answered 5
        np.array([[x, y] for x in (-1, 0, 1) for y in (-1, 0, 1) if (x, y) != (1, 1)] * 30),
    ],
)
def test_counts_and_scales_are_never_clear(X):
    result = quick(X, criteria=CHEAP)
    assert result.strength == "weak"
    assert "regular grid" in result.reason


@pytest.mark.parametrize(
    "X",
    [
        np.hstack([answers(0, 1), answers(0, 1)[::-1]]) + 3 * (np.arange(300)[:, None] < 150),
        answers(0, 1) + 8 * (np.arange(300)[:, None] < 150),
        answers(0, 1, 2, 20, 21, 22) / 10,
    ],
)
def test_groups_of_answers_are_the_clusters(X):
    assert len(np.unique(X, axis=0)) <= MAX_DISTINCT
    assert quick(X, criteria=CHEAP).recommended == 2


def test_a_grid_has_every_combination_or_rows_one_step_from_others():
    square = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    assert is_grid(square)
    assert not is_grid(square[:3]), "two values of a column have no step to compare with"
    assert not is_grid(np.array([[0.0], [1]]))
    assert is_grid(np.c_[np.arange(4.0), np.zeros(4)])
    assert is_grid(np.array([[0.1], [0.2], [0.3], [0.5]]))
    assert not is_grid(np.array([[0.0], [1], [2.5]]))
    assert not is_grid(np.array([[0, 0], [5, 5], [10, 0.0]])), "no row is one step from another"
    assert is_grid(np.array([[0.0, 0], [0, 7], [2, 0], [2, 7], [4, 14]]))


def test_groups_have_several_rows_of_a_grid_and_are_far_apart():
    assert not has_groups(np.array([[0.0, 0], [0.1, 0.13], [9, 7]]))
    assert has_groups(np.array([[0.0], [1], [8], [9]]))
    assert not has_groups(np.array([[1.0], [2], [3], [5]]))
    assert not has_groups(np.array([[0.0], [1], [10]])), "one row is no group"


@pytest.mark.parametrize("k", [2, 5, 8])
def test_a_diagnosis_finds_the_same_clusters(k):
    result = diagnose(X=repeated(k), random_state=0)
    assert f"K = {k}" in str(result)
    assert not {"too_many_clusters", "too_few_clusters", "one_cluster"} & {each.check for each in result.findings}
