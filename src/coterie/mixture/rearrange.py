"""Changes of a local optimum of EM that may lead to a better one: new starts made from the best runs so far."""

from __future__ import annotations

from itertools import product

import numpy as np

from coterie.families import forms
from coterie.mixture.gaussian_em import Components
from coterie.mixture.trials import Trials

PROMISING = 12  # pairs of components to merge, and components to split


def required_rows(structure: str, d: int) -> float:
    """Rows on which a component must rest: more than this number, by what it does not share with the others."""
    if "V" in (structure[1:] if d > 1 else structure):
        return d + 1.0
    return 2.5 if structure[0] == "V" else 1.5


def split_and_merge(trials: Trials, c: Components, runs: int, skip: int) -> np.ndarray:
    """Posteriors (runs, n, k) in which two components are merged, and another is split across its longest axis [1]_.

    Two components that share rows are likely to be one. A component is likely to be two if its rows lie away from its
    mean: the mean distance along the axis, squared, is 2 / pi of the variance for a Gaussian, and all of it for two
    points. The `skip` most promising moves are left out.

    .. [1] Ueda, Nakano, Ghahramani & Hinton (2000), SMEM algorithm for mixture models, Neural Computation 12.
    """
    (before,), k = trials.posterior(c), c.means.shape[-2]
    mass = before * trials.w[:, None]
    axes = np.stack([_longest_axis(trials.X - mean, m) for mean, m in zip(c.means[0], mass.T, strict=True)])
    along = trials.X @ axes.T - (c.means[0] * axes).sum(axis=-1)
    tiny = np.finfo(np.float64).tiny  # for components whose rows all lie at their mean, or that have none
    hollow = (mass * np.abs(along)).sum(axis=0) ** 2 / ((mass * along**2).sum(axis=0) * mass.sum(axis=0) + tiny)
    length = np.sqrt((mass**2).sum(axis=0) + tiny)
    first, second = np.triu_indices(k, 1)
    pairs = np.argsort(-(mass.T @ mass / np.outer(length, length))[first, second], kind="stable")
    splits = np.argsort(-hollow, kind="stable")
    ranks = sorted(product(range(min(len(pairs), PROMISING)), range(min(k, PROMISING))), key=sum)
    moves = [(first[pairs[a]], second[pairs[a]], splits[b]) for a, b in ranks]
    moves = [move for move in moves if k == 2 or move[2] not in move[:2]][skip : skip + runs]
    moved = np.repeat(before[None], len(moves), axis=0)
    for resp, (lost, kept, parted) in zip(moved, moves, strict=True):
        resp[:, kept] += resp[:, lost]
        if k == 2:
            parted = kept
        resp[:, lost] = resp[:, parted] * (along[:, parted] > 0)
        resp[:, parted] -= resp[:, lost]
    return moved


def _longest_axis(dx: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return np.linalg.eigh((mass[:, None] * dx).T @ dx)[1][:, -1]


def relocate(trials: Trials, parents: Components, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Posteriors (runs, n, k) after a random component of a random parent has moved to a row and its neighbours.

    Half of the rows are uniform, the others are sampled in proportion to the square of the log density that they lose
    under the parent, compared with the densest row: so two outliers are found among many rows. Neighbours are near in
    the metric of the parent's mean covariance. Their number is random, from just enough for a covariance of the
    structure to an equal share of all rows: so small clusters are found as well as large ones.
    """
    n, k = len(trials.X), parents.means.shape[-2]
    parent, lost = rng.integers(len(parents.weights), size=runs), rng.integers(k, size=runs)
    resp, log_density = trials.posterior_and_log_density(parents)
    loss = trials.w * (log_density.max(axis=1, keepdims=True) - log_density) ** 2
    loss = np.where(loss.sum(axis=1, keepdims=True) > 0, loss, trials.w)[parent]
    loss[::2] = trials.w
    cumulated = loss.cumsum(axis=1)
    rows = np.minimum((cumulated <= rng.random((runs, 1)) * cumulated[:, -1:]).sum(axis=1), n - 1)
    most = max(n // k, 2)
    least = min(int(required_rows(trials.model.structure.name, trials.X.shape[1])) + 1, most)
    size = np.exp(rng.uniform(np.log(least), np.log(most), runs)).astype(int)
    moved = resp[parent]
    metrics = _mean_metrics(trials, parents)
    for resp, p, j, row, m in zip(moved, parent, lost, rows, size, strict=True):
        near = (((trials.X - trials.X[row]) @ metrics[p]) ** 2).sum(axis=1)
        resp[:, j] = 0.0
        total = resp.sum(axis=1, keepdims=True)
        resp /= np.where(total > 0, total, 1.0)
        resp[total[:, 0] == 0] = (np.arange(k) != j) / (k - 1)  # rows of the component that moved away alone
        resp[np.argpartition(near, m - 1)[:m]] = np.arange(k) == j
    return moved


def _mean_metrics(trials: Trials, c: Components) -> np.ndarray:
    """Matrices (runs, d, d) after which distances are those of the mean covariance of the components."""
    d = trials.X.shape[1]
    dense = forms.dense(trials.model.form, c.covariances, *c.means.shape[-2:])
    mean = np.einsum("rk,rkij->rij", c.weights, dense)
    size = np.trace(mean, axis1=1, axis2=2)[:, None, None] / d
    return np.swapaxes(np.linalg.inv(np.linalg.cholesky(mean + 1e-9 * size * np.eye(d))), -1, -2)


def cross(trials: Trials, parents: Components, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Posteriors (runs, n, k) of mixtures of k random components of two parents.

    What one run has right in one place, and another run in another, a third can have right in both.
    """
    count, k = parents.weights.shape
    a = rng.integers(count, size=runs)
    b = (a + rng.integers(1, count, size=runs)) % count
    pick = rng.permuted(np.tile(np.arange(2 * k), (runs, 1)), axis=1)[:, :k]
    which, component = np.where(pick < k, a[:, None], b[:, None]), pick % k
    covariances = parents.covariances[a] if trials.model.form == "tied" else parents.covariances[which, component]
    return _posterior(trials, parents.weights[which, component], parents.means[which, component], covariances)


def _posterior(trials: Trials, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    total = weights.sum(axis=-1, keepdims=True)
    weights = np.where(total > 0, weights, 1.0)  # all of them can be of components that have lost their rows
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return trials.posterior(trials.model.components(weights, means, covariances))
