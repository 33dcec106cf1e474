"""The cases of test_families.py: every family with parameters and checks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit, logit, softmax

from coterie.families import (
    Bernoulli,
    BetaPrior,
    Categorical,
    DirichletPrior,
    Exponential,
    Gamma,
    GammaPrior,
    Gaussian,
    Multinomial,
    Poisson,
    StudentT,
    VonMisesFisher,
)
from coterie.families.bernoulli import Probabilities
from coterie.families.categorical import CategoryProbabilities
from coterie.families.exponential import Rates as Paces
from coterie.families.gamma import Shapes
from coterie.families.gaussian import Normals
from coterie.families.multinomial import Shares
from coterie.families.normal_prior import Prior
from coterie.families.poisson import Rates
from coterie.families.student_t import StudentTParameters
from coterie.families.von_mises_fisher import Directions


class Case(NamedTuple):
    """A family, parameters of three components of two columns, and how to check them."""

    family: Any
    params: Any  # of three components
    log_pdf: Any  # (params, j, X) -> (n,): the density of component j, by SciPy or by hand
    support: Any  # rows that have all but 1e-9 of the probability, or (low, high) of a box to integrate over
    theta: Any  # params -> (m,) free numbers of the first component, without bounds
    params_of: Any  # the way back, one component
    flat: Any = None  # a prior that says nothing
    prior: Any = None  # one that does
    log_prior: Any = None  # (prior, params) -> its log density at the first component up to a constant
    measure: float = 1.0  # what each row of the support stands for: 1, or a piece of a line

    @property
    def counts(self):
        """Whether the rows of the support are all there are."""
        return isinstance(self.support, np.ndarray) and self.measure == 1.0


def triangle(matrix):
    """The free numbers of a covariance of two columns."""
    lower = np.linalg.cholesky(matrix)
    return np.array([np.log(lower[0, 0]), lower[1, 0], np.log(lower[1, 1])])


def covariance(t):
    lower = np.array([[np.exp(t[0]), 0.0], [t[1], np.exp(t[2])]])
    return lower @ lower.T


def normal_inverse_wishart(prior, params):
    matrix = np.array(params.covariance[0])
    mean = stats.multivariate_normal(prior.mean, matrix / prior.shrinkage).logpdf(params.mean[0])
    return mean + stats.invwishart(prior.dof, prior.scale).logpdf(matrix)


def grid(*axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)).astype(float)


RATES = Rates(np.array([[0.5, 3.0], [4.0, 0.1], [2.0, 2.0]]))
CHANCES = Probabilities(np.array([[0.1, 0.6], [0.9, 0.5], [0.3, 0.2]]))
WORDS = Shares(np.array([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2], [1 / 3, 1 / 3, 1 / 3]]), np.full(3, 6.0))
KINDS = CategoryProbabilities(
    np.array([[0.4, 0.6, 0.2, 0.3, 0.5], [0.9, 0.1, 0.1, 0.8, 0.1], [0.5, 0.5, 0.3, 0.3, 0.4]])
)

PACES = Paces(np.array([[0.5, 3.0], [4.0, 0.1], [2.0, 2.0]]))
SHAPES = Shapes(np.array([[2.0, 5.0], [1.5, 30.0], [3.0, 2.0]]), np.array([[1.0, 4.0], [6.0, 10.0], [0.5, 2.0]]))
CIRCLE = np.stack([np.cos(np.arange(4000) * np.pi / 2000), np.sin(np.arange(4000) * np.pi / 2000)], axis=1)
WINDS = Directions(np.array([[0.6, 0.8], [-1.0, 0.0], [0.0, -1.0]]), np.array([2.0, 30.0, 0.5]))
CLOUDS = np.array([[[2.0, 0.6], [0.6, 0.5]], [[1.0, -0.3], [-0.3, 1.5]], [[0.3, 0.0], [0.0, 0.3]]])
MEANS = np.array([[1.0, -1.0], [-2.0, 3.0], [4.0, 0.5]])
BOX = grid(np.linspace(-14.0, 14.0, 281), np.linspace(-14.0, 14.0, 281))  # peaks are wide beside the mesh
WIDE = grid(np.linspace(-80.0, 80.0, 641), np.linspace(-80.0, 80.0, 641))

CASES = {
    "poisson": Case(
        Poisson(), RATES, lambda p, j, X: stats.poisson(p.rate[j]).logpmf(X).sum(axis=1), grid(range(40), range(40)),
        lambda p: np.log(p.rate[0]), lambda t: Rates(np.exp(t)[None]), GammaPrior(1.0, 0.0), GammaPrior(3.0, 2.0),
        lambda prior, p: stats.gamma(prior.shape, scale=1 / prior.rate).logpdf(p.rate[0]).sum(),
    ),
    "bernoulli": Case(
        Bernoulli(), CHANCES, lambda p, j, X: stats.bernoulli(p.probability[j]).logpmf(X).sum(axis=1),
        grid(range(2), range(2)), lambda p: logit(p.probability[0]), lambda t: Probabilities(expit(t)[None]),
        BetaPrior(1.0, 1.0), BetaPrior(3.0, 2.0),
        lambda prior, p: stats.beta(prior.a, prior.b).logpdf(p.probability[0]).sum(),
    ),
    "multinomial": Case(
        Multinomial(), WORDS, lambda p, j, X: stats.multinomial.logpmf(X.astype(int), 6, p.probability[j]),
        np.array([x for x in grid(range(7), range(7), range(7)) if x.sum() == 6]),
        lambda p: np.log(p.probability[0, :-1] / p.probability[0, -1]),
        lambda t: Shares(softmax(np.r_[t, 0.0])[None], np.full(1, 6.0)),
        DirichletPrior(1.0), DirichletPrior([3.0, 2, 4]),
        lambda prior, p: stats.dirichlet(prior.concentration).logpdf(p.probability[0]),
    ),
    "categorical": Case(
        Categorical(), KINDS, lambda p, j, X: np.log(p.probability[j, (X[:, 0] == 7.0) + 0])
        + np.log(p.probability[j, 2 + X[:, 1].astype(int)]),
        grid([4, 7], range(3)), lambda p: np.log(p.probability[0, [0, 2, 3]] / p.probability[0, [1, 4, 4]]),
        lambda t: CategoryProbabilities(np.r_[softmax([t[0], 0.0]), softmax([t[1], t[2], 0.0])][None]),
        DirichletPrior(1.0), DirichletPrior(3.0), lambda prior, p: 2.0 * np.log(p.probability[0]).sum(),
    ),
    "exponential": Case(
        Exponential(), PACES, lambda p, j, X: stats.expon(scale=1 / p.rate[j]).logpdf(X).sum(axis=1),
        ([0.0, 0.0], [300.0, 300.0]), lambda p: np.log(p.rate[0]), lambda t: Paces(np.exp(t)[None]),
        GammaPrior(1.0, 0.0), GammaPrior(3.0, 2.0),
        lambda prior, p: stats.gamma(prior.shape, scale=1 / prior.rate).logpdf(p.rate[0]).sum(),
    ),
    "gamma": Case(
        Gamma(), SHAPES, lambda p, j, X: stats.gamma(p.shape[j], scale=1 / p.rate[j]).logpdf(X).sum(axis=1),
        ([1e-12, 1e-12], [60.0, 30.0]), lambda p: np.log(np.r_[p.shape[0], p.rate[0]]),
        lambda t: Shapes(np.exp(t[:2])[None], np.exp(t[2:])[None]),
    ),
    "von_mises_fisher": Case(
        VonMisesFisher(), WINDS,
        lambda p, j, X: stats.vonmises_fisher(p.mean_direction[j], p.concentration[j]).logpdf(X), CIRCLE,
        lambda p: p.concentration[0] * p.mean_direction[0],
        lambda t: Directions(t[None] / np.linalg.norm(t), np.linalg.norm(t)[None]), measure=np.pi / 2000,
    ),
    "gaussian": Case(
        Gaussian(reg_covar=0.0), Normals(MEANS, CLOUDS),
        lambda p, j, X: stats.multivariate_normal(p.mean[j], p.covariance[j]).logpdf(X), BOX,
        lambda p: np.r_[p.mean[0], triangle(p.covariance[0])],
        lambda t: Normals(t[None, :2], covariance(t[2:])[None]),
        None, Prior(mean=[0.5, 0.0], shrinkage=2.0, dof=5.0, scale=[[1.0, 0.2], [0.2, 2.0]]),
        normal_inverse_wishart, 0.01,
    ),
    "gaussian, diag": Case(
        Gaussian("diag", reg_covar=0.0), Normals(MEANS, CLOUDS[:, [0, 1], [0, 1]]),
        lambda p, j, X: stats.norm(p.mean[j], np.sqrt(p.covariance[j])).logpdf(X).sum(axis=1), BOX,
        lambda p: np.r_[p.mean[0], np.log(p.covariance[0])],
        lambda t: Normals(t[None, :2], np.exp(t[None, 2:])),
        None, Prior(mean=[0.5, 0.0], shrinkage=2.0, dof=5.0, scale=[[1.0, 0.0], [0.0, 2.0]]),
        lambda prior, p: normal_inverse_wishart(prior, Normals(p.mean, [np.diag(p.covariance[0])])), 0.01,
    ),
    "gaussian, spherical": Case(
        Gaussian("spherical", reg_covar=0.0), Normals(MEANS, CLOUDS[:, 0, 0]),
        lambda p, j, X: stats.norm(p.mean[j], np.sqrt(p.covariance[j])).logpdf(X).sum(axis=1), BOX,
        lambda p: np.r_[p.mean[0], np.log(p.covariance[0])], lambda t: Normals(t[None, :2], np.exp(t[2:])),
        measure=0.01,
    ),
    "student_t": Case(
        StudentT(), StudentTParameters(MEANS, CLOUDS, np.array([8.0, 30.0, np.inf])),
        lambda p, j, X: stats.multivariate_t(p.location[j], p.scale[j], p.dof[j]).logpdf(X), WIDE,
        lambda p: np.r_[p.location[0], triangle(p.scale[0]), np.log(p.dof[0])],
        lambda t: StudentTParameters(t[None, :2], covariance(t[2:5])[None], np.exp(t[5:])), measure=0.0625,
    ),
    "student_t, diag": Case(
        StudentT(dof=8.0, structure="diag"), StudentTParameters(MEANS, CLOUDS[:, [0, 1], [0, 1]], np.full(3, 8.0)),
        lambda p, j, X: stats.multivariate_t(p.location[j], np.diag(p.scale[j]), p.dof[j]).logpdf(X), WIDE,
        lambda p: np.r_[p.location[0], np.log(p.scale[0])],
        lambda t: StudentTParameters(t[None, :2], np.exp(t[None, 2:]), np.full(1, 8.0)), measure=0.0625,
    ),
}  # fmt: skip


def learned(family: Any, X: np.ndarray, has_missing: bool = False) -> Any:
    """The family for rows like `X`, as an estimator constructs it."""
    return family.learned(family.survey(X), has_missing).in_units_of(X, np.ones(X.shape[0]))
