"""Exponential and Gamma: shapes of any size, posteriors, and values that are rejected."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma

from coterie import Mixture
from coterie.errors import InputError, ParameterError
from coterie.families import Exponential, Gamma, GammaPrior
from coterie.families.gamma import log_minus_digamma, shape_of

rng = np.random.default_rng(3)


@pytest.mark.parametrize("shape", [1e-3, 0.1, 1.0, 7.0, 39.9, 40.1, 1e3, 1e6])
def test_a_shape_is_found_from_the_mean_logarithm(shape):
    excess = log_minus_digamma(np.array([shape]))
    assert shape_of(excess, 1e8)[0] == pytest.approx(shape, rel=1e-8)


def test_series_and_difference_agree():
    near = np.array([20.0, 40.0, 60.0, 100.0])
    np.testing.assert_allclose(log_minus_digamma(near), np.log(near) - digamma(near), rtol=1e-10)


def test_shapes_have_an_upper_bound():
    assert shape_of(np.array([0.0, -1.0, 1e-300]), 1e8).tolist() == [1e8] * 3
    assert np.isfinite(shape_of(np.array([1e4]), 1e8)).all()


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_gamma_is_the_fit_of_scipy_in_any_unit(scale):
    x = rng.gamma(2.5, 3.0, size=400)
    found = Gamma().fit(scale * x[:, None])
    shape, _, size = stats.gamma.fit(x, floc=0)
    assert found.shape_[0] == pytest.approx(shape, rel=1e-4)
    assert found.shape_[0] / found.rate_[0] == pytest.approx(scale * x.mean(), rel=1e-9)
    assert size == pytest.approx(x.mean() / shape, rel=1e-4)


def test_few_and_tiny_rows_have_finite_parameters():
    for rows in ([[5e-324]], [[1e-300], [1e300]], [[2.0]], [[3.0], [3.0 + 1e-15]]):
        found = Gamma().fit(rows)
        assert np.isfinite([found.shape_, found.rate_]).all()
        assert np.isfinite(found.log_prob(rows)).all()


def test_the_posterior_predictive_of_exponential_is_lomax():
    """If rates have a Gamma density, waiting times have a Lomax density (Pareto type II)."""
    family = Exponential(prior=GammaPrior(3.0, 2.0))
    X, new = rng.exponential(size=(20, 1)), np.linspace(0.1, 9.0, 30)

    def evidence(rows):
        return family.log_evidence(family.statistics(None, family.features(rows), np.ones((len(rows), 1))))[0]

    found = [evidence(np.append(X, [[x]], axis=0)) - evidence(X) for x in new]
    np.testing.assert_allclose(found, stats.lomax(23.0, scale=2.0 + X.sum()).logpdf(new), rtol=1e-10)


@pytest.mark.parametrize("family, bad", [(Gamma(), 0.0), (Gamma(), -2.0), (Exponential(), -2.0)])
def test_values_off_the_support_are_rejected_by_column_with_a_remedy(family, bad):
    X = rng.exponential(size=(9, 3))
    X[4, 1] = bad
    with pytest.raises(InputError, match=rf"column 1 \(1, such as {bad:g}\).*It supports numbers.*or use"):
        family.fit(X)


def test_priors_are_rejected_where_there_are_none():
    with pytest.raises(ParameterError, match="Gamma"):
        Gamma().fit([[1.0], [2.0]], prior="default")
    with pytest.raises(ParameterError, match="prior of Exponential must be"):
        Exponential(prior=3).fit([[1.0]])
    with pytest.raises(ParameterError, match="posterior of Exponential needs a GammaPrior"):
        Exponential().fit([[1.0]])._learned.log_evidence(
            Exponential().statistics(None, np.ones((1, 1)), np.ones((1, 1)))
        )


@pytest.mark.parametrize("family", ["gamma", "exponential"])
def test_mixtures_find_the_groups_and_never_fall(family):
    scale = (0.01, 1.0, 100.0)
    X = np.concatenate([rng.gamma(1.0 if family == "exponential" else 9.0, s, size=(150, 4)) for s in scale])
    model = Mixture(3, family, random_state=0).fit(X)
    assert len(set(zip(model.labels_, np.repeat(range(3), 150), strict=True))) == 3
    assert (np.diff(model.history_.lower_bound) >= -1e-9 * abs(model.lower_bound_)).all()
