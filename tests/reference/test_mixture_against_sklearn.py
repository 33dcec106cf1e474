"""From the same start, the same EM as scikit-learn's Gaussian mixture; left alone, at least its likelihood."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Reference

from coterie import GaussianMixture
from reference.shared_data import load

TYPES = ("full", "tied", "diag", "spherical")
# Small and large work (NumPy and compiled kernels), one column, and many.
SHAPES = [(200, 1, 3), (300, 2, 4), (4000, 8, 5), (3000, 20, 3)]


def table(n, d, k):
    rng = np.random.default_rng([n, d, k])
    mix = rng.normal(size=(k, d, d)) * 0.3 / np.sqrt(d) + np.eye(d)
    labels = rng.integers(k, size=n)
    return (
        2.0 / np.sqrt(d) * rng.normal(size=(k, d))[labels]
        + np.einsum("nij,nj->ni", mix[labels], rng.normal(size=(n, d)))
        + 3.0
    )


def given_start(X, k, kind):
    """Weights, means and precisions that are far from any optimum."""
    rng = np.random.default_rng(k)
    d = X.shape[1]
    scale = np.linalg.inv(np.cov(X.T).reshape(d, d))
    precisions = {
        "full": np.stack([scale * factor for factor in rng.uniform(1, 3, k)]),
        "tied": scale * 2,
        "diag": rng.uniform(1, 3, (k, d)) / X.var(axis=0),
        "spherical": rng.uniform(1, 3, k) / X.var(),
    }
    return {
        "weights_init": rng.dirichlet(np.full(k, 5.0)),
        "means_init": X[rng.choice(len(X), k, replace=False)],
        "precisions_init": precisions[kind],
    }


def both(X, k, kind, steps):
    """The two fits after that many M-steps."""
    options = {"covariance_type": kind, "reg_covar": 0, "tol": 0, "max_iter": steps, **given_start(X, k, kind)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # that neither has converged is what was asked for
        return GaussianMixture(k, **options).fit(X), Reference(k, **options).fit(X)


def assert_same_parameters(ours, theirs):
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max(), err_msg=name)


@pytest.mark.parametrize("steps", [1, 2, 25])
@pytest.mark.parametrize("n, d, k", SHAPES)
@pytest.mark.parametrize("kind", TYPES)
def test_the_same_start_gives_the_same_mixture_after_as_many_steps(kind, n, d, k, steps):
    ours, theirs = both(table(n, d, k), k, kind, steps)
    assert ours.n_iter_ == theirs.n_iter_ == steps
    assert_same_parameters(ours, theirs)


@pytest.mark.parametrize("n, d, k", SHAPES)
@pytest.mark.parametrize("kind", TYPES)
def test_the_same_parameters_give_the_same_answers(kind, n, d, k):
    X = table(n, d, k)
    ours, theirs = both(X, k, kind, 10)
    new = np.concatenate([X[:500], 2 * np.random.default_rng(0).normal(size=(500, d))])
    np.testing.assert_allclose(ours.score_samples(new), theirs.score_samples(new), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-8)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    for criterion in ("bic", "aic", "score"):
        assert getattr(ours, criterion)(X) == pytest.approx(getattr(theirs, criterion)(X), rel=1e-8)
    assert ours.n_parameters_ == theirs._n_parameters()


@pytest.mark.parametrize("kind", TYPES)
def test_the_lower_bound_is_that_of_the_parameters_returned(kind):
    """scikit-learn's belongs to the parameters one step before."""
    X = table(300, 2, 4)
    (ours, _), (_, theirs) = both(X, 4, kind, 10), both(X, 4, kind, 11)
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, rel=1e-8)
    assert ours.lower_bound_ == pytest.approx(ours.score(X), rel=1e-12)


@pytest.mark.parametrize("kind", TYPES)
def test_weights_means_or_precisions_alone_may_be_given(kind, short_searches):
    """The means decide which rows start where; what is not given follows from those rows."""
    X = table(300, 2, 4)
    start = given_start(X, 4, kind)
    for name, value in start.items():
        ours = GaussianMixture(4, covariance_type=kind, random_state=0, **{name: value}).fit(X)
        assert ours.converged_
        assert ours.score(X) > Reference(1, covariance_type=kind).fit(X).score(X)


TABLES = {
    **{("sipu/s1", kind): 15 for kind in TYPES},
    **{("g2mg/g2mg_16_30", kind): 2 for kind in TYPES},
    **{("uci/wine", kind): 3 for kind in TYPES},
    **{("uci/wdbc", kind): 2 for kind in ("tied", "diag", "spherical")},
    **{("mssc/seeds", kind): 3 for kind in TYPES},
}
# the quick suite has every table, and every type twice
QUICK = {("sipu/s1", "diag"), ("g2mg/g2mg_16_30", "tied"), ("uci/wdbc", "spherical")}
QUICK |= {("uci/wine", kind) for kind in TYPES} | {("mssc/seeds", "full")}


@pytest.mark.parametrize(
    "name, k, kind",
    [
        pytest.param(*(name, k, kind), marks=() if (name, kind) in QUICK else pytest.mark.slow)
        for (name, kind), k in TABLES.items()
    ],
)
def test_a_fit_left_to_itself_is_at_least_as_likely(name, k, kind):
    X = load(name)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = GaussianMixture(k, covariance_type=kind, random_state=0, tol=1e-5).fit(X)
    theirs = Reference(k, covariance_type=kind, random_state=0, tol=1e-5, max_iter=1000, n_init=3).fit(X)
    assert ours.converged_
    assert ours.score(X) * len(X) >= theirs.score(X) * len(X) - 0.1
