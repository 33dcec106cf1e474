"""Directions: Bessel functions of any size, concentrations, draws, and spherical K-means as the limit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, special, stats

from coterie import Mixture, SphericalKMeans
from coterie.errors import InputError
from coterie.families import VonMisesFisher, bessel
from coterie.families.bessel import log_bessel, log_ratio
from coterie.families.von_mises_fisher import Directions, concentration_of

rng = np.random.default_rng(5)
ORDERS = pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 4.0, 24.5, 59.0, 61.0, 499.0, 4999.0])
SIZES = np.array([1e-8, 1e-3, 0.1, 1.0, 10.0, 40.0, 59.0, 61.0, 300.0, 1e4, 1e6, 1e9])


def toward(d, k, n, spread=0.4, seed=0):
    """Rows about k directions that are at right angles."""
    local = np.random.default_rng(seed)
    return np.concatenate([local.normal(size=(n, d)) * spread + 2 * np.eye(d)[j] for j in range(k)])


@ORDERS
def test_ratios_obey_the_recurrence_of_bessel_functions(order):
    """I(v - 1) - I(v + 1) = 2 v / x I(v)."""
    below, above = log_ratio(order, SIZES), log_ratio(order + 1.0, SIZES)
    np.testing.assert_allclose(np.exp(-below), 2 * (order + 1.0) / SIZES + np.exp(above), rtol=1e-9)


@ORDERS
def test_the_slope_of_the_logarithm_is_the_ratio(order):
    x = SIZES[(SIZES > 0.05) & (SIZES < 2e4)]
    step = 1e-4 * x
    slope = (log_bessel(order, x + step) - log_bessel(order, x - step)) / (2 * step)
    np.testing.assert_allclose(slope, np.exp(log_ratio(order, x)), rtol=1e-5, atol=1e-6)  # the step rounds


@pytest.mark.parametrize("order", [0.0, 20.0, 45.0, 59.0, 75.0])
def test_series_and_expansion_agree(order, monkeypatch):
    x = np.sqrt(np.linspace(80.0, 90.0, 5) ** 2 - order**2)
    by_expansion = log_bessel(order, x), log_ratio(order, x)
    monkeypatch.setattr(bessel, "LARGE", 200.0)
    np.testing.assert_allclose(log_bessel(order, x), by_expansion[0], rtol=0, atol=2e-11)
    np.testing.assert_allclose(log_ratio(order, x), by_expansion[1], rtol=0, atol=2e-11)


@pytest.mark.parametrize("order", [0.0, 0.5, 3.0, 20.0])
def test_logarithms_are_those_of_scipy_where_it_has_them(order):
    x = np.array([0.5, 3.0, 40.0, 59.9, 60.1, 500.0])
    expected = np.log(special.ive(order, x)) + x - order * np.log(x)
    np.testing.assert_allclose(log_bessel(order, x), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 120, 125, 1000, 10_000])
@pytest.mark.parametrize("kappa", [0.01, 1.0, 55.0, 65.0, 1e3, 1e6])
def test_a_concentration_is_found_from_the_mean_length(d, kappa):
    length = np.tanh(kappa) if d == 1 else float(np.exp(log_ratio(0.5 * d - 1.0, np.array([kappa])))[0])
    if 1.0 - length > 1e-9:  # else the length does not tell
        assert concentration_of(np.array([length]), d)[0] == pytest.approx(kappa, rel=1e-6)


def test_concentrations_are_bounded():
    for d in (1, 2, 3, 10_000):
        found = concentration_of(np.array([0.0, 1.0, 1.0 + 1e-15]), d)
        assert found[0] == 0.0
        assert np.isfinite(found).all()
        assert (found[1:] > 15).all()


@pytest.mark.parametrize("d", [3, 10_000])
@pytest.mark.parametrize("kappa", [0.0, 1.0, 1e6])
def test_densities_and_draws_are_finite_for_many_columns_and_any_concentration(d, kappa):
    params = Directions(np.eye(1, d), np.array([kappa]))
    family = VonMisesFisher()
    X = family.draw(params, 0, 20, rng)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(family.scores(family.prepare(params), family.features(X))).all()


@pytest.mark.parametrize("kappa", [0.3, 5.0, 1e5])
def test_draws_on_the_sphere_have_the_cosines_they_should(kappa):
    """In three columns the distribution of the cosine is known in closed form."""
    X = VonMisesFisher().draw(Directions(np.array([[0.0, 0.6, 0.8]]), np.array([kappa])), 0, 4000, rng)
    away = 1.0 - X @ [0.0, 0.6, 0.8]
    chances = -np.expm1(-kappa * away) / -np.expm1(-2 * kappa)
    assert stats.kstest(chances, "uniform").pvalue > 1e-3
    side = X - (X @ [0.0, 0.6, 0.8])[:, None] * [0.0, 0.6, 0.8]
    assert np.abs(side.mean(axis=0)).max() < 5 * np.abs(side).std() / np.sqrt(len(X))


@pytest.mark.parametrize("d, kappa", [(2, 4.0), (50, 30.0), (200, 2000.0)])
def test_draws_lead_back_to_the_parameters(d, kappa):
    mean = np.ones(d) / np.sqrt(d)
    found = VonMisesFisher().fit(VonMisesFisher().draw(Directions(mean[None], np.array([kappa])), 0, 3000, rng))
    assert found.concentration_ == pytest.approx(kappa, rel=0.1)
    assert found.mean_direction_ @ mean > 0.98


def test_lengths_do_not_matter_and_sparse_rows_are_the_same():
    X = np.where(rng.random((60, 5)) < 0.4, 0.0, rng.normal(size=(60, 5))) + np.eye(5)[0]
    one = VonMisesFisher().fit(X)
    for other in (X * rng.uniform(1e-3, 1e3, size=(60, 1)), sparse.csr_array(X), X * 1e200, X * 1e-200):
        two = VonMisesFisher().fit(other)
        np.testing.assert_allclose(two.mean_direction_, one.mean_direction_, rtol=1e-9)
        assert two.concentration_ == pytest.approx(one.concentration_, rel=1e-9)


def test_a_row_of_length_zero_is_rejected_by_its_number():
    X = rng.normal(size=(30, 3))
    X[17] = 0.0
    for rows in (X, sparse.csr_array(X)):
        with pytest.raises(InputError, match=r"row 17 of X \(counted from 0\) has length 0.*drop"):
            VonMisesFisher().fit(rows)
        with pytest.raises(InputError, match="row 17 of X"):
            Mixture(2, "von_mises_fisher").fit(rows)


def test_spherical_k_means_is_the_limit_of_hard_assignment_at_one_concentration():
    """At its result both steps of hard EM, with one concentration for all, change nothing."""
    X = toward(6, 4, 80, spread=0.7)
    flat = SphericalKMeans(4, random_state=0, tol=0).fit(X)
    family = VonMisesFisher()
    Z = family.translate(X)
    params = Directions(flat.cluster_centers_, np.full(4, 1e6))
    labels = family.scores(family.prepare(params), family.features(Z)).argmax(axis=1)
    np.testing.assert_array_equal(labels, flat.labels_)
    hard = (labels[:, None] == np.arange(4)).astype(float)
    moved = family.estimate(family.statistics(None, family.features(Z), hard))
    np.testing.assert_allclose(moved.mean_direction, flat.cluster_centers_, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
def test_mixtures_find_the_directions_and_never_fall(form):
    model = Mixture(3, "von_mises_fisher", random_state=0).fit(form(toward(8, 3, 100)))
    assert len(set(zip(model.labels_, np.repeat(range(3), 100), strict=True))) == 3
    assert (np.diff(model.history_.lower_bound) >= -1e-9 * abs(model.lower_bound_)).all()
    assert (model.components_.mean_direction.max(axis=1) > 0.97).all()
