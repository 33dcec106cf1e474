"""Rows to fit mixtures to, and the formulas to check them against."""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal


def groups(n, d=4, k=3, seed=0, apart=2.0):
    """`n` rows in `k` overlapping groups, each with a covariance of its own; and the group of each."""
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    turns = np.eye(d) + 0.5 * rng.normal(size=(k, d, d))
    rows = np.einsum("nij,nj->ni", turns[labels], rng.normal(size=(n, d)))
    return rows + apart * rng.normal(size=(k, d))[labels], labels


def far_from_settled(n=300, k=2):
    """Overlapping rows, and labels from which EM has some way to go."""
    X, labels = groups(n, d=3, k=k, apart=0.7)
    return X, np.where(np.arange(n) % 4, labels, (labels + 1) % k)


def islands():
    """Three groups of 20 rows that nobody can mistake for others, and the group of each row."""
    labels = np.repeat([0, 1, 2], 20)
    middle = 100 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    return np.random.default_rng(1).normal(size=(60, 2)) + middle, labels


def matrices(covariances, k, d):
    """Covariances of any form as (k, d, d); k is not d, or nobody could tell."""
    covariances = np.asarray(covariances, np.float64)
    if covariances.shape == (k, d):
        return covariances[..., None] * np.eye(d)
    return np.broadcast_to(covariances if covariances.ndim > 1 else covariances[:, None, None] * np.eye(d), (k, d, d))


def theta(model):
    return model.weights_, model.means_, model.covariances_


def log_joint(X, weights, means, covariances):
    """log p(x, z) of every row and component, from what is there of the row."""
    k, d = means.shape
    joint, gaps = np.empty((len(X), k)), np.isnan(X)
    for pattern in np.unique(gaps, axis=0):
        rows, o = (gaps == pattern).all(axis=1), ~pattern
        for j, (p, mean, S) in enumerate(zip(weights, means, matrices(covariances, k, d), strict=True)):
            joint[rows, j] = np.log(p) + multivariate_normal(mean[o], S[np.ix_(o, o)]).logpdf(X[np.ix_(rows, o)])
    return joint


def posterior(X, weights, means, covariances):
    joint = log_joint(X, weights, means, covariances)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def estimate(X, resp):
    """Shares, means and covariances under responsibilities (n, k)."""
    total = resp.sum(axis=0)
    means = resp.T @ X / total[:, None]
    away = X[:, None] - means
    return total / total.sum(), means, np.einsum("nk,nki,nkj->kij", resp, away, away) / total[:, None, None]


def one_hot(labels, k=3):
    return (labels[:, None] == np.arange(k)).astype(float)


def steps_of(model, X, **how):
    """The parameters after every iteration, from the start on; the model is fitted by then."""
    seen = []
    model.set_params(callback=lambda progress: seen.append(progress.params)).fit(X, **how)
    return seen


def climbs(history, rounding=1e-11):
    """Checks that each half step does what EM says of it."""
    E, M = history.step == "E", history.step == "M"
    assert history.step.tolist() == ["E"] + ["M", "E"] * (len(history) // 2)
    bound, prior, likelihood = history.lower_bound, history.log_prior, history.log_likelihood
    off = rounding * np.abs(likelihood).max()
    np.testing.assert_allclose(history.kl[E], 0, atol=off)
    assert (history.kl >= -off).all()
    assert ((bound + prior)[M] - (bound + prior)[E][:-1] >= -off).all()  # each M-step raises J
    assert (bound[E][1:] - bound[M] >= -off).all()  # each E-step closes the gap
    np.testing.assert_array_equal(likelihood[M], likelihood[E][1:])  # it is that of the parameters, not of q
    assert (np.diff((likelihood + prior)[E]) >= -off).all()
