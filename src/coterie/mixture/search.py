"""The best of many short EM runs, made better by moving components about: a start that is rarely a poor optimum."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from coterie.families import forms
from coterie.mixture.gaussian import Components, GaussianEM
from coterie.mixture.trials import Trials, chosen, together

RUNS = 60  # short runs, half from k-means++, half from rows drawn at random
SHORT = 10  # steps of a short run
FINALISTS = 16  # short runs that are taken on until one leads for good
ROUND = 20  # steps between two looks at who leads
SPARE = 4  # runs kept beside the leader until it has settled
PROMISING = 12  # pairs that may become one, and components that may become two
HOPE = 50  # times its last gain that a run may lie behind
STEPS = 10_000  # that all runs together may take
WORK = 5e9  # multiply-adds that they may cost, an exponential counted as 40


def search(rows: Any) -> Components:
    """The best start found, as the only run of a batch [1]_.

    Short runs from k-means++ and random rows; the best of them, K-means' and a tree's go on until one leads; then, as
    long as it helps, two of its components become one and another two [2]_. Runs that rest on next to no
    rows lose to all others. Work is bounded by shape alone; where it allows for next to no runs, K-means' start it is.

    .. [1] Biernacki, Celeux & Govaert (2003), Choosing starting values for the EM algorithm for getting the highest
       likelihood in multivariate Gaussian mixture models, Comput. Stat. Data Anal. 41.
    .. [2] Ueda, Nakano, Ghahramani & Hinton (2000), SMEM algorithm for mixture models, Neural Computation 12.
    """
    contest = Contest(rows.trials)
    runs = min(RUNS, contest.left // (8 * SHORT))
    if rows.model.n_components == 1 or runs < 2:
        return rows.trials.first(rows.posteriors("kmeans", 1))
    starts = [rows.posteriors("k-means++", runs // 2), rows.posteriors("random_from_data", runs - runs // 2)]
    finalists = [
        contest.heats(np.concatenate(starts), min(FINALISTS, runs // 2)),
        rows.trials.first(rows.posteriors("kmeans", 1)),
    ]
    if rows.can_afford_tree():
        finalists.append(rows.trials.first(rows.posteriors("hierarchical", 1)))
    leader, least = contest.final(together(finalists))
    skip = 0  # moves that did not help
    while contest.left > 0 and skip <= 2 * runs:
        moves = rearranged(rows.trials, leader, max(4, min(runs // 2, contest.left // (4 * SHORT))), skip)
        if len(moves) == 0:
            break
        rivals = contest.heats(moves, max(1, len(moves) // 4))
        found, objective = contest.final(together([leader, rivals]))
        if objective < least - contest.enough:
            leader, least, skip = found, objective, 0
        else:
            skip += len(moves)
    return leader


class Contest:
    """Runs against each other, as long as there is work left to spend."""

    def __init__(self, trials: Trials):
        self.trials, self.model = trials, trials.model
        n, monomials = trials.size
        self.left = int(min(STEPS, WORK / (n * self.model.n_components * (monomials + 40))))
        self.enough = self.model.tol * (1 + trials.w.sum() / 1000)
        centered = (trials.X - trials.w @ trials.X / trials.w.sum()) * trials.scale
        self.whole = (trials.w[:, None] * centered).T @ centered / trials.w.sum()

    def heats(self, resp: np.ndarray, winners: int) -> Components:
        """The best of short runs from these posteriors (runs, n, k)."""
        c, objective, _ = self._advance(self.trials.first(resp), SHORT)
        return chosen(c, self._ranked(c, objective)[:winners])

    def final(self, c: Components) -> tuple[Components, float]:
        """The best alone, once it has settled and none could still overtake it; and its objective.

        A few that lag stay until then: a run that looks sound may yet collapse.
        """
        while True:
            c, objective, gain = self._advance(c, ROUND)
            order = self._ranked(c, objective)
            leader, others = order[0], order[1:]
            settled = gain < self.enough
            could_win = objective - HOPE * gain < objective[leader]
            if settled[leader]:
                others = others[could_win[others] & ~settled[others]]
            else:
                others = np.r_[others[:SPARE], others[SPARE:][could_win[others[SPARE:]]]]
            c = chosen(c, np.r_[leader, others])
            if self.left <= 0 or (settled[leader] and len(others) == 0):
                return chosen(c, [0]), float(objective[leader])

    def _advance(self, c: Components, steps: int) -> tuple[Components, np.ndarray, np.ndarray]:
        self.left -= steps * len(c.weights)
        return self.trials.advance(c, steps)

    def _ranked(self, c: Components, objective: np.ndarray) -> np.ndarray:
        """Runs from best to worst; those that rest on next to no rows come last."""
        counts = c.weights * len(self.trials.X)
        unit = self.model.unit * self.trials.scale
        suspect = spurious(self.model, counts, self.trials.covariances(c), self.whole, unit)
        return np.lexsort([objective, suspect])


def rearranged(trials: Trials, c: Components, runs: int, skip: int) -> np.ndarray:
    """Posteriors (runs, n, k) in which two components are one, and another is cut in two across its longest axis.

    Two that share rows are likely to be one; one is likely to be two if its rows lie away from its middle: the mean
    distance along the axis, squared, is 2 / pi of the variance for a Gaussian, and all of it for two points. The `skip`
    most promising moves are left out.
    """
    (before,), k = trials.posterior(c), c.means.shape[-2]
    mass = before * trials.w[:, None]
    axes = np.stack([_longest_axis(trials.X - mean, m) for mean, m in zip(c.means[0], mass.T, strict=True)])
    along = trials.X @ axes.T - (c.means[0] * axes).sum(axis=-1)
    tiny = np.finfo(np.float64).tiny  # of components whose rows all lie at their mean, or that have none
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


def spurious(
    model: GaussianEM, counts: np.ndarray, covariances: np.ndarray, whole: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    """2 if a component rests on too few rows, 1 if one is flat in some direction: likely by accident; 0 if neither.

    counts (..., k) rows, covariances (..., k, d, d), `whole` (d, d) that of all rows, `unit` (d,) their size. A
    component that shares shape and orientation with the others is sound on fewer rows than one whose covariance is
    all its own. Flat is thinner than the rows are anywhere; unless its rows are few, also much thinner than the
    component is otherwise: a tight round cluster is not flat.
    """
    letters, d = model.structure.name, covariances.shape[-1]
    own = "V" in (letters[1:] if d > 1 else letters)
    enough, flat = (d + 1.0, 2e-3) if own else (2.5, 2e-3) if letters[0] == "V" else (1.5, 0.0)
    thin = np.zeros(covariances.shape[:-2], bool)
    for size in (np.ones_like(unit), unit):
        scale = np.outer(size, size)
        thin |= np.linalg.eigvalsh(covariances / scale)[..., 0] < flat * np.linalg.eigvalsh(whole / scale)[0]
    whiten = np.linalg.inv(np.linalg.cholesky(whole / scale + 1e-12 * np.eye(d)))
    values = np.linalg.eigvalsh(whiten @ (covariances / scale) @ whiten.T)
    collapsed = values[..., 0] < np.maximum(flat * values[..., -1], 20 * model.reg_covar)
    few, thin = counts < enough, thin & (collapsed | (counts < 5 * enough))
    return np.where(few.any(axis=-1), 2, thin.any(axis=-1))


def sound_first(model: GaussianEM, rows: int, c: Components) -> int:
    """What fits are ordered by before their objectives: those that rest on next to no rows come after all others."""
    matrices = forms.dense(model.form, c.covariances, *c.means.shape)
    away = c.means - c.weights @ c.means
    whole = np.tensordot(c.weights, matrices, 1) + (c.weights[:, None] * away).T @ away
    return int(spurious(model, c.weights * rows, matrices, whole, model.unit))
