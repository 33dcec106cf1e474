"""What a Gaussian mixture is given: parts that stay fixed, components that are known, and where to start."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coterie import GaussianMixture
from coterie.mixture import Prior
from mixture.rows import (
    climbs,
    estimate,
    far_from_settled,
    groups,
    islands,
    log_joint,
    one_hot,
    posterior,
    steps_of,
    theta,
)

STARTS = ["auto", "kmeans", "k-means++", "random", "random_from_data", "hierarchical"]
# Little work is done by NumPy, more by compiled kernels.
SIZES = pytest.mark.parametrize("n", [150, 6000], ids=["small", "large"])
TIGHT = {"tol": 1e-10, "max_iter": 5000}


# what is held fixed


GIVEN = {
    "weights": ("weights_init", [0.25, 0.25, 0.5]),
    "means": ("means_init", groups(200)[0][:3]),  # a row of each group
    "covariances": ("precisions_init", np.stack([np.eye(4) * s for s in (0.5, 1.0, 2.0)])),
}


@pytest.mark.parametrize("held", [["weights"], ["means"], ["covariances"], ["weights", "means"], list(GIVEN)], ids=str)
def test_what_is_fixed_stays_and_the_rest_is_fitted_to_it(held):
    X, _ = groups(200)
    start = dict(GIVEN.values())
    model = GaussianMixture(3, fixed=held, reg_covar=0, tol=1e-12, max_iter=20_000, **start).fit(X)
    moved = dict(zip(GIVEN, estimate(X, posterior(X, *theta(model))), strict=True))
    if "means" in held:  # the scatter is about the means that are given
        r, away = posterior(X, *theta(model)), X[:, None] - model.means_
        moved["covariances"] = np.einsum("nk,nki,nkj->kij", r, away, away) / r.sum(axis=0)[:, None, None]
    for name, (_, value) in GIVEN.items():
        found = getattr(model, f"{name}_")
        if name in held:
            np.testing.assert_array_equal(found, np.linalg.inv(value) if name == "covariances" else value)
        else:
            np.testing.assert_allclose(found, moved[name], atol=1e-4)
    free = {"weights": 2, "means": 12, "covariances": 30}
    assert model.n_parameters_ == sum(count for name, count in free.items() if name not in held)
    climbs(model.history_)


# components that are known


@SIZES
def test_known_components_give_shares_means_and_covariances_of_their_rows(n):
    X, labels = groups(n)
    weight = np.random.default_rng(3).integers(1, 4, size=n).astype(float)
    shares, means, full = estimate(X, weight[:, None] * one_hot(labels))
    pooled = np.tensordot(shares, full, 1)
    expected = {
        "VVV": full,
        "EEE": pooled,
        "VVI": np.diagonal(full, axis1=1, axis2=2),
        "VII": np.trace(full, axis1=1, axis2=2) / 4,
        "EII": np.full(3, np.trace(pooled) / 4),
    }
    for name, covariances in expected.items():
        model = GaussianMixture(3, covariance_type=name, reg_covar=0, init_params="random", random_state=0)
        model.fit(X, sample_weight=weight, known_labels=labels)
        np.testing.assert_allclose(model.weights_, shares, rtol=1e-12)
        np.testing.assert_allclose(model.means_, means, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.covariances_, covariances, rtol=1e-9, atol=1e-12)
        assert model.converged_
        complete = log_joint(X, *theta(model))[np.arange(n), labels]
        assert model.log_likelihood_ == pytest.approx(weight @ complete, rel=1e-10)


def test_known_components_and_a_prior_give_the_most_probable_parameters():
    X, labels = groups(80)
    center, scale, kappa, dof = np.array([1.0, -1.0, 0.5, 0.0]), np.diag([1.0, 2.0, 3.0, 4.0]) + 0.5, 4.0, 7.0
    alpha = np.array([2.0, 5.0, 1.5])
    prior = Prior(concentration=alpha, mean=center, shrinkage=kappa, dof=dof, scale=scale)
    model = GaussianMixture(3, reg_covar=0, prior=prior).fit(X, known_labels=labels)
    for j in range(3):
        mine = X[labels == j]
        N, mean = len(mine), mine.mean(axis=0)
        assert model.weights_[j] == pytest.approx((N + alpha[j] - 1) / (80 + alpha.sum() - 3), rel=1e-12)
        np.testing.assert_allclose(model.means_[j], (kappa * center + N * mean) / (kappa + N), rtol=1e-10)
        away = (mean - center)[:, None]
        scatter = scale + (mine - mean).T @ (mine - mean) + kappa * N / (kappa + N) * away @ away.T
        np.testing.assert_allclose(model.covariances_[j], scatter / (dof + 4 + 2 + N), rtol=1e-10)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("init", STARTS)
def test_components_keep_the_numbers_of_their_known_rows(order, init):
    X, labels = islands()
    named = np.array(order)[labels]
    y = np.where(np.arange(60) % 4 == 0, named, -1)
    model = GaussianMixture(3, init_params=init, random_state=0).fit(X, known_labels=y)
    np.testing.assert_array_equal(model.labels_, named)


@SIZES
def test_known_rows_keep_their_component_whatever_predict_says_of_them(n):
    X, labels = groups(n)
    y = np.where(np.arange(n) % 3 == 0, labels, -1)
    y[0] = (np.argmax(posterior(X, *estimate(X, one_hot(labels)))[0]) + 1) % 3  # known to be where it does not look
    model = GaussianMixture(3, reg_covar=0, init_params=labels, **TIGHT).fit(X, known_labels=y)
    resp = np.where((y >= 0)[:, None], one_hot(y), posterior(X, *theta(model)))
    for found, expected in zip(theta(model), estimate(X, resp), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert model.labels_[0] != y[0]
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    climbs(model.history_)


def test_labels_that_are_all_unknown_are_none():
    X, _ = groups(100)
    blind, none = (GaussianMixture(2, random_state=0).fit(X, known_labels=y) for y in (np.full(100, -1), None))
    np.testing.assert_array_equal(blind.means_, none.means_)


# starts


@SIZES
def test_labels_and_responsibilities_are_where_a_fit_starts(n):
    X, labels = groups(n)
    resp = np.random.default_rng(6).dirichlet(np.ones(3), size=n)
    for given, first in ((labels, one_hot(labels)), (one_hot(labels), one_hot(labels)), (resp, resp)):
        start = steps_of(GaussianMixture(3, init_params=given, reg_covar=0), X)[0]
        for found, expected in zip(start[:3], estimate(X, first), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_given_parts_are_where_a_fit_starts():
    X, _ = groups(200)
    for parts in (["means"], ["weights"], ["covariances"], ["weights", "means"], list(GIVEN)):
        start = steps_of(GaussianMixture(3, random_state=0, **{GIVEN[part][0]: GIVEN[part][1] for part in parts}), X)[0]
        for part in parts:
            value = GIVEN[part][1]
            np.testing.assert_array_equal(
                getattr(start, part), np.linalg.inv(value) if part == "covariances" else value
            )


def test_a_warm_start_goes_on_where_the_last_fit_stopped():
    X, labels = far_from_settled(k=3)
    straight = GaussianMixture(3, init_params=labels, tol=0, max_iter=8)
    halves = GaussianMixture(3, init_params=labels, tol=0, max_iter=4, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        straight.fit(X)
        middle = halves.fit(X).log_likelihood_
        halves.fit(X)
    assert halves.history_.log_likelihood[0] == middle
    np.testing.assert_array_equal(halves.means_, straight.means_)
    np.testing.assert_array_equal(halves.covariances_, straight.covariances_)


def test_the_best_of_several_starts_is_kept():
    X, _ = groups(200, k=5, apart=1.0)
    ends = {}
    model = GaussianMixture(
        5,
        covariance_type="EII",
        init_params="random_from_data",
        n_init=6,
        random_state=0,
        callback=lambda p: ends.__setitem__(p.run, p.objective),
    ).fit(X)
    assert sorted(ends) == list(range(6))
    assert len({round(end, 3) for end in ends.values()}) > 1  # otherwise there is nothing to choose
    assert -(model.log_likelihood_ + model.history_.log_prior[-1]) == pytest.approx(min(ends.values()), rel=1e-12)
    assert model.history_.log_likelihood[-1] == model.log_likelihood_
