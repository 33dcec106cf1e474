"""The search for the start of a mixture: how it compares runs, and how it makes new starts from them."""

from dataclasses import replace

import numpy as np
import pytest

from coterie import BayesianGaussianMixture, GaussianMixture, Mixture
from coterie.core.nested_arrays import select
from coterie.core.search import Pool
from coterie.errors import ParameterError
from coterie.families.structures import STRUCTURES
from coterie.kernels import plain
from coterie.mixture import degeneracy as degeneracy_module
from coterie.mixture import gaussian_em
from coterie.mixture.degeneracy import degeneracy_of_fit
from coterie.mixture.gaussian_em import GaussianStats
from coterie.mixture.gaussian_trials import GaussianTrials
from coterie.mixture.rearrange import cross, exchange, redivide, relocate, split_and_merge
from coterie.mixture.search import MixtureSearch
from coterie.mixture.starts import sample
from mixture.rows import groups, islands

pytestmark = pytest.mark.whole_search


def gaussian_trials(X, structure, k, seed=0):
    estimator = GaussianMixture(k, covariance_type=structure)
    source, _, summary = estimator._open(X, None, first=True)
    model, rng = estimator._model(summary, source.dtype), np.random.default_rng(seed)
    return GaussianTrials(model, sample(model, source, rng), rng)


def seeded(trials, seed):
    trials.rng = np.random.default_rng(seed)
    return trials


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_run_is_degenerate_in_the_search_if_and_only_if_its_fit_is(structure):
    X = groups(30, d=3)[0] * [1.0, 10.0, 100.0]  # so that round components are not as the rows are
    trials = gaussian_trials(X, structure, 3)
    params, *_ = trials.advance(trials.first(trials.random_starts(60)), 30)
    fitted = [degeneracy_of_fit(trials.model, len(X), trials.result(params, i)) > 0 for i in range(60)]
    assert trials.degeneracy(params).tolist() == fitted


@pytest.mark.parametrize("structure", STRUCTURES)
def test_bounds_of_eigenvalues_do_not_change_which_runs_are_degenerate(structure, monkeypatch):
    rng = np.random.default_rng(3)
    X = groups(60, d=3)[0] * [1.0, 10.0, 100.0]
    trials = gaussian_trials(np.r_[X, X[:5] + 1e-3 * rng.normal(size=(5, 3))], structure, 3)
    params, *_ = trials.advance(trials.first(trials.random_starts(200)), 10)
    widths = 10.0 ** rng.uniform(-5, 0, params.covariances.shape[:2] if trials.em.form == "diag" else (200, 1))
    width = widths[..., None]
    params = params._replace(covariances=params.covariances * width, factor=params.factor / np.sqrt(width))
    found = trials.degeneracy(params)
    monkeypatch.setattr(degeneracy_module, "_may_be_thin", lambda model, c, *_: np.ones(len(c.weights), bool))
    assert found.tolist() == trials.degeneracy(params).tolist()
    assert 0 < np.count_nonzero(found == 0) < 200


@pytest.mark.parametrize("structure", ["EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV"])
def test_scatters_that_are_not_checked_need_no_floor(structure, monkeypatch):
    """Repeated rows, equal columns and a constant one: many components have no variance but that of `reg_covar`."""
    rng = np.random.default_rng(4)
    X = np.r_[np.repeat(rng.normal(size=(6, 2)), 8, axis=0), 1e6 * rng.normal(size=(3, 2))]
    X = np.c_[X, X[:, 0], np.ones(len(X))]

    def covariances():
        trials = gaussian_trials(X, structure, 3)
        em, reference = trials.em, trials.em.reference()
        sums = (plain.weighted_sums(trials.X, resp, em.gaussians(reference)) for resp in trials.random_starts(30))
        return [em.m_step(reference, GaussianStats(*each, 0.0, 0.0)).covariances for each in sums]

    found = covariances()
    monkeypatch.setattr(gaussian_em, "ABOVE_FLOOR", np.inf)
    np.testing.assert_array_equal(found, covariances())


@pytest.mark.parametrize("structure", STRUCTURES)
def test_new_starts_are_probabilities_and_the_same_for_the_same_seed(structure):
    trials = gaussian_trials(groups(60)[0], structure, 3)
    parents = trials.first(trials.random_starts(6))
    for move in (relocate, cross, exchange, redivide):
        first, again = (move(seeded(trials, 1), parents, 20) for _ in range(2))
        assert first.shape == (20, 60, 3)
        assert (first >= 0).all()
        np.testing.assert_allclose(first.sum(axis=2), 1.0, rtol=1e-9)
        np.testing.assert_array_equal(first, again)
    splits = split_and_merge(trials, select(parents, [0]), 20)
    np.testing.assert_allclose(splits.sum(axis=2), 1.0, rtol=1e-9)


def test_starts_from_components_that_lost_their_rows_are_probabilities():
    trials = gaussian_trials(groups(60)[0], "VVI", 3)
    parents = trials.first(trials.random_starts(4))
    parents = parents._replace(weights=np.tile([1.0, 0.0, 0.0], (4, 1)))
    starts = cross(trials, parents, 200)
    np.testing.assert_allclose(starts.sum(axis=2), 1.0, rtol=1e-9)


def test_a_relocated_component_has_a_row_and_its_neighbours():
    X = np.r_[groups(60, d=2)[0], np.full((6, 2), 40.0) + np.eye(6, 2)]
    trials = gaussian_trials(X, "VVV", 2)
    moved = relocate(trials, trials.first(trials.random_starts(6)), 200)
    alone = [set(np.flatnonzero(resp[:, j] == 1)) == set(range(60, 66)) for resp in moved for j in range(2)]
    assert any(alone)  # the cluster apart, and nothing else


