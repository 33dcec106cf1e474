"""Rows with gaps: every number against the formulas of one row and one component at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from coterie.kernels.plain import gaussian as plain
from coterie.mixture import missing

FORMS = ("full", "tied", "diag", "spherical")
N, D, K = 60, 4, 3


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def gaussians(form, rng, d=D, k=K):
    """Components of this form, and their weights and covariances (k, d, d)."""
    means = rng.normal(size=(k, d)) * 2 + 5
    weights = rng.dirichlet(np.full(k, 5.0))
    if form == "spherical":
        covariances = rng.uniform(0.5, 2, k)[:, None, None] * np.eye(d)
    elif form == "diag":
        covariances = rng.uniform(0.5, 2, (k, d))[:, :, None] * np.eye(d)
    else:
        roots = rng.normal(size=(k if form == "full" else 1, d, d))
        covariances = np.broadcast_to(roots @ roots.swapaxes(1, 2) + 0.3 * np.eye(d), (k, d, d))
    return of(form, weights, means, covariances), weights, covariances


def of(form, weights, means, covariances):
    d = means.shape[1]
    factors = np.linalg.inv(np.linalg.cholesky(covariances)).swapaxes(1, 2)
    log_scale = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1) - d / 2 * np.log(2 * np.pi)
    diagonals = np.diagonal(factors, axis1=1, axis2=2)
    factor = {"full": factors, "tied": factors[0], "diag": diagonals, "spherical": diagonals[:, 0]}[form].copy()
    with np.errstate(divide="ignore"):
        return plain.Gaussians(form, np.log(weights) + log_scale, means, factor, means.mean(axis=0))


def gappy(rng, n=N, d=D, share=0.3):
    X = rng.normal(size=(n, d)) * 2 + 5
    gaps = rng.random((n, d)) < share
    gaps[np.arange(n), rng.integers(d, size=n)] = False
    X[gaps] = np.nan
    return X


def one_row(x, mean, covariance):
    """log density of what was observed; expectation and covariance of the whole row given that."""
    o, h = ~np.isnan(x), np.isnan(x)
    filled, spare = x.copy(), np.zeros_like(covariance)
    slope = covariance[np.ix_(h, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
    filled[h] = mean[h] + slope @ (x[o] - mean[o])
    spare[np.ix_(h, h)] = covariance[np.ix_(h, h)] - slope @ covariance[np.ix_(o, h)]
    density = multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(x[o]) if o.any() else 0.0
    return density, filled, spare


def naive_joint(X, g, weights, covariances):
    with np.errstate(divide="ignore"):
        return np.array(
            [[np.log(weights[j]) + one_row(x, g.means[j], covariances[j])[0] for j in range(len(weights))] for x in X]
        )


def naive_em(X, w, g, weights, covariances, r):
    k, d = g.means.shape
    weight, sum_dx, full = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    for x, w_i, r_i in zip(X, w, r, strict=True):
        for j in range(k):
            _, filled, spare = one_row(x, g.means[j], covariances[j])
            dx = filled - g.means[j]
            weight[j] += w_i * r_i[j]
            sum_dx[j] += w_i * r_i[j] * dx
            full[j] += w_i * r_i[j] * (np.outer(dx, dx) + spare)
    diagonals = np.diagonal(full, axis1=1, axis2=2)
    by_form = {"full": full, "tied": full.sum(axis=0), "diag": diagonals, "spherical": diagonals.sum(axis=1)}
    return weight, sum_dx, by_form[g.form]


def assert_same(got, wanted, **tolerance):
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, **({"rtol": 1e-9, "atol": 1e-9} | tolerance))


@pytest.mark.parametrize("form", FORMS)
def test_the_joint_density_is_that_of_the_observed_columns(form, rng):
    X, (g, weights, covariances) = gappy(rng), gaussians(form, rng)
    joint = missing.log_joint(X, g, missing.patterns(X))
    np.testing.assert_allclose(joint, naive_joint(X, g, weights, covariances), rtol=1e-10)


@pytest.mark.parametrize("e_step", ["soft", "hard", "stochastic"])
@pytest.mark.parametrize("form", FORMS)
def test_the_sums_are_those_expected_row_by_row(form, e_step, rng):
    X, (g, weights, covariances) = gappy(rng), gaussians(form, rng)
    w, u, known = rng.uniform(0, 3, N), rng.random(N), rng.integers(-1, K, N)
    joint = naive_joint(X, g, weights, covariances)
    r, per_row, bound = plain.posterior(joint, e_step, known, u)
    wanted = (*naive_em(X, w, g, weights, covariances, r), w @ per_row, w @ bound)
    assert_same(missing.em(X, w, g, missing.patterns(X), e_step, known, u), wanted)


@pytest.mark.parametrize("form", FORMS)
def test_the_log_likelihood_is_that_of_the_observed_columns(form, rng):
    X, (g, weights, covariances) = gappy(rng), gaussians(form, rng)
    sums = missing.em(X, None, g, missing.patterns(X))
    wanted = logsumexp(naive_joint(X, g, weights, covariances), axis=1).sum()
    assert sums.log_likelihood == pytest.approx(wanted, rel=1e-12)
    assert sums.bound == sums.log_likelihood


@pytest.mark.parametrize("e_step", ["soft", "hard", "stochastic"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_without_gaps_give_the_very_sums_of_the_kernel(form, e_step, rng):
    X, (g, *_) = rng.normal(size=(N, D)), gaussians(form, rng)
    w, u, known = rng.uniform(0, 3, N), rng.random(N), rng.integers(-1, K, N)
    found = missing.patterns(X)
    for one, other in zip(
        missing.em(X, w, g, found, e_step, known, u), plain.em(X, w, g, e_step, known, u), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(missing.log_joint(X, g, found), plain.log_joint(X, g))
    np.testing.assert_array_equal(missing.impute(X, g, found), X)


def test_patterns_part_the_rows_by_what_they_lack(rng):
    X = gappy(rng, n=300, d=11, share=0.2)
    found = missing.patterns(X)
    assert len(found[0].hidden) == 0
    np.testing.assert_array_equal(np.sort(np.concatenate([p.rows for p in found])), np.arange(300))
    assert len({tuple(p.hidden) for p in found}) == len(found)
    for pattern in found:
        np.testing.assert_array_equal(np.isnan(X[pattern.rows][:, pattern.hidden]), True)
        np.testing.assert_array_equal(np.isnan(X[pattern.rows][:, pattern.observed]), False)
        np.testing.assert_array_equal(np.sort([*pattern.observed, *pattern.hidden]), np.arange(11))


def test_the_order_of_patterns_is_decided_by_the_columns_they_lack(rng):
    X = gappy(rng, n=200)
    moved = missing.patterns(X[rng.permutation(200)])
    assert [tuple(p.hidden) for p in moved] == [tuple(p.hidden) for p in missing.patterns(X)]


@pytest.mark.parametrize("form", FORMS)
def test_neither_the_order_of_rows_nor_of_patterns_matters(form, rng):
    X, (g, *_), order, w = gappy(rng), gaussians(form, rng), rng.permutation(N), rng.uniform(0, 3, N)
    wanted = missing.em(X, w, g, missing.patterns(X))
    assert_same(missing.em(X[order], w[order], g, missing.patterns(X[order])), wanted)
    assert_same(missing.em(X, w, g, missing.patterns(X)[::-1]), wanted)


@pytest.mark.parametrize("form", FORMS)
def test_weight_two_is_the_row_twice(form, rng):
    X, (g, *_), w = gappy(rng), gaussians(form, rng), rng.integers(0, 3, N)
    twice = np.repeat(X, w, axis=0)
    assert_same(
        missing.em(X, w.astype(float), g, missing.patterns(X)), missing.em(twice, None, g, missing.patterns(twice))
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_row_of_which_nothing_is_known_has_density_one(form, rng):
    X, (g, weights, covariances) = np.full((2, D), np.nan), gaussians(form, rng)
    found = missing.patterns(X)
    np.testing.assert_allclose(missing.log_joint(X, g, found), np.log([weights, weights]))
    sums = missing.em(X, None, g, found)
    assert_same(sums[:3], naive_em(X, [1, 1], g, weights, covariances, np.array([weights, weights])))
    assert sums.log_likelihood == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(missing.impute(X, g, found), [weights @ g.means] * 2)


@pytest.mark.parametrize("form", FORMS)
def test_a_component_without_weight_gets_nothing(form, rng):
    X, (g, _, covariances) = gappy(rng), gaussians(form, rng)
    g = of(form, np.array([0.0, 0.4, 0.6]), g.means, covariances)
    sums = missing.em(X, None, g, missing.patterns(X))
    assert sums.weight[0] == 0
    assert all(np.isfinite(each).all() for each in sums)


@pytest.mark.parametrize("form", FORMS)
def test_single_precision_rows_give_the_sums_of_their_values(form, rng):
    X, (g, *_) = gappy(rng).astype(np.float32), gaussians(form, rng)
    found = missing.patterns(X)
    wanted = missing.em(X.astype(np.float64), None, g, found)
    assert_same(missing.em(X, None, g, found), wanted, rtol=1e-5, atol=1e-4)
    assert missing.log_joint(X, g, found).dtype == np.float32
    assert missing.impute(X, g, found).dtype == np.float32


@pytest.mark.parametrize("form", FORMS)
def test_gaps_are_filled_with_the_expectation_given_the_rest_of_the_row(form, rng):
    X, (g, weights, covariances) = gappy(rng), gaussians(form, rng)
    filled = missing.impute(X, g, missing.patterns(X))
    joint = naive_joint(X, g, weights, covariances)
    r = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    wanted = [
        sum(r_i[j] * one_row(x, g.means[j], covariances[j])[1] for j in range(K)) for x, r_i in zip(X, r, strict=True)
    ]
    np.testing.assert_allclose(filled, wanted, rtol=1e-9)
    observed = ~np.isnan(X)
    np.testing.assert_array_equal(filled[observed], X[observed])
    assert np.isnan(X).any()


@pytest.mark.parametrize("form", ["full", "tied"])
def test_a_step_never_lowers_the_likelihood_of_what_was_observed(form, rng):
    X, (g, weights, covariances) = gappy(rng, share=0.4), gaussians(form, rng)
    w, found, before = rng.uniform(0.5, 2, N), missing.patterns(X), -np.inf
    for _ in range(5):
        now = w @ logsumexp(naive_joint(X, g, weights, covariances), axis=1)
        assert now > before
        before, sums = now, missing.em(X, w, g, found)
        step = sums.sum_dx / sums.weight[:, None]
        weights = sums.weight / sums.weight.sum()
        outer = sums.weight[:, None, None] * step[:, :, None] * step[:, None, :]
        if form == "full":
            covariances = (sums.sum_dxx - outer) / sums.weight[:, None, None]
        else:
            covariances = np.broadcast_to((sums.sum_dxx - outer.sum(axis=0)) / w.sum(), (K, D, D))
        g = of(form, weights, g.means + step, covariances)


def test_many_rows_go_through_the_compiled_kernels_alike(rng):
    X, (g, *_) = gappy(rng, n=60_000, share=0.15), gaussians("full", rng)
    sums = missing.em(X, None, g, missing.patterns(X))
    parts = [missing.em(part, None, g, missing.patterns(part)) for part in np.array_split(X, 40)]
    assert_same(sums, [sum(each) for each in zip(*parts, strict=True)], rtol=1e-8, atol=1e-6)
