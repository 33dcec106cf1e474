"""Variational Gaussian mixtures: against scikit-learn, against brute force, and by what Bayes says must hold."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture as Sklearn
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import BayesianGaussianMixture
from coterie.core.errors import InputError, ParameterError
from coterie.mixture.beliefs import Dirichlet, NormalWishart, Sticks
from mixture.rows import groups, islands

FORMS = ("full", "tied", "diag", "spherical")
MIXING = ("dirichlet_process", "dirichlet_distribution")
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


def start(n, k, seed=0):
    resp = np.random.default_rng(seed).random((n, k)) ** 3
    return resp / resp.sum(axis=1, keepdims=True)


def fit_quietly(model, X, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **how)


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
        a = mixing.after(n)
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


@pytest.mark.parametrize("mixing", [Dirichlet(0.4), Dirichlet(2.5), Sticks(0.4), Sticks(2.5)])
def test_the_divergence_of_the_weights_is_what_makes_their_part_the_evidence(mixing):
    n = np.array([5.0, 0.0, 2.5])
    after = mixing.after(n)
    part = n @ mixing.expected_log(after) - mixing.divergence(after)
    if isinstance(mixing, Sticks):
        assert part == pytest.approx(mixing.log_evidence(n), rel=1e-12)
        sticks = stats.beta(1, mixing.concentration).rvs((400_000, 3), random_state=0)
        weights = sticks * np.cumprod(np.c_[np.ones(len(sticks)), 1 - sticks[:, :-1]], axis=1)
    else:
        weights = stats.dirichlet(np.full(3, mixing.concentration)).rvs(400_000, random_state=0)
    assert part == pytest.approx(np.log(np.mean(np.prod(weights**n, axis=1))), abs=0.05)


def test_the_divergence_of_precisions_is_that_of_gamma_distributions_in_one_column():
    prior = NormalWishart("full", np.zeros(1), 1.0, 3.0, np.array([[2.0]]))
    x = np.array([1.0, 2.0, 4.0])
    after = prior.after(np.zeros((1, 1)), np.array([3.0]), np.array([[7.0]]), np.array([[[21.0]]]))
    rate = after.dof[0] * after.covariances[0, 0, 0] / 2
    before, now = stats.gamma(1.5, scale=1.0), stats.gamma(after.dof[0] / 2, scale=1 / rate)
    precisions = integrate.quad(lambda t: now.pdf(t) * (now.logpdf(t) - before.logpdf(t)), 0, 30)[0]
    m, beta = after.means[0, 0], after.mean_precision[0]
    means = 0.5 * (np.log(beta) + 1 / beta - 1 + m**2 * now.mean())
    factor = after.covariances**-0.5
    assert (m, beta) == (pytest.approx(x.sum() / 4), 4.0)
    assert prior.divergence(after, factor, 2 * np.log(factor[:, 0, 0])) == pytest.approx(precisions + means, rel=1e-6)


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


def test_any_number_of_threads_gives_the_same_bits():
    X, _ = groups(40_000, d=5, k=3)
    model = BayesianGaussianMixture(4, random_state=0, max_iter=8)
    alone = fit_quietly(clone(model).set_params(engine="serial"), X)
    for n_jobs in (1, 2, 5):
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


# what is refused, what is survived


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


def test_more_components_than_rows_are_refused():
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


ESTIMATORS = [
    BayesianGaussianMixture(),
    BayesianGaussianMixture(3, covariance_type="diag", random_state=0),
    BayesianGaussianMixture(3, weight_concentration_prior_type="dirichlet_distribution", random_state=0),
]


def what_cannot_be(estimator):
    if estimator.n_components == 1:
        return {}
    reason = "starts are drawn at random: repeated rows give other draws than weighted ones"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=what_cannot_be)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
