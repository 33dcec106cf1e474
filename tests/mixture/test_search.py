"""The search for the starts of Gaussian mixtures: what it judges, and what it makes new starts from."""

import numpy as np
import pytest

from coterie import GaussianMixture
from coterie.families.structures import STRUCTURES
from coterie.mixture.rearrange import cross, relocate, split_and_merge
from coterie.mixture.search import Contest, sound_first
from coterie.mixture.starts import Rows, sample
from coterie.mixture.trials import Trials, chosen
from mixture.rows import groups

pytestmark = pytest.mark.whole_search


def open_rows(X, structure, k, seed=0):
    estimator = GaussianMixture(k, covariance_type=structure)
    source, _, summary = estimator._open(X, None, first=True)
    model, rng = estimator._model(summary, source.dtype), np.random.default_rng(seed)
    return Rows(model, sample(model, source, rng), rng)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_run_is_spurious_in_the_search_if_and_only_if_its_fit_is(structure):
    X = groups(30, d=3)[0] * [1.0, 10.0, 100.0]  # so that round components are not as the rows are
    rows = open_rows(X, structure, 3)
    runs, _, _ = rows.trials.advance(rows.trials.first(rows.random_starts(60)), 30)
    fitted = [sound_first(rows.model, len(X), rows.trials.in_place(runs, i)) for i in range(60)]
    assert Contest(rows.trials)._suspect(runs).tolist() == fitted


@pytest.mark.parametrize("structure", STRUCTURES)
def test_new_starts_are_probabilities_and_the_same_for_the_same_seed(structure):
    rows = open_rows(groups(60)[0], structure, 3)
    parents = rows.trials.first(rows.random_starts(6))
    for move in (relocate, cross):
        first, again = (move(rows.trials, parents, 20, np.random.default_rng(1)) for _ in range(2))
        assert first.shape == (20, 60, 3)
        assert (first >= 0).all()
        np.testing.assert_allclose(first.sum(axis=2), 1.0, rtol=1e-9)
        np.testing.assert_array_equal(first, again)
    splits = split_and_merge(rows.trials, chosen(parents, [0]), 20, 0)
    np.testing.assert_allclose(splits.sum(axis=2), 1.0, rtol=1e-9)


def test_starts_from_components_that_lost_their_rows_are_probabilities():
    rows = open_rows(groups(60)[0], "VVI", 3)
    parents = rows.trials.first(rows.random_starts(4))
    parents = parents._replace(weights=np.tile([1.0, 0.0, 0.0], (4, 1)))
    starts = cross(rows.trials, parents, 200, np.random.default_rng(0))
    np.testing.assert_allclose(starts.sum(axis=2), 1.0, rtol=1e-9)


def test_a_relocated_component_has_a_row_and_its_neighbours():
    X = np.r_[groups(60, d=2)[0], np.full((6, 2), 40.0) + np.eye(6, 2)]
    rows = open_rows(X, "VVV", 2)
    moved = relocate(rows.trials, rows.trials.first(rows.random_starts(6)), 200, np.random.default_rng(0))
    alone = [set(np.flatnonzero(resp[:, j] == 1)) == set(range(60, 66)) for resp in moved for j in range(2)]
    assert any(alone)  # the cluster apart, and nothing else


def test_components_move_to_outliers():
    X = np.r_[groups(1000, d=2)[0], [[400.0, 400.0], [400.0, 401.0]]]
    rows = open_rows(X, "EEI", 2)
    parents = rows.trials.first(rows.random_starts(3)[-1:])  # random responsibilities: both components are wide
    moved = relocate(rows.trials, parents, 40, np.random.default_rng(0))
    is_small = (moved == 1).sum(axis=1) <= 20
    assert (is_small & (moved[:, -2:] == 1).all(axis=1)).sum() >= 2


@pytest.mark.parametrize("structure", ["EII", "EEI", "EEE"])
def test_a_shared_covariance_without_variance_in_a_column_is_degenerate(structure):
    """A column of two values, one for each component: the likelihood is bounded by `reg_covar` alone."""
    X, labels = groups(60, d=2)[0], np.arange(60) % 2
    model = GaussianMixture(2, covariance_type=structure, init_params=labels).fit(np.c_[X, labels])
    assert sound_first(model._fitted_model, 60, model._components) == (structure != "EII")


def test_a_small_tight_cluster_among_many_rows_is_found():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(250, 2)), [1.0, 1.0] + 0.1 * rng.normal(size=(20, 2))]
    for seed in range(3):
        model = GaussianMixture(2, random_state=seed).fit(X)
        assert (model.labels_[250:] == model.labels_[-1]).mean() > 0.9
        assert (model.labels_ == model.labels_[-1]).sum() < 40


def test_a_saddle_point_is_not_a_result():
    rows = open_rows(groups(60)[0], "VVV", 3)
    contest = Contest(rows.trials)
    saddle = contest.settled(rows.trials.first(np.full((1, 60, 3), 1 / 3)))  # equal components stay equal
    again = contest.settled(chosen(saddle.runs, [0]))
    assert again.objective[0] == pytest.approx(saddle.objective[0], abs=1e-6)
    assert contest.finished(saddle, rows.rng).objective[0] < saddle.objective[0] - 10


def test_the_likeliest_sound_run_comes_first():
    rows = open_rows(groups(60, d=3)[0], "VVV", 3)
    contest = Contest(rows.trials)
    elite = contest.finished(contest.settled(rows.trials.first(rows.random_starts(60))), rows.rng)
    keys = list(zip(elite.suspect, contest.costs(elite.runs), strict=True))
    assert len(keys) > 2
    assert keys == sorted(keys)


def test_where_rows_are_few_all_random_starts_go_on():
    few, many = (Contest(open_rows(groups(n)[0], "VVV", 3).trials) for n in (60, 2000))
    assert (few.winners(40), many.winners(40)) == (40, 10)


def test_the_search_of_few_rows_is_short(monkeypatch):
    """Every step of a batch takes time, however few its runs: slow collapses of single runs end."""
    batches = []
    advance = Trials.advance
    monkeypatch.setattr(Trials, "advance", lambda self, c, steps: batches.append(steps) or advance(self, c, steps))
    cluster = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    X = np.r_[cluster, cluster + np.array([16.0, 0.0]), [[8.0, 0.0], [8.0, 10.0]]]
    GaussianMixture(3, covariance_type="EVI", random_state=0).fit(X)
    assert sum(batches) < 2000