def test_components_move_to_outliers():
    X = np.r_[groups(1000, d=2)[0], [[400.0, 400.0], [400.0, 401.0]]]
    trials = gaussian_trials(X, "EEI", 2)
    parents = trials.first(trials.random_starts(3)[-1:])  # random responsibilities: both components are wide
    moved = relocate(trials, parents, 40)
    is_small = (moved == 1).sum(axis=1) <= 20
    assert (is_small & (moved[:, -2:] == 1).all(axis=1)).sum() >= 2


@pytest.mark.parametrize("structure", ["EII", "EEI", "EEE"])
def test_a_shared_covariance_without_variance_in_a_column_is_degenerate(structure):
    """A column of two values, one for each component: the likelihood is bounded by `reg_covar` alone."""
    X, labels = groups(60, d=2)[0], np.arange(60) % 2
    model = GaussianMixture(2, covariance_type=structure, init_params=labels).fit(np.c_[X, labels])
    assert degeneracy_of_fit(model._fitted_model, 60, model._components) == (structure != "EII")


def test_a_small_tight_cluster_among_many_rows_is_found():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(250, 2)), [1.0, 1.0] + 0.1 * rng.normal(size=(20, 2))]
    for seed in range(3):
        model = GaussianMixture(2, random_state=seed).fit(X)
        assert (model.labels_[250:] == model.labels_[-1]).mean() > 0.9
        assert (model.labels_ == model.labels_[-1]).sum() < 40


def test_a_saddle_point_is_not_a_result():
    trials = gaussian_trials(groups(60)[0], "VVV", 3)
    search = MixtureSearch(trials, "thorough")
    saddle = trials.first(np.full((1, 60, 3), 1 / 3))
    moved, objective, gains, _ = trials.advance(saddle, 3)
    np.testing.assert_allclose(moved.means, saddle.means, atol=1e-9)  # equal components stay equal, up to rounding
    np.testing.assert_allclose(gains, 0.0, atol=1e-6)
    pool = Pool(saddle, objective, np.zeros(1, int), np.ones(1, int))
    assert search.finished(pool).objective[0] < objective[0] - 10


def test_the_likeliest_run_without_degenerate_components_comes_first():
    trials = gaussian_trials(groups(60, d=3)[0], "VVV", 3)
    search = MixtureSearch(trials, "thorough")
    pool = search.finished(search.with_runs(None, trials.first(trials.random_starts(60)), 1))
    keys = list(zip(pool.defects, trials.costs(pool.params, pool.objective), strict=True))
    assert len(keys) > 2
    assert keys == sorted(keys)


def test_an_exchange_moves_one_to_three_rows():
    trials = gaussian_trials(groups(60)[0], "VVV", 3)
    parents = trials.first(trials.random_starts(3)[:1])
    (before,), _ = trials.responsibilities(parents)
    n_moved = (exchange(trials, parents, 200).argmax(axis=2) != before.argmax(axis=1)).sum(axis=1)
    assert sorted(set(n_moved)) == [1, 2, 3]


def test_rows_are_divided_anew_among_two_or_three_components():
    trials = gaussian_trials(groups(60)[0], "VVV", 5)
    parents = trials.first(trials.random_starts(3)[:1])
    (before,), _ = trials.responsibilities(parents)
    is_changed = (redivide(trials, parents, 200) != before).any(axis=1)
    assert sorted(set(is_changed.sum(axis=1))) == [2, 3]


def test_starts_that_end_in_the_same_optimum_are_counted():
    trials = gaussian_trials(groups(60, apart=6.0)[0], "VVV", 3)
    search = MixtureSearch(trials, "thorough")
    runs = trials.first(np.repeat(trials.starts("kmeans", 1), 5, axis=0))
    pool = search.with_runs(None, runs, 1)
    assert pool.hits.tolist() == [5]
    assert search.with_runs(pool, runs, 0).hits.tolist() == [5]  # starts made from others are not counted
    assert search.with_runs(pool, runs, 1).hits.tolist() == [10]


@pytest.mark.parametrize("starts, batches", [(8, 1), (1_000_000, 2)])
def test_random_starts_end_after_enough_in_the_best_optimum_or_rounds_without_a_gain(monkeypatch, starts, batches):
    monkeypatch.setattr(GaussianTrials, "thorough", replace(GaussianTrials.thorough, agree=starts))
    sizes = []
    draw = GaussianTrials.random_starts
    monkeypatch.setattr(GaussianTrials, "random_starts", lambda self, runs: sizes.append(runs) or draw(self, runs))
    GaussianMixture(2, covariance_type="EEI", search="thorough", random_state=0).fit(groups(60)[0])
    assert sizes == [120, 120][:batches]


def test_a_short_search_makes_more_starts_unless_the_first_agree(monkeypatch):
    sizes = []
    draw = GaussianTrials.short_starts
    monkeypatch.setattr(GaussianTrials, "short_starts", lambda self, runs: sizes.append(runs) or draw(self, runs))
    GaussianMixture(3, covariance_type="EEI", random_state=0).fit(islands()[0])
    assert sizes == []  # K-means finds the groups from every start
    rng = np.random.default_rng(0)
    GaussianMixture(5, covariance_type="EEI", random_state=0).fit(rng.normal(size=(60, 2)))
    assert sizes != []


@pytest.mark.parametrize("model", [GaussianMixture, Mixture, BayesianGaussianMixture])
def test_the_kinds_of_a_search_are_named(model):
    with pytest.raises(ParameterError, match="search must be 'none' or 'auto' or 'thorough'; got 'quick'"):
        model(2, search="quick").fit(groups(60)[0])
