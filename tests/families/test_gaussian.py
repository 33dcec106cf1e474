"""Gaussian as a family: agreement with GaussianMixture, and its posterior."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from scipy import stats

from coterie import GaussianMixture, Mixture
from coterie.errors import ParameterError
from coterie.families import Gaussian, Product, StudentT, forms
from coterie.mixture import Prior
from families.cases import learned

rng = np.random.default_rng(7)
X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + [1.0, -5.0, 30.0]
W = rng.uniform(0.2, 3.0, size=40)
FORMS = pytest.mark.parametrize("structure", ["full", "diag", "spherical", "EEE", "EVI"])
PRIORS = pytest.mark.parametrize(
    "prior", [None, "default", Prior(mean=[0.0, 1.0, 2.0], shrinkage=0.5, dof=6.0, scale=np.diag([1.0, 2.0, 3.0]))]
)


@FORMS
@PRIORS
def test_one_component_is_that_of_gaussian_mixture(structure, prior):
    ours = Gaussian(structure).fit(X, W, prior=prior)
    theirs = GaussianMixture(1, covariance_type=structure, reg_covar=0, prior=prior).fit(X, sample_weight=W)
    if prior == "default":  # mclust's takes the mean and variance of the rows: there weighted, here not
        theirs = GaussianMixture(1, covariance_type=structure, reg_covar=0, prior=prior).fit(X)
        ours = Gaussian(structure).fit(X, prior=prior)
    np.testing.assert_allclose(ours.mean_, theirs.means_[0], rtol=1e-9)
    covariance = theirs.covariances_ if structure == "EEE" else theirs.covariances_[0]
    np.testing.assert_allclose(ours.covariance_, covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.log_prob(X), theirs.score_samples(X), rtol=1e-9)


def test_estimates_are_the_closed_forms():
    found = Gaussian().fit(X, W)
    np.testing.assert_allclose(found.mean_, np.average(X, axis=0, weights=W), rtol=1e-12)
    np.testing.assert_allclose(found.covariance_, np.cov(X.T, aweights=W, ddof=0), rtol=1e-9)


@pytest.mark.parametrize("shift, tolerance", [(1e6, 1e-9), (1e9, 1e-5)])
def test_far_from_the_origin_nothing_is_lost(shift, tolerance):
    here, there = Gaussian().fit(X), Gaussian().fit(X + shift)
    np.testing.assert_allclose(there.covariance_, here.covariance_, rtol=tolerance)
    np.testing.assert_allclose(there.log_prob(X + shift), here.log_prob(X), rtol=tolerance)


@pytest.mark.parametrize("family", [Gaussian("diag"), Gaussian(), StudentT()], ids=repr)
def test_a_group_of_a_product_is_its_own_fit(family):
    group = Product([(family, [2, 0]), (Gaussian(), [1])]).fit(X, sample_weight=W).groups_[0]
    alone = copy(family).fit(X[:, [2, 0]], sample_weight=W)
    for found, expected in zip(group._params, alone._params, strict=True):
        np.testing.assert_array_equal(found, expected)


def predicted(structure, prior, new):
    """The posterior predictive log density of each new row given `X`, from evidences."""
    family = Gaussian(structure, reg_covar=0.0, prior=prior)
    family = learned(family, X)

    def stats_of(rows):
        return family.statistics(None, family.features(rows), np.ones((len(rows), 1)))

    before = stats_of(X)
    after = np.array([family.log_evidence(before + stats_of(x[None]))[0] for x in new])
    return after - family.log_evidence(before)[0] + family.row_base(new)


def test_the_posterior_predictive_is_a_student_t():
    prior = Prior(mean=[0.0, 1.0, 2.0], shrinkage=0.5, dof=6.0, scale=[[1.0, 0.2, 0], [0.2, 2.0, 0], [0, 0, 3.0]])
    n, d, mean = len(X), 3, X.mean(axis=0)
    shrinkage, dof = prior.shrinkage + n, prior.dof + n
    center = (n * mean + prior.shrinkage * np.array(prior.mean)) / shrinkage
    away = mean - prior.mean
    scale = prior.scale + (X - mean).T @ (X - mean) + np.outer(away, away) * prior.shrinkage * n / shrinkage
    df = dof - d + 1
    expected = stats.multivariate_t(center, scale * (shrinkage + 1) / (shrinkage * df), df)
    new = X[:8] + rng.normal(size=(8, 3))
    np.testing.assert_allclose(predicted("full", prior, new), expected.logpdf(new), rtol=1e-9)


def test_independent_columns_have_posteriors_of_their_own():
    prior = Prior(mean=[0.0, 1.0, 2.0], shrinkage=0.5, dof=6.0, scale=np.diag([1.0, 2.0, 3.0]))
    n, mean = len(X), X.mean(axis=0)
    shrinkage, dof = prior.shrinkage + n, prior.dof + 2 + n
    center = (n * mean + prior.shrinkage * np.array(prior.mean)) / shrinkage
    scale = np.diag(prior.scale) + ((X - mean) ** 2).sum(axis=0)
    scale += (mean - prior.mean) ** 2 * prior.shrinkage * n / shrinkage
    each = stats.t(dof, center, np.sqrt(scale * (shrinkage + 1) / (shrinkage * dof)))
    np.testing.assert_allclose(predicted("diag", prior, X[:8]), each.logpdf(X[:8]).sum(axis=1), rtol=1e-9)


def test_a_mixture_of_it_alone_is_gaussian_mixture():
    rows = np.concatenate([X, X + 40.0])
    for structure in ("full", "VEI", "tied"):
        ours = Mixture(2, Gaussian(structure), random_state=0).fit(rows)
        theirs = GaussianMixture(2, covariance_type=structure, random_state=0).fit(rows)
        assert ours.log_likelihood_ == theirs.log_likelihood_
        np.testing.assert_array_equal(ours.components_.mean, theirs.means_)


def test_invalid_structures_are_rejected():
    with pytest.raises(ParameterError, match="covariance_type must be one of"):
        Gaussian("round").fit(X)
    with pytest.raises(ParameterError, match="prior must be None, 'default' or"):
        Gaussian(prior=3).fit(X)
    family = learned(Gaussian("EEE"), X)
    stats_of_two = family.statistics(None, family.features(X), rng.dirichlet([1, 1], 40))
    with pytest.raises(ParameterError, match=r"structure='EEE' is supported only.*'full', 'diag' or 'spherical'"):
        family.estimate(stats_of_two)
    with pytest.raises(ParameterError, match="the posterior of Gaussian needs a prior"):
        family.log_evidence(stats_of_two)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 23])
def test_factors_of_many_matrices_are_those_of_each_matrix(d):
    rng = np.random.default_rng(d)
    root = rng.normal(size=(9, 5, d, d + 3))
    matrices = root @ root.mT
    together = forms.factors("full", matrices, 5, d)
    for one, factor, log_det in zip(matrices, together.factor, together.log_det, strict=True):
        alone = forms.factors("full", one, 5, d)
        np.testing.assert_allclose(factor, alone.factor, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(log_det, alone.log_det, rtol=1e-12)
        np.testing.assert_allclose(factor @ factor.mT @ one, np.broadcast_to(np.eye(d), one.shape), atol=1e-8)
    assert (np.triu(together.factor) == together.factor).all()
