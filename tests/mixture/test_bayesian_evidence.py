"""The bound of variational Gaussian mixtures: against scikit-learn, and against the evidence by brute force."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp
from sklearn.mixture import BayesianGaussianMixture as Sklearn

from coterie import BayesianGaussianMixture
from coterie.mixture.variational import Dirichlet, NormalWishart, StickBreaking
from mixture.bayesian import FORMS, MIXING, fit_quietly, start
from mixture.rows import groups, islands

PRIORS = {
    "full": np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]]),
    "tied": np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]]),
    "diag": np.array([2.0, 1.0, 0.5]),
    "spherical": 0.7,
}


class FromResponsibilities(Sklearn):
    """scikit-learn's, from a start that is given."""

    def _initialize_parameters(self, X, random_state, xp=None):
        self._initialize(X, self.start)


def both(X, k, iterations, **options):
    resp = start(len(X), k)
    options = {"tol": 0.0, "reg_covar": 0.0, "max_iter": iterations} | options
    theirs = FromResponsibilities(n_components=k, **options)
    theirs.start = resp
    return fit_quietly(BayesianGaussianMixture(k, init_params=resp, **options), X), fit_quietly(theirs, X)


def assert_same_beliefs(ours, theirs, rtol):
    for name in (
        "weights_",
        "means_",
        "covariances_",
        "precisions_",
        "precisions_cholesky_",
        "weight_concentration_",
        "mean_precision_",
        "degrees_of_freedom_",
        "weight_concentration_prior_",
        "mean_precision_prior_",
        "mean_prior_",
        "degrees_of_freedom_prior_",
        "covariance_prior_",
    ):
        a, b = np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(), err_msg=name)


# scikit-learn's


@pytest.mark.parametrize("mixing", MIXING)
@pytest.mark.parametrize("form", FORMS)
def test_every_iteration_is_that_of_scikit_learn(form, mixing):
    X, _ = groups(400, d=3, k=4)
    for iterations in (1, 2, 12):
        ours, theirs = both(X, 5, iterations, covariance_type=form, weight_concentration_prior_type=mixing)
        assert_same_beliefs(ours, theirs, 1e-6)
        assert ours.n_iter_ == iterations
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("mixing", MIXING)
@pytest.mark.parametrize("form", FORMS)
def test_priors_mean_what_they_mean_to_scikit_learn(form, mixing):
    X, _ = groups(150, d=3, k=2)
    prior = {
        "weight_concentration_prior": 3.0,
        "mean_precision_prior": 0.2,
        "mean_prior": np.array([1.0, -1.0, 0.0]),
        "degrees_of_freedom_prior": 7.5,
        "covariance_prior": PRIORS[form],
    }
    ours, theirs = both(X, 3, 5, covariance_type=form, weight_concentration_prior_type=mixing, **prior)
    assert_same_beliefs(ours, theirs, 1e-8)


def what_scikit_learn_leaves_out(model, n):
    """Terms of the bound that the prior and the number of rows fix."""
    k, d = model.means_.shape
    beta, dof, a = model.mean_precision_prior_, model.degrees_of_freedom_prior_, model.weight_concentration_prior_
    scale = np.broadcast_to(model.covariance_prior_, d) if np.ndim(model.covariance_prior_) < 2 else None
    log_det = np.linalg.slogdet(model.covariance_prior_)[1] if scale is None else np.log(scale).sum()
    wishart = 0.5 * dof * (log_det - d * np.log(2)) - gammaln(0.5 * (dof - np.arange(d))).sum()
    process = model.weight_concentration_prior_type == "dirichlet_process"
    weights = k * np.log(a) if process else gammaln(k * a) - k * gammaln(a)
    return k * (wishart + 0.5 * d * np.log(beta)) + weights - 0.5 * n * d * np.log(2 * np.pi)


@pytest.mark.parametrize("mixing", MIXING)
@pytest.mark.parametrize("form", FORMS)
def test_the_bound_is_scikit_learns_and_what_that_leaves_out(form, mixing):
    X, labels = islands()
    options = {"covariance_type": form, "weight_concentration_prior_type": mixing, "max_iter": 4, "reg_covar": 0.0}
    theirs = FromResponsibilities(n_components=3, tol=0.0, **options)
    theirs.start = (labels[:, None] == np.arange(3)).astype(float)
    ours = fit_quietly(BayesianGaussianMixture(3, init_params=labels, **options), X)
    missing = ours.lower_bound_ - fit_quietly(theirs, X).lower_bound_
    assert missing == pytest.approx(what_scikit_learn_leaves_out(ours, 60), rel=1e-9)


def test_the_usual_reg_covar_makes_next_to_no_difference():
    X, _ = groups(400, d=3, k=4)
    ours, theirs = both(X, 4, 10, reg_covar=1e-6)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-3)


# the evidence


def test_the_bound_of_a_single_component_is_the_evidence():
    """With one component and one form there is nothing to approximate: log p(X) in closed form, by the chain rule."""
    X = np.random.default_rng(0).normal(size=(12, 2)) * [1.0, 3.0] + [5.0, 0.0]
    scale, mean, beta, dof = np.array([[2.0, 0.4], [0.4, 1.0]]), np.array([4.0, 1.0]), 0.5, 3.5
    model = BayesianGaussianMixture(
        1,
        weight_concentration_prior_type="dirichlet_distribution",
        mean_prior=mean,
        mean_precision_prior=beta,
        degrees_of_freedom_prior=dof,
        covariance_prior=scale,
        reg_covar=0,
    ).fit(X)
    evidence = 0.0
    for x in X:  # what rows seen so far say of the next: Student's t
        shape = scale * (beta + 1) / (beta * (dof - 1))
        evidence += stats.multivariate_t(mean, shape, dof - 1).logpdf(x)
        away = x - mean
        scale = scale + beta / (beta + 1) * np.outer(away, away)
        mean, beta, dof = mean + away / (beta + 1), beta + 1, dof + 1
    assert model.lower_bound_ == pytest.approx(evidence, rel=1e-10)


