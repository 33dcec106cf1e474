"""What a fit of a Gaussian mixture promises: the way of EM, the structures, and K-means as its limit."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from coterie import GaussianMixture, KMeans
from coterie.families.structures import STRUCTURES
from mixture.rows import climbs, groups, log_joint, matrices, posterior, steps_of

ALL = pytest.mark.parametrize("name", list(STRUCTURES))
FORMS = pytest.mark.parametrize("name", ["VVV", "EEE", "VVI", "VII"])
# Little work is done by NumPy, more by compiled kernels.
SIZES = pytest.mark.parametrize("n", [150, 6000], ids=["small", "large"])
TIGHT = {"tol": 1e-10, "max_iter": 5000}


# the way of EM


@ALL
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", [None, "default"])
def test_every_half_step_climbs(name, weighted, prior):
    X, _ = groups(150)
    weight = np.random.default_rng(2).uniform(0, 3, 150) if weighted else None
    model = GaussianMixture(3, covariance_type=name, init_params="random", prior=prior, random_state=4)
    climbs(model.fit(X, sample_weight=weight).history_)
    assert model.converged_
    assert len(model.history_) == 2 * model.n_iter_ + 1


@FORMS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_half_step_climbs_in_compiled_kernels(name, dtype):
    X, _ = groups(6000)
    model = GaussianMixture(3, covariance_type=name, init_params="random", random_state=4).fit(X.astype(dtype))
    climbs(model.history_, rounding=1e-11 if dtype == np.float64 else 1e-6)


@SIZES
@FORMS
def test_without_a_floor_the_likelihood_itself_never_falls(n, name):
    X, _ = groups(n)
    history = (
        GaussianMixture(3, covariance_type=name, init_params="random", reg_covar=0, random_state=4).fit(X).history_
    )
    np.testing.assert_allclose(history.log_prior, 0, atol=1e-9)
    assert (np.diff(history.log_likelihood) >= -1e-11 * np.abs(history.log_likelihood).max()).all()


@SIZES
@FORMS
def test_the_bound_after_an_m_step_is_that_of_the_old_posterior_and_the_new_parameters(n, name):
    X, labels = groups(n)
    weight = np.random.default_rng(2).uniform(0, 3, n)
    model = GaussianMixture(3, covariance_type=name, init_params=labels)
    steps = steps_of(model, X, sample_weight=weight)
    assert len(steps) > 2
    for i, (before, after) in enumerate(pairwise(steps[:8])):
        r = posterior(X, *before[:3])
        joint = log_joint(X, *after[:3])
        bound = weight @ (r * (joint - np.log(np.maximum(r, 1e-300)))).sum(axis=1)
        assert model.history_.lower_bound[2 * i + 1] == pytest.approx(bound, rel=1e-10)
        assert model.history_.log_likelihood[2 * i + 1] == pytest.approx(weight @ logsumexp(joint, axis=1), rel=1e-10)
    assert model.history_.iteration.tolist() == [0, *np.repeat(np.arange(1, len(steps)), 2)]


@SIZES
def test_the_gap_of_a_hard_e_step_is_what_choosing_costs(n):
    X, labels = groups(n)
    model = GaussianMixture(3, e_step="hard", init_params=labels, tol=0.0)
    steps = steps_of(model, X)
    E = model.history_.step == "E"
    for c, likelihood, bound, gap in zip(
        steps, model.history_.log_likelihood[E], model.history_.lower_bound[E], model.history_.kl[E], strict=True
    ):
        joint = log_joint(X, *c[:3])
        assert bound == pytest.approx(joint.max(axis=1).sum(), rel=1e-10)
        assert likelihood == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-10)
        assert gap == pytest.approx((logsumexp(joint, axis=1) - joint.max(axis=1)).sum(), rel=1e-6)
    objective = (model.history_.lower_bound + model.history_.log_prior)[E]
    assert (np.diff(objective) >= -1e-11 * np.abs(objective).max()).all()
    np.testing.assert_allclose(model.weights_, np.bincount(model.labels_) / n, rtol=1e-12)


def test_a_stochastic_e_step_runs_for_as_many_iterations_as_asked():
    X, _ = groups(300, apart=0.7)  # rows between the groups: two draws are hardly ever the same
    first, again, other = (
        GaussianMixture(3, e_step="stochastic", max_iter=25, random_state=seed).fit(X) for seed in (0, 0, 1)
    )
    assert first.n_iter_ == 25
    assert len(first.history_) == 51
    assert (first.history_.kl >= 0).all()
    np.testing.assert_array_equal(first.means_, again.means_)
    assert not np.array_equal(first.means_, other.means_)
    assert len(np.unique(first.history_.lower_bound[::2])) == 26  # every iteration draws anew


# structures


@ALL
def test_the_letters_hold_of_the_fit(name):
    X, labels = groups(300)
    model = GaussianMixture(3, covariance_type=name, init_params=labels).fit(X)
    found = matrices(model.covariances_, 3, 4)
    values = np.linalg.eigvalsh(found)
    volumes = np.linalg.det(found) ** (1 / 4)
    shapes = values / volumes[:, None]
    commute = np.abs(found[0] @ found[1] - found[1] @ found[0]).max() / np.abs(found[0] @ found[1]).max() < 1e-6
    volume, shape, turn = name
    assert np.allclose(volumes, volumes[0], rtol=1e-8) == (volume == "E")
    if shape == "I":
        np.testing.assert_allclose(shapes, 1, rtol=1e-12)
    else:  # common axes: the shapes are compared in their order there
        along = np.diagonal(found, axis1=1, axis2=2) if turn == "I" else values
        along = along / volumes[:, None]
        assert np.allclose(along, along[0], rtol=1e-5) == (shape == "E")
    if turn == "I":
        np.testing.assert_array_equal(found * (1 - np.eye(4)), 0)
    else:
        assert commute == (turn == "E")
    np.testing.assert_allclose(matrices(model.precisions_, 3, 4) @ found, np.stack([np.eye(4)] * 3), atol=1e-9)


@ALL
def test_another_unit_scales_the_fit(name):
    X, labels = groups(200)
    one, other = (
        GaussianMixture(3, covariance_type=name, init_params=labels, reg_covar=0, tol=1e-5).fit(X * s)
        for s in (1.0, 1000.0)
    )
    assert other.n_iter_ == one.n_iter_ > 2
    np.testing.assert_allclose(other.weights_, one.weights_, rtol=1e-6)
    np.testing.assert_allclose(other.means_, one.means_ * 1e3, rtol=1e-6)
    np.testing.assert_allclose(other.covariances_, one.covariances_ * 1e6, rtol=1e-5, atol=1e-3)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_ - 200 * 4 * np.log(1e3), rel=1e-9)


@pytest.mark.parametrize("name", [name for name in STRUCTURES if name[1:] in ("II", "EE", "VE", "EV", "VV")])
def test_turned_rows_turn_the_fit(name):
    X, labels = groups(200)
    turn = np.linalg.qr(np.random.default_rng(9).normal(size=(4, 4)))[0]
    one, other = (
        GaussianMixture(3, covariance_type=name, init_params=labels, reg_covar=0, **TIGHT).fit(rows)
        for rows in (X, X @ turn.T)
    )
    assert one.n_iter_ > 2
    np.testing.assert_allclose(other.means_, one.means_ @ turn.T, atol=1e-4)
    np.testing.assert_allclose(
        matrices(other.covariances_, 3, 4), turn @ matrices(one.covariances_, 3, 4) @ turn.T, atol=1e-4
    )
    np.testing.assert_array_equal(other.labels_, one.labels_)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-9)


# K-means as the limit


@SIZES
@pytest.mark.parametrize("seed", range(3))
def test_one_round_shape_equal_weights_and_a_hard_e_step_are_k_means(n, seed):
    X, _ = groups(n, k=4, seed=seed, apart=0.5)
    start = X[:4]
    means = KMeans(4, init=start, tol=0, max_iter=1000).fit(X)
    mixture = GaussianMixture(
        4, covariance_type="EII", e_step="hard", means_init=start, precisions_init=np.ones(4), fixed="weights", tol=0
    ).fit(X)
    assert means.n_iter_ > 2
    np.testing.assert_array_equal(mixture.labels_, means.labels_)
    np.testing.assert_allclose(mixture.means_, means.cluster_centers_, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(mixture.weights_, 0.25)


def test_soft_em_comes_to_k_means_as_the_variance_is_held_ever_smaller():
    X, _ = groups(300, k=4, apart=3.0)
    means = KMeans(4, init=X[:4], tol=0, max_iter=1000).fit(X)
    off = []
    for variance in (1.0, 0.3, 0.1, 0.03):
        mixture = GaussianMixture(
            4,
            covariance_type="EII",
            means_init=means.cluster_centers_,
            precisions_init=np.full(4, 1 / variance),
            fixed=["weights", "covariances"],
            **TIGHT,
        ).fit(X)
        off.append(np.abs(mixture.means_ - means.cluster_centers_).max())
    assert off[0] > 0.01  # otherwise there is nothing to approach
    assert (np.diff(off) < 0).all()
    assert off[-1] < 1e-6


def test_the_textbooks_mixture_of_unit_variances_takes_the_textbooks_steps():
    rng = np.random.default_rng(5)
    x = np.r_[rng.normal(-1, size=40), rng.normal(2, size=60)]
    low, high = -0.1, 0.1
    for _ in range(7):
        r = 1 / (1 + np.exp(-(high - low) * (x - (low + high) / 2)))
        low, high = ((1 - r) * x).sum() / (1 - r).sum(), (r * x).sum() / r.sum()
    model = GaussianMixture(
        2,
        covariance_type="E",
        means_init=[[-0.1], [0.1]],
        precisions_init=[1.0, 1.0],
        fixed=("weights", "covariances"),
        max_iter=7,
        tol=0,
    )
    with pytest.warns(ConvergenceWarning, match="max_iter=7"):
        model.fit(x[:, None])
    np.testing.assert_allclose(model.means_[:, 0], [low, high], rtol=1e-12)
    np.testing.assert_array_equal(model.covariances_, 1.0)
    np.testing.assert_array_equal(model.weights_, 0.5)
    assert model.n_parameters_ == 2


@pytest.mark.parametrize("structure", ["EEV", "VEV", "EVE", "VVE"])
def test_columns_of_very_different_units_are_a_warning_where_eigenvalues_are_compared(structure):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 9]) * [1e-4, 1e4]
    model = GaussianMixture(2, covariance_type=structure, init_params="kmeans", random_state=0)
    with pytest.warns(UserWarning, match="differ by a factor of 1e.08"):
        model.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(covariance_type="VVV").fit(X)
        model.set_params(covariance_type=structure).fit(X * [1e4, 1e-4])
        model.fit(np.column_stack([X * [1e4, 1e-4], np.ones(80)]))
