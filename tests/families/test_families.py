"""Properties of every family."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import integrate, optimize

from coterie.errors import InputError, ParameterError
from coterie.families import Categorical, GammaPrior, Poisson, as_family
from families.cases import CASES, learned


def over(applies):
    """For all families to which it applies."""
    chosen = {name: case for name, case in CASES.items() if applies(case)}
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen)


ALL = over(lambda case: True)
BY_COLUMN = pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.family.by_column], ids=[n for n, c in CASES.items() if c.family.by_column]
)


def ready(case, X, has_missing=False, prior=None):
    family = learned(case.family, X, has_missing)
    family.prior = prior
    return family


def log_densities(family, params, X):
    """Responsibilities (n, k)."""
    X = family.translate(X)
    return family.scores(family.prepare(params), family.features(X)) + family.row_base(X)[:, None]


def rows(case, n=300, j=0, seed=0):
    family = CASES_LEARNED[id(case)]
    return family.restore(family.draw(case.params, j, n, np.random.default_rng(seed)))


def everything(case):
    """Rows that contain every category."""
    return case.support if isinstance(case.support, np.ndarray) else np.array(case.support)


CASES_LEARNED = {id(case): ready(case, everything(case)) for case in CASES.values()}


def leaves(stats):
    for field in fields(stats):
        value = getattr(stats, field.name)
        yield from leaves(value) if hasattr(value, "leaves") else [np.asarray(value)]


def likelihood(family, params, X, w):
    return float(w @ log_densities(family, params, X)[:, 0])


# density


@ALL
def test_densities_are_those_of_scipy(case):
    X = np.concatenate([rows(case, 50, j) for j in range(3)])
    found = log_densities(CASES_LEARNED[id(case)], case.params, X)
    expected = np.stack([case.log_pdf(case.params, j, X) for j in range(3)], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@ALL
def test_densities_add_up_to_one(case):
    family = CASES_LEARNED[id(case)]
    if isinstance(case.support, np.ndarray):
        total = case.measure * np.exp(log_densities(family, case.params, case.support)).sum(axis=0)
        np.testing.assert_allclose(total, 1.0, rtol=1e-8)
        return
    low, high = case.support
    for j in range(3):

        def density(*x, j=j):
            return float(np.exp(log_densities(family, case.params, np.array([x]))[0, j]))

        total, _ = integrate.nquad(density, list(zip(low, high, strict=True)), opts={"epsabs": 1e-7, "limit": 200})
        assert total == pytest.approx(1.0, abs=1e-5)


@BY_COLUMN
def test_a_missing_value_drops_out_of_the_density(case):
    X = rows(case, 60)
    gappy = X.copy()
    gappy[::2, 0] = gappy[1::3, 1] = np.nan
    family = ready(case, everything(case), has_missing=True)
    found = log_densities(family, case.params, gappy)
    alone = [ready(case, everything(case), has_missing=True)] * 2
    for j, one in enumerate(alone):
        other = X.copy()
        other[:, 1 - j] = np.nan
        there = np.isnan(gappy[:, 1 - j]) & ~np.isnan(gappy[:, j])
        np.testing.assert_allclose(found[there], log_densities(one, case.params, other)[there], rtol=1e-12)
    whole = ~np.isnan(gappy).any(axis=1)
    np.testing.assert_allclose(found[whole], log_densities(CASES_LEARNED[id(case)], case.params, X)[whole], rtol=1e-12)


# statistics


@ALL
def test_statistics_add_up_and_weight_two_is_the_row_twice(case):
    family, X = CASES_LEARNED[id(case)], rows(case, 90)
    resp = np.random.default_rng(1).dirichlet(np.ones(3), 90)
    F, prepared = family.features(family.translate(X)), family.prepare(case.params)

    def some(which, factor=1.0):
        return family.statistics(prepared, family.features(family.translate(X[which])), factor * resp[which])

    whole = family.statistics(prepared, F, resp)
    for a, b in zip(leaves(whole), leaves(some(slice(30)) + some(slice(30, None))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    twice = np.repeat(np.arange(90), 2)
    for a, b in zip(leaves(some(slice(None), 2.0)), leaves(some(twice)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@ALL
def test_the_expected_log_density_is_that_of_the_rows(case):
    family, X = CASES_LEARNED[id(case)], rows(case, 90)
    resp = np.random.default_rng(1).dirichlet(np.ones(3), 90)
    Z = family.translate(X)
    stats = family.statistics(family.prepare(case.params), family.features(Z), resp)
    joint = family.scores(family.prepare(case.params), family.features(Z))
    assert family.expected_log_prob(case.params, stats) == pytest.approx((resp * joint).sum(), rel=1e-9)


# estimates


@ALL
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_the_estimate_is_the_likeliest(case, weighted):
    """A numerical optimiser that starts at the estimate finds no better one."""
    X = rows(case, 200)
    w = np.random.default_rng(2).exponential(size=200) if weighted else np.ones(200)
    family = CASES_LEARNED[id(case)]
    params = family.fit_one(family.translate(X), w)
    best = likelihood(family, params, X, w)
    found = optimize.minimize(lambda t: -likelihood(family, case.params_of(t), X, w), case.theta(params), tol=1e-10)
    assert -found.fun <= best + 1e-6 * abs(best)
    assert likelihood(family, case.params_of(case.theta(params) + 0.1), X, w) < best - 1e-6  # it is no plateau


@over(lambda case: case.prior is not None)
def test_the_estimate_with_a_prior_is_the_most_probable(case):
    X, w = rows(case, 30), np.ones(30)
    family = ready(case, everything(case), prior=case.prior)
    params = family.fit_one(family.translate(X), w)

    def posterior(theta):
        one = case.params_of(theta)
        return -likelihood(family, one, X, w) - case.log_prior(case.prior, one)

    theta = case.theta(params)
    found = optimize.minimize(posterior, theta, tol=1e-10)
    assert posterior(theta) == pytest.approx(found.fun, rel=1e-8)
    assert posterior(theta) < posterior(case.theta(CASES_LEARNED[id(case)].fit_one(family.translate(X), w)))
    one, other = case.params_of(theta), case.params_of(theta + 0.3)
    by_family = family.log_prior(one) - family.log_prior(other)
    assert by_family == pytest.approx(case.log_prior(case.prior, one) - case.log_prior(case.prior, other), rel=1e-8)


def test_a_prior_for_other_columns_is_rejected():
    with pytest.raises(ParameterError, match="one number for all columns, or 3 numbers, one per column"):
        Poisson(GammaPrior([1.0, 2.0], [1.0, 1.0])).fit(np.ones((5, 3)))


@over(lambda case: case.flat is not None)
def test_a_flat_prior_changes_nothing(case):
    X, w = rows(case, 30), np.ones(30)
    free, flat = CASES_LEARNED[id(case)], ready(case, everything(case), prior=case.flat)
    for a, b in zip(free.fit_one(free.translate(X), w), flat.fit_one(flat.translate(X), w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert flat.log_prior(case.params) == pytest.approx(0.0)


@ALL
def test_samples_lead_back_to_the_parameters(case):
    family = CASES_LEARNED[id(case)]
    X = rows(case, 20_000)
    found = family.fit_one(family.translate(X), np.ones(len(X)))
    np.testing.assert_allclose(case.theta(found), case.theta(case.params), atol=0.12)


@ALL
def test_components_are_independent(case):
    family, X = CASES_LEARNED[id(case)], rows(case, 90)
    resp = np.random.default_rng(1).dirichlet(np.ones(3), 90)
    F, prepared = family.features(family.translate(X)), family.prepare(case.params)
    together = family.estimate(family.statistics(prepared, F, resp), case.params)
    for j in range(3):
        mine = type(case.params)(*(None if a is None else a[j : j + 1] for a in case.params))
        alone = family.estimate(family.statistics(family.prepare(mine), F, resp[:, j : j + 1]), mine)
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[j], b[0], rtol=1e-9)


@ALL
def test_a_component_without_rows_has_finite_parameters(case):
    family, X = CASES_LEARNED[id(case)], rows(case, 20)
    F = family.features(family.translate(X))
    resp = np.zeros((20, 3))
    resp[:, 0] = 1.0
    found = family.estimate(family.statistics(family.prepare(case.params), F, resp), case.params)
    assert np.isfinite(family.scores(family.prepare(found), F)).all()


@ALL
def test_rows_that_are_all_alike_have_finite_densities(case):
    family = CASES_LEARNED[id(case)]
    X = np.repeat(rows(case, 1), 10, axis=0)
    found = family.fit_one(family.translate(X), np.ones(10))
    assert np.isfinite(log_densities(family, found, np.concatenate([X, rows(case, 20, 1)]))).all()


# the posterior, where it is known in closed form


@over(lambda case: hasattr(case.family, "log_evidence") and case.counts)
def test_posterior_predictive_probabilities_sum_to_one(case):
    """The evidence with a new row, divided by that without it, is the predictive probability of the new row."""
    X, family = rows(case, 12), ready(case, everything(case), prior=case.prior)

    def stats(some, weight=1.0):
        return family.statistics(None, family.features(family.translate(some)), np.full((len(some), 1), weight))

    assert family.log_evidence(stats(X, 0.0))[0] == pytest.approx(0.0, abs=1e-12)
    before = stats(X)
    nexts = np.array([family.log_evidence(before + stats(x[None]))[0] for x in case.support])
    chances = np.exp(nexts - family.log_evidence(before)[0] + family.row_base(family.translate(case.support)))
    assert chances.sum() == pytest.approx(1.0, abs=1e-6)


@over(lambda case: hasattr(case.family, "expected") and case.prior is not None)
def test_what_is_expected_under_the_posterior_is_the_slope_of_the_evidence(case):
    """d log p(statistics) / d sum_t = E[eta], and with the weight -E[A]."""
    X, family = rows(case, 12), ready(case, everything(case), prior=case.prior)
    stats = family.statistics(None, family.features(family.translate(X)), np.ones((12, 1)))
    found = family.expected(stats)
    step = 1e-5
    for i in range(stats.sum_t.shape[1]):
        up, down = stats.sum_t.copy(), stats.sum_t.copy()
        up[0, i] += step
        down[0, i] -= step
        slope = family.log_evidence(replace(stats, sum_t=up)) - family.log_evidence(replace(stats, sum_t=down))
        assert found.natural[0, i] == pytest.approx(float(slope[0]) / (2 * step), rel=1e-5, abs=1e-6)
    up, down = (replace(stats, weight=stats.weight + sign * step) for sign in (1, -1))
    slope = float((family.log_evidence(up) - family.log_evidence(down))[0]) / (2 * step)
    assert found.constant[0] == pytest.approx(slope, rel=1e-5, abs=1e-6)


# for users


@ALL
def test_a_family_fits_computes_densities_and_samples(case):
    X = rows(case, 40)
    family = pickle.loads(pickle.dumps(case.family))
    assert family.fit(X) is family
    params = family._params
    np.testing.assert_allclose(family.log_prob(X), log_densities(family._learned, params, X)[:, 0])
    drawn = family.sample(7, random_state=0)
    assert drawn.shape == (7, X.shape[1])
    np.testing.assert_array_equal(drawn, family.sample(7, random_state=0))
    for field, value in params._asdict().items():
        np.testing.assert_array_equal(getattr(family, f"{field}_"), value[0])
    assert repr(case.family).startswith(type(case.family).__name__)


@ALL
def test_a_family_that_is_not_fitted_raises_an_error(case):
    with pytest.raises(InputError, match="not fitted"):
        type(case.family)().log_prob(np.zeros((2, 2)))


@ALL
def test_infinity_is_rejected_by_its_column(case):
    X = rows(case, 20)
    X[3, 1] = np.inf
    with pytest.raises(InputError, match=r"column 1 \(1, such as inf\)"):
        type(case.family)().fit(X)


@pytest.mark.parametrize("name", CASES)
def test_a_family_is_known_by_its_name(name):
    assert type(as_family(name.partition(",")[0])) is type(CASES[name].family)
    assert as_family(CASES[name].family) is CASES[name].family


def test_the_error_for_an_unknown_name_lists_the_valid_ones():
    with pytest.raises(ParameterError, match=r"family must be 'bernoulli'.*got 'zeta'"):
        as_family("zeta")


@ALL
@pytest.mark.parametrize("shape", [(5, 0), (0, 2)])
def test_a_table_without_rows_or_columns_is_rejected(case, shape):
    with pytest.raises(InputError, match="at least one row and one column"):
        case.family.fit(np.zeros(shape))


@ALL
def test_complex_numbers_are_rejected(case):
    with pytest.raises(InputError, match="X must contain numbers"):
        case.family.fit(np.ones((5, 2)) + 1j)
    with pytest.raises(InputError, match="sample_weight must be numbers"):
        case.family.fit(np.ones((5, 2)), sample_weight=np.full(5, 1j))


@pytest.mark.parametrize("code", [-1.0, 3.0, 1e9])
def test_codes_out_of_range_are_rejected_before_they_index_an_array(code):
    """A forged model file could otherwise make SciPy write outside of its arrays."""
    family = Categorical(n_categories=3)
    family = family.learned(family.survey(np.array([[0.0], [1.0], [2.0]])))
    with pytest.raises(InputError, match="not codes of the categories"):
        family.features(np.array([[0.0], [code]]))
