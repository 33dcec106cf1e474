"""Log densities near their mode, where large terms cancel: right to the last digits that the values have."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import sparse

from coterie import Mixture
from coterie.families import Gamma, Multinomial, Poisson, VonMisesFisher
from coterie.families.counts import deviances
from coterie.families.gamma import Shapes
from coterie.families.von_mises_fisher import Directions

DIGITS = 60
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def log_gamma(x):
    """log Gamma of a Decimal, by Stirling's series beyond 60, to forty digits."""
    shift = Decimal(0)
    while x < 60:
        shift += x.ln()
        x += 1
    terms = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156), (-3617, 122400)]
    series = sum(Decimal(a) / (Decimal(b) * x ** (2 * i + 1)) for i, (a, b) in enumerate(terms))
    return (x - Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + series - shift


def exactly(function):
    with localcontext() as context:
        context.prec = DIGITS
        return float(function())


def poisson(x, rate):
    x, rate = Decimal(int(x)), Decimal(float(rate))
    return exactly(lambda: x * rate.ln() - rate - log_gamma(x + 1))


def test_the_reference_is_that_of_small_counts():
    assert exactly(lambda: log_gamma(Decimal(6)).exp()) == pytest.approx(120.0, rel=1e-15)
    assert poisson(3, 2.0) == pytest.approx(3 * np.log(2.0) - 2 - np.log(6.0), rel=1e-14)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e5, 1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("form", ["dense", "sparse", "missing"])
def test_poisson_loses_no_digits_of_large_counts(size, form):
    spread = np.sqrt(size)
    X = np.round(size + spread * np.array([-3.0, -1.0, 0.0, 0.5, 2.0]))[:, None]
    X = np.maximum(np.column_stack([X, X[::-1], np.arange(5.0)]), 0.0)
    family = Poisson().fit(X)
    expected = np.array([sum(poisson(x, rate) for x, rate in zip(row, family.rate_, strict=True)) for row in X])
    rows = sparse.csr_array(X) if form == "sparse" else X
    if form == "missing":
        rows = np.where(np.arange(3) == 1, np.nan, X)
        expected = np.array([poisson(row[0], family.rate_[0]) + poisson(row[2], family.rate_[2]) for row in X])
    off = 1e-12 + 1e-15 * spread if size > 1e5 else 1e-9  # the rounding of x - rate
    np.testing.assert_allclose(family.log_prob(rows), expected, rtol=1e-12, atol=8 * off)


@pytest.mark.parametrize("size", [1e2, 1e6, 1e12, 1e15])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_multinomial_loses_no_digits_of_large_counts(size, form):
    X = np.round(
        size * np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]) + np.sqrt(size) * np.array([[1, 0, -1], [-1, 0, 1]])
    )
    family = Multinomial().fit(X)
    p = family.probability_

    def log_probability(row):
        x = [Decimal(int(value)) for value in row]
        each = sum(a * Decimal(float(b)).ln() - log_gamma(a + 1) for a, b in zip(x, p, strict=True))
        excess = sum(x) * (sum(Decimal(float(b)) for b in p) - 1)  # shares in float64 do not quite add up to one
        return log_gamma(sum(x) + 1) + each - excess

    expected = [exactly(lambda row=row: log_probability(row)) for row in X]
    rows = sparse.csr_array(X) if form == "sparse" else X
    np.testing.assert_allclose(family.log_prob(rows), expected, atol=1e-9 + 1e-14 * np.sqrt(size))


@pytest.mark.parametrize("shape", [3.0, 9e3, 2e4, 1e6, 1e8])
def test_gamma_loses_no_digits_where_values_are_close_to_their_mean(shape):
    rate = shape / 7.0
    family = Gamma()
    X = np.array([[7.0], [7.0 + 7.0 / np.sqrt(shape)], [7.0 - 10.0 / np.sqrt(shape)]])
    found = family.scores(family.prepare(Shapes(np.array([[shape]]), np.array([[rate]]))), family.features(X))[:, 0]

    def log_density(x):
        a, b, x = Decimal(shape), Decimal(rate), Decimal(float(x))
        return a * b.ln() - log_gamma(a) + (a - 1) * x.ln() - b * x

    expected = [exactly(lambda x=x: log_density(x)) for x in X[:, 0]]
    np.testing.assert_allclose(found, expected, atol=1e-13 * (10 + np.sqrt(shape)) + 1e-15 * min(shape, 1e4) * 10)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kappa", [5.0, 9e3, 2e4, 1e7, 1e10])
def test_von_mises_fisher_loses_no_digits_of_high_concentrations(kappa, form):
    angles = np.array([0.0, 1.0, -2.0]) / np.sqrt(kappa)
    X = np.column_stack([np.cos(angles), np.sin(angles), 0 * angles])
    params = Directions(np.array([[1.0, 0.0, 0.0]]), np.array([kappa]))
    family = VonMisesFisher()
    found = family.scores(family.prepare(params), family.features(form(X)))[:, 0]
    # in three dimensions: kappa / (4 pi sinh kappa) exp(kappa cos), of which 1 - cos = 2 sin^2(angle / 2)
    expected = np.log(kappa / (2 * np.pi)) - np.log1p(-np.exp(-2 * kappa)) - 2 * kappa * np.sin(angles / 2) ** 2
    np.testing.assert_allclose(found, expected, atol=1e-14 * (100 + 10 * min(kappa, np.sqrt(kappa) * 100)))


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
@pytest.mark.parametrize("size", [1e12, 1e15])
def test_mixtures_of_large_counts_find_components_that_are_close(name, size):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    rates = size * np.array([[1.0, 1.0], [1.0 + 20 / np.sqrt(size), 1.0]])
    X = rng.poisson(rates[labels]).astype(np.float64)
    model = Mixture(2, name, random_state=0).fit(X)
    assert (model.labels_ == labels).mean() in (0.0, 1.0)
    objective = model.history_.log_likelihood
    assert (np.diff(objective) >= -1e-6).all()
    assert (model.history_.kl >= -1e-6).all()
    assert model.score(X) == pytest.approx(model.score_samples(X).mean(), rel=1e-12)


@pytest.mark.parametrize("mean", [1e-10, 0.3, 1.0, 7.0, 1e6, 1e17, 1e30])
def test_deviances_are_precise_at_any_distance_from_the_mean(mean):
    ratio = np.array([1e-300, 1e-30, 1e-16, 1e-8, 0.4, 0.49999, 0.5, 0.6, 1 - 1e-9, 1.0, 1 + 1e-9, 3.0, 1e8, 1e30])
    X = ratio * mean

    def deviance(x):
        x, m = Decimal(float(x)), Decimal(mean)
        return x * (x / m).ln() - x + m

    expected = [exactly(lambda x=x: deviance(x)) for x in X]
    np.testing.assert_allclose(deviances(X, np.full(len(X), mean)), expected, rtol=1e-13, atol=1e-23 * mean)
    assert deviances(np.zeros(1), np.array([mean]))[0] == mean


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
def test_mixtures_of_small_and_large_counts(name):
    """The rate of one component is more than 1e16 times as large as counts of the other."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.poisson([2.0, 5.0], (20, 2)), rng.poisson([1e9, 2e9], (20, 2)) * 1e9])[:, ::-1]
    X = np.column_stack([X, X[::-1, 0]])
    model = Mixture(2, name, random_state=0).fit(X)
    assert (model.labels_ == np.repeat([0, 1], 20)).mean() in (0.0, 1.0)
    assert np.isfinite(model.history_.lower_bound).all()