@pytest.mark.parametrize("form", ["tied", "diag", "spherical"])
def test_the_bound_of_a_restricted_form_is_below_the_evidence(form):
    X = np.random.default_rng(0).normal(size=(30, 2)) @ [[1.0, 0.8], [0.0, 0.5]]
    how = {"weight_concentration_prior_type": "dirichlet_distribution", "reg_covar": 0}
    exact = BayesianGaussianMixture(1, covariance_prior=np.eye(2), **how).fit(X)
    prior = {"tied": np.eye(2), "diag": np.ones(2), "spherical": 1.0}[form]
    bound = BayesianGaussianMixture(1, covariance_type=form, covariance_prior=prior, **how).fit(X).lower_bound_
    if form == "tied":  # of one component: no restriction
        assert bound == pytest.approx(exact.lower_bound_, rel=1e-12)
    else:
        assert bound < exact.lower_bound_ - 1


def test_the_bound_is_below_the_evidence_of_a_mixture_and_not_far():
    """Six rows in two components: the evidence is a sum over all 2^6 ways to divide them."""
    X = np.array([[-2.0], [-1.5], [-2.2], [1.8], [2.4], [2.0]])
    prior = NormalWishart("full", np.zeros(1), 0.3, 2.0, np.eye(1))
    mixing = Dirichlet(1.5)

    def part(rows):
        return _evidence_of_one(prior, rows)

    total = []
    for code in range(64):
        z = (code >> np.arange(6)) & 1
        n = np.array([6 - z.sum(), z.sum()], float)
        a = mixing.posterior(n)
        weights = log_beta(a) - log_beta(np.full(2, 1.5))
        total.append(weights + part(X[z == 0]) + part(X[z == 1]))
    evidence = logsumexp(total)
    model = BayesianGaussianMixture(
        2,
        init_params=np.repeat([0, 1], 3),
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1.5,
        mean_prior=[0.0],
        mean_precision_prior=0.3,
        degrees_of_freedom_prior=2.0,
        covariance_prior=[[1.0]],
        reg_covar=0,
        tol=1e-9,
    ).fit(X)
    assert evidence - 2 < model.lower_bound_ < evidence  # log 2 is lost to the other numbering alone


def log_beta(a):
    return gammaln(a).sum() - gammaln(a.sum())


def _evidence_of_one(prior, rows):
    mean, beta, dof, scale = prior.mean[0], prior.mean_precision, prior.dof, prior.scale[0, 0]
    evidence = 0.0
    for x in rows[:, 0]:
        evidence += stats.t(dof, mean, np.sqrt(scale * (beta + 1) / (beta * dof))).logpdf(x)
        scale += beta / (beta + 1) * (x - mean) ** 2
        mean, beta, dof = mean + (x - mean) / (beta + 1), beta + 1, dof + 1
    return evidence


@pytest.mark.parametrize("mixing", [Dirichlet(0.4), Dirichlet(2.5), StickBreaking(0.4), StickBreaking(2.5)])
def test_the_divergence_of_the_weights_is_what_makes_their_part_the_evidence(mixing):
    n = np.array([5.0, 0.0, 2.5])
    after = mixing.posterior(n)
    part = n @ mixing.expected_log(after) - mixing.divergence(after)
    if isinstance(mixing, StickBreaking):
        assert part == pytest.approx(mixing.log_evidence(n), rel=1e-12)
        sticks = stats.beta(1, mixing.concentration).rvs((400_000, 3), random_state=0)
        weights = sticks * np.cumprod(np.c_[np.ones(len(sticks)), 1 - sticks[:, :-1]], axis=1)
    else:
        weights = stats.dirichlet(np.full(3, mixing.concentration)).rvs(400_000, random_state=0)
    assert part == pytest.approx(np.log(np.mean(np.prod(weights**n, axis=1))), abs=0.05)


def test_the_divergence_of_precisions_is_that_of_gamma_distributions_in_one_column():
    prior = NormalWishart("full", np.zeros(1), 1.0, 3.0, np.array([[2.0]]))
    x = np.array([1.0, 2.0, 4.0])
    after = prior.posterior(np.zeros((1, 1)), np.array([3.0]), np.array([[7.0]]), np.array([[[21.0]]]))
    rate = after.dof[0] * after.covariances[0, 0, 0] / 2
    before, now = stats.gamma(1.5, scale=1.0), stats.gamma(after.dof[0] / 2, scale=1 / rate)
    precisions = integrate.quad(lambda t: now.pdf(t) * (now.logpdf(t) - before.logpdf(t)), 0, 30)[0]
    m, beta = after.means[0, 0], after.mean_precision[0]
    means = 0.5 * (np.log(beta) + 1 / beta - 1 + m**2 * now.mean())
    factor = after.covariances**-0.5
    assert (m, beta) == (pytest.approx(x.sum() / 4), 4.0)
    assert prior.divergence(after, factor, 2 * np.log(factor[:, 0, 0])) == pytest.approx(precisions + means, rel=1e-6)
