"""Variational Gaussian mixtures: what holds of every fit, what is rejected, and what is tolerated."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coterie import BayesianGaussianMixture
from coterie.errors import InputError, ObjectiveRoseWarning, ParameterError
from many_parts import many_parts
from mixture.bayesian import FORMS, MIXING, fit_quietly, start
from mixture.rows import groups, islands

# what holds of every fit


@pytest.mark.parametrize("mixing", MIXING)
@pytest.mark.parametrize("form", FORMS)
def test_the_bound_never_falls_and_is_that_of_the_beliefs_returned(form, mixing):
    X, _ = groups(300, d=3, k=3)
    model = BayesianGaussianMixture(
        6, covariance_type=form, weight_concentration_prior_type=mixing, init_params="random", random_state=0, tol=1e-6
    ).fit(X)
    history = model.history_
    assert len(history) == model.n_iter_ + 1 > 5
    assert (np.diff(history.lower_bound) >= -1e-12 * np.abs(history.lower_bound[1:])).all()
    np.testing.assert_allclose(history.fit - history.divergence, history.lower_bound)
    assert (history.divergence >= 0).all()
    assert model.lower_bound_ == history.lower_bound[-1]
    assert history.fit[-1] == pytest.approx(model.score_samples(X).sum())
    np.testing.assert_allclose(history.counts[-1], model.predict_proba(X).sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_acceleration_ends_at_the_same_bound_and_never_falls():
    X, _ = groups(300, d=3, k=3, apart=1.0)
    options = {"init_params": start(300, 5), "tol": 1e-7, "max_iter": 20_000}
    plain = BayesianGaussianMixture(5, **options).fit(X)
    fast = BayesianGaussianMixture(5, accelerate=True, **options).fit(X)
    assert fast.n_iter_ < plain.n_iter_
    assert fast.lower_bound_ >= plain.lower_bound_ - 1e-3
    assert (np.diff(fast.history_.lower_bound) >= -1e-12 * np.abs(fast.lower_bound_)).all()


def test_components_without_rows_are_reported():
    X, labels = islands()
    model = BayesianGaussianMixture(8, weight_concentration_prior=1e-3, random_state=0, tol=1e-6).fit(X)
    kept = np.setdiff1d(np.arange(8), model.pruned_)
    assert model.n_components_effective_ == len(kept) == 3
    np.testing.assert_allclose(np.sort(model.counts_[kept]), 20, atol=0.1)
    assert model.counts_[model.pruned_].max() < 1
    assert set(model.labels_) == set(kept)
    for j in kept:
        assert len(set(labels[model.labels_ == j])) == 1
    prior = model.covariance_prior_ / model.degrees_of_freedom_prior_
    empty = model.pruned_[np.argmin(model.counts_[model.pruned_])]
    np.testing.assert_allclose(model.means_[empty], model.mean_prior_, atol=2.0)
    np.testing.assert_allclose(model.covariances_[empty], prior, rtol=0.1, atol=0.1 * prior.max())


@pytest.mark.parametrize("form", FORMS)
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(form):
    X, _ = groups(200, d=3, k=3)
    w = np.random.default_rng(0).integers(0, 3, size=200)
    resp = start(200, 4)
    heavy = BayesianGaussianMixture(4, covariance_type=form, init_params=resp, tol=1e-6)
    often = clone(heavy).set_params(init_params=np.repeat(resp, w, axis=0))
    heavy.fit(X, sample_weight=w)
    often.fit(np.repeat(X, w, axis=0))
    assert heavy.lower_bound_ == pytest.approx(often.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(heavy.means_, often.means_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(heavy.covariance_prior_, often.covariance_prior_, rtol=1e-9)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    X, _ = groups(2400, d=5, k=3)
    many_parts(monkeypatch, X)
    model = BayesianGaussianMixture(4, random_state=0, max_iter=8)
    alone = fit_quietly(clone(model).set_params(engine="serial"), X)
    for n_jobs in (1, 5):
        many = fit_quietly(clone(model).set_params(n_jobs=n_jobs, engine="threads"), X)
        np.testing.assert_array_equal(many.means_, alone.means_)
        np.testing.assert_array_equal(many.history_.lower_bound, alone.history_.lower_bound)


def test_float32_is_kept_and_gives_the_same_mixture():
    X, _ = groups(3000, d=4, k=3)
    single = BayesianGaussianMixture(3, random_state=0).fit(X.astype(np.float32))
    double = BayesianGaussianMixture(3, random_state=0).fit(X)
    assert {getattr(single, name).dtype for name in ("weights_", "means_", "covariances_")} == {np.dtype(np.float32)}
    assert single.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, rel=1e-5)


def test_the_best_of_several_starts_has_the_highest_bound():
    X, _ = groups(200, d=2, k=4)
    model = BayesianGaussianMixture(4, init_params="random_from_data", n_init=5, random_state=0).fit(X)
    seen = {}
    model.set_params(callback=lambda p: seen.__setitem__(p.run, -p.objective)).fit(X)
    assert len(seen) == 5
    assert model.lower_bound_ == max(seen.values())


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    X, _ = groups(300, d=3, k=3, apart=1.0)
    model = fit_quietly(BayesianGaussianMixture(4, random_state=0, max_iter=3, warm_start=True), X)
    reached = model.lower_bound_
    fit_quietly(model, X)
    assert model.history_.lower_bound[0] == reached
    assert model.lower_bound_ > reached
    with pytest.raises(ParameterError, match="warm_start"):
        model.set_params(n_components=5).fit(X)


def test_rows_drawn_from_the_mixture_are_like_those_it_was_made_of():
    X, _ = groups(2000, d=2, k=3)
    model = BayesianGaussianMixture(3, random_state=0).fit(X)
    rows, labels = model.sample(20_000)
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.bincount(labels) / 20_000, model.weights_, atol=0.02)
    assert model.entropy(X).shape == model.uncertainty(X).shape == (2000,)


def test_it_can_be_pickled():
    X, _ = groups(100, d=2, k=2)
    model = BayesianGaussianMixture(3, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


# what is rejected, and what is tolerated


@pytest.mark.parametrize(
    "options, said",
    [
        ({"covariance_type": "VEV"}, "covariance_type must be 'full'"),
        ({"weight_concentration_prior_type": "beta"}, "weight_concentration_prior_type"),
        ({"weight_concentration_prior": 0.0}, "above 0"),
        ({"mean_precision_prior": -1}, "mean_precision_prior"),
        ({"mean_prior": [0.0]}, "mean_prior must have shape"),
        ({"degrees_of_freedom_prior": 1.0}, "above d - 1 = 1"),
        ({"covariance_prior": [[1.0, 2.0], [0.0, 1.0]]}, "symmetric"),
        ({"covariance_prior": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
        ({"covariance_prior": 1.0}, "shape"),
        ({"init_params": "best"}, "init_params"),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_options_that_cannot_be_are_named(options, said):
    X, _ = groups(50, d=2, k=2)
    with pytest.raises(ParameterError, match=said):
        BayesianGaussianMixture(**({"n_components": 2} | options)).fit(X)


def test_more_components_than_rows_are_rejected():
    with pytest.raises(InputError, match="n_samples=3"):
        BayesianGaussianMixture(5).fit(np.eye(3))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "X",
    [
        np.c_[np.arange(20.0), np.ones(20)],
        np.c_[np.arange(20.0), 2 * np.arange(20.0)],
        np.ones((20, 2)),
        np.repeat([[0.0, 1.0], [1e8, 1.0]], 10, axis=0),
        1e-12 * np.random.default_rng(0).normal(size=(20, 2)),
        1e9 + np.random.default_rng(0).normal(size=(20, 2)),
    ],
    ids=["constant-column", "dependent", "one-point", "two-points", "tiny", "far"],
)
def test_hostile_rows_give_finite_beliefs(X, form):
    model = fit_quietly(BayesianGaussianMixture(3, covariance_type=form, random_state=0), X)
    for value in (*model.history_.lower_bound, model.means_, model.covariances_, model.predict_proba(X)):
        assert np.isfinite(value).all()
    rise = np.diff(model.history_.lower_bound)
    assert (rise >= -1e-9 * np.abs(model.history_.lower_bound[1:])).all()


@pytest.mark.parametrize("form", ["full", "tied", "diag", "spherical"])
def test_rows_of_little_weight_in_dependent_columns_have_a_prior(form):
    X = np.outer(np.arange(8.0), [1.0, 2.0])
    model = BayesianGaussianMixture(2, covariance_type=form, random_state=0).fit(X, sample_weight=np.full(8, 1e-25))
    assert np.isfinite(model.covariances_).all()
    assert np.isfinite(model.precisions_).all()


@pytest.mark.parametrize("weight", [1e-3, 1e-8, 1e-12, 1e-14, 1e-16])
@pytest.mark.parametrize("prior", ["dirichlet_process", "dirichlet_distribution"])
def test_rounding_of_the_divergence_is_no_fall_of_the_bound(weight, prior):
    """The terms of the divergence cancel, so that the bound is much smaller than their rounding errors."""
    X = np.random.default_rng(0).normal(size=(29, 2))
    options = {"weight_concentration_prior_type": prior, "max_iter": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ObjectiveRoseWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(10):
            w = weight * np.random.default_rng(seed).random(29)
            BayesianGaussianMixture(2, random_state=seed, **options).fit(X, sample_weight=w)
