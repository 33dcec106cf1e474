"""Rows of many kinds without clusters: never a clear number of clusters, and mostly one cluster."""

from itertools import product

import numpy as np
import pytest

from coterie import choose_k
from coterie.datasets import make_blobs
from coterie.jobs import ChooseJob, choose
from coterie.selection.choose_k_criteria import CRITERIA

pytestmark = pytest.mark.whole_search


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def walk(rng, n, d):
    steps = rng.normal(size=(n, d))
    for i in range(1, n):
        steps[i] += 0.95 * steps[i - 1]
    return steps


def arc(rng, n, d):
    t = rng.uniform(-1, 1, n)
    return np.column_stack([t, t**2, *(np.sin(2 * t + j) for j in range(d - 2))]) + rng.normal(0, 0.08, (n, d))


def heaped(rng, n, d):
    """Ages, half of which are rounded to five years."""
    X = rng.normal(40, 12, (n, d))
    return np.where(rng.random((n, d)) < 0.5, 5 * np.round(X / 5), np.round(X))


def with_outliers(rng, n, d):
    return rng.normal(size=(n, d)) * np.where(np.arange(n) < n // 60, 8, 1)[:, None]


def survey(rng, n, d):
    return np.clip(np.round(3 + rng.normal(size=(n, 1)) * 0.6 + rng.normal(0, 0.8, (n, d))), 1, 5)


FAMILIES = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "Student": lambda rng, n, d: rng.standard_t(3, (n, d)),
    "log-normal": lambda rng, n, d: standardised(rng.lognormal(size=(n, d))),
    "zeros": lambda rng, n, d: standardised(rng.lognormal(size=(n, d)) * (rng.random((n, d)) < 0.6)),
    "correlated": lambda rng, n, d: rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d)),
    "survey": survey,
    "walk": walk,
    "arc": arc,
    "simplex": lambda rng, n, d: rng.dirichlet(np.ones(d + 1), n),
    "corners of a simplex": lambda rng, n, d: rng.dirichlet(np.full(d + 1, 0.5), n),
    "triangular": lambda rng, n, d: rng.triangular(0, 1, 1, (n, d)),
    "heaped": heaped,
    "outliers": with_outliers,
}
QUICK = [
    ("uniform", 200, 3), ("log-normal", 200, 3), ("zeros", 60, 3), ("walk", 60, 3), ("arc", 200, 2),
    ("simplex", 600, 3), ("corners of a simplex", 600, 3), ("heaped", 600, 2), ("outliers", 200, 3),
    ("survey", 200, 3),
]  # fmt: skip


def results(tables):
    for name, n, d in tables:
        X = FAMILIES[name](np.random.default_rng([n, d]), n, d)
        yield (name, n, d), choose_k(X, budget="quick", random_state=0)


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param(QUICK, id="some"),
        pytest.param(list(product(FAMILIES, (60, 200, 600), (2, 3, 5))), id="all", marks=pytest.mark.slow),
    ],
)
def test_rows_without_clusters_are_never_clear_and_mostly_one_cluster(tables):
    """Rows that gather in the corners of a simplex are the hardest: there are fewer rows between the corners."""
    found = {table: (result.recommended, result.strength) for table, result in results(tables)}
    assert not [table for table, (_, strength) in found.items() if strength == "clear"]
    several = [table for table, (k, _) in found.items() if k > 1]
    assert len(several) <= 0.15 * len(found), several


def test_no_clear_number_is_one_cluster_with_a_runner_up():
    """A script that reads `recommended` alone does not take the best of several unclear numbers for an answer."""
    for _, result in results([("log-normal", 200, 3), ("arc", 200, 2), ("outliers", 200, 3)]):
        assert (result.recommended, result.strength) == (1, "none")
        assert result.runner_up > 1
        assert str(result).startswith(f"K = 1 (no clear number; runner-up {result.runner_up})")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_no_criterion_alone_makes_a_number_clear(criterion):
    """Most criteria prefer some number above 1 also without clusters: the test for clusters must be one of them."""
    result = choose_k(
        FAMILIES["log-normal"](np.random.default_rng(0), 120, 3), range(1, 6), criteria=criterion, random_state=0
    )
    assert result.strength != "clear"
    assert result.recommended == 1 or "The test for clusters (tendency) is not one of the criteria." in result.reasons


def test_without_a_vote_it_is_not_said_that_there_are_no_clusters(tmp_path):
    X, _ = make_blobs(200, 2, centers=3, cluster_std=0.4, random_state=1)
    np.save(tmp_path / "x.npy", X)
    result = choose(ChooseJob(tmp_path / "x.npy", criteria=("elbow",), k=(1, 6)))
    assert result.choice.reason.startswith("No clear number of clusters between 2 and 6.")
    assert result.warnings == ("no clear number of clusters between 2 and 6. Look at more than one K, and set the one "
                               "you want with -k.",)  # fmt: skip


def test_of_numbers_with_equal_support_that_of_a_vote_is_recommended():
    X, _ = make_blobs(200, 2, centers=3, cluster_std=0.4, random_state=1)
    result = choose_k(X, range(1, 7), criteria="stability", budget="quick", random_state=0)
    assert [vote.k for vote in result.votes] == [3]
    assert result.support[1] == result.support[2] == 1
    assert (result.recommended, result.runner_up) == (3, 2)
