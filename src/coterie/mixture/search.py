"""The best of many short EM runs, made better by moving components about: a start that is rarely a poor optimum."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.families import forms
from coterie.mixture.gaussian_em import Components, GaussianEM
from coterie.mixture.rearrange import cross, relocate, required_rows, split_and_merge
from coterie.mixture.trials import Trials, chosen, replaced, together

RUNS = 240  # short runs
SHORT = 10  # steps of a short run
ROUND = 20  # steps between two comparisons of the runs
ELITE = 10  # distinct best runs that are kept, and from which new starts are made
HOPE = 50  # times its last gain by which a run may be behind the best and still go on
PATIENCE = 3  # rounds of new starts without a gain, after which the search ends; twice as many where rows are few
STEPS = 10_000  # of all runs together
MORE = 60_000  # the same where rows are few
NOISE = 1e-3  # share of random numbers in the posteriors from which the best runs are finished
WORK = 5e9  # multiply-adds of all steps, an exponential counted as 40
LARGE = 0.1  # share of the rows that do not lie in a plane by accident
LIGHT = 2e9  # multiply-adds up to which more steps than `STEPS` may be taken
CALL = 1e5  # multiply-adds that one step of a batch costs at least, however few its runs


def search(rows: Any) -> Components:
    """The best start found, as the only run of a batch [1]_.

    Short runs from k-means++, random rows and random posteriors; the best of them (all where rows are few), K-means'
    and a tree's go on until they have converged or cannot win. The best few are then rearranged as long as that helps,
    and checked to be local optima; the likeliest of them is the result. Runs with a component of hardly any rows come
    after all others. The work depends on the shape alone; if it allows fewer than three runs, K-means is the start.

    .. [1] Biernacki, Celeux & Govaert (2003), Choosing starting values for the EM algorithm for getting the highest
       likelihood in multivariate Gaussian mixture models, Comput. Stat. Data Anal. 41.
    """
    contest = Contest(rows.trials)
    if rows.model.n_components == 1 or contest.runs < 3:
        return rows.trials.first(rows.posteriors("kmeans", 1))
    finalists = [contest.heats(rows.random_starts(contest.runs), contest.winners(contest.runs))]
    finalists.append(rows.trials.first(rows.posteriors("kmeans", 1)))
    if rows.can_afford_tree():
        finalists.append(rows.trials.first(rows.posteriors("hierarchical", 1)))
    elite = contest.improved(contest.settled(together(finalists)), rows.rng)
    return chosen(contest.finished(elite, rows.rng).runs, [0])


class Elite(NamedTuple):
    """The best runs that are different from each other, the best first."""

    runs: Components
    suspect: np.ndarray  # (runs,) 0 if sound
    objective: np.ndarray  # (runs,)
    gains: np.ndarray  # (2, runs) by which the last two steps lowered the objectives


class Contest:
    """Runs against each other, as long as there is work left to spend."""

    def __init__(self, trials: Trials):
        self.trials, self.model = trials, trials.model
        n, monomials = trials.size
        step = n * self.model.n_components * (monomials + 40)
        self.light = STEPS * step < LIGHT
        self.left = int(min(MORE, LIGHT / step) if self.light else min(STEPS, WORK / step))
        self.runs = min(RUNS, self.left // ((10 if self.light else 4) * SHORT))
        self.least = max(1, int(CALL / step))
        self.reserve = self.left // 10  # to finish the best runs with
        self.left -= self.reserve
        # `tol` (1 + n / 1000) for rows of weight 1; in proportion to the weights, whose scale then does not matter
        self.enough = self.model.tol * trials.w.sum() * (1 / n + 1 / 1000)

    def winners(self, runs: int) -> int:
        """How many of so many independent short runs go on: all where rows are few, else a quarter."""
        return runs if self.light else max(1, runs // 4)

    def heats(self, resp: np.ndarray, winners: int) -> Components:
        """The best of short runs from these posteriors (runs, n, k), the best first."""
        c, objective, _ = self._advance(self.trials.first(resp), SHORT)
        return chosen(c, self.ranked(c, objective)[:winners])

    def ranked(self, c: Components, objective: np.ndarray) -> np.ndarray:
        """Runs from best to worst; those with a component of hardly any rows come last."""
        return np.lexsort([objective, self._suspect(c)])

    def settled(self, c: Components, elite: Elite | None = None) -> Elite:
        """The best of the runs, and of an elite, once each has converged or is too far behind to win.

        Runs of the elite go on as well, unless they are stationary: a component may collapse slowly.
        """
        runs = len(c.weights)
        objective, gains, suspect = np.full(runs, np.inf), np.full((2, runs), np.inf), np.zeros(runs, int)
        if elite is not None:
            c, objective = together([c, elite.runs]), np.append(objective, elite.objective)
            gains, suspect = np.append(gains, elite.gains, axis=1), np.append(suspect, elite.suspect)
        active = np.flatnonzero(~self._stationary(gains))
        while True:
            moved, objective[active], gains[:, active] = self._advance(chosen(c, active), ROUND)
            c, suspect[active] = replaced(c, active, moved), self._suspect(moved)
            order = np.lexsort([objective, suspect])
            best = order[0]  # if it collapses later, runs that were behind it go on
            could_win = (objective - HOPE * gains[-1] < objective[best]) & (suspect <= suspect[best])
            active = np.flatnonzero(could_win & ~self._converged(gains))
            if len(active) == 0 or self.left <= 0:
                return self._elite(c, suspect, objective, gains, order)

    def _converged(self, gains: np.ndarray) -> np.ndarray:
        """Whether the objective still to be gained, by Aitken's estimate from the last two gains, is small."""
        before, last = np.maximum(gains, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):  # of a gain after none
            rate = np.minimum(last / before, 1 - 1e-6)
        return (last * np.maximum(1.0, rate / (1 - rate)) < self.enough) | self._stationary(gains)

    def _stationary(self, gains: np.ndarray) -> np.ndarray:
        """Whether the last step of each run gained next to nothing."""
        return gains[-1] < 1e-6 * self.enough

    def _elite(
        self, c: Components, suspect: np.ndarray, objective: np.ndarray, gains: np.ndarray, order: np.ndarray
    ) -> Elite:
        """The best of the runs that are different optima."""
        elite: list[int] = []
        for i in order:  # runs of almost the same objective are one optimum, its components in another order
            if len(elite) < ELITE and all(abs(objective[i] - objective[j]) > 10 * self.enough for j in elite):
                elite.append(int(i))
        return Elite(chosen(c, elite), suspect[elite], objective[elite], gains[:, elite])

    def improved(self, elite: Elite, rng: np.random.Generator) -> Elite:
        """The best runs after rounds of new starts made from them, until these no longer help."""
        idle = skip = 0
        while self.left > 0 and idle < (2 * PATIENCE if self.light else PATIENCE):
            runs = max(4, min(self.runs // 2, self.left // (4 * SHORT)))
            splits = split_and_merge(self.trials, chosen(elite.runs, [0]), -(-runs // 3), skip)
            moves = [splits, relocate(self.trials, elite.runs, runs // 3, rng)]
            if len(elite.objective) > 1:
                moves.append(cross(self.trials, elite.runs, runs // 3, rng))
            starts = np.concatenate(moves)
            rivals = self.heats(starts, max(1, len(starts) // 4))
            before, elite = elite, self.settled(rivals, elite)
            helped = (elite.suspect[0], elite.objective[0] + self.enough) < (before.suspect[0], before.objective[0])
            idle, skip = (0, 0) if helped else (idle + 1, skip + len(splits))
        return elite

    def finished(self, elite: Elite, rng: np.random.Generator) -> Elite:
        """The local optima next to the runs of an elite: sound ones before all others, then the likeliest first.

        EM can converge to a saddle point, so every run restarts from its posteriors with a little noise added. Only a
        prior changes the order: the penalty of `reg_covar` prevents collapses, but does not compare optima.
        """
        self.left, self.reserve = self.left + self.reserve, 0
        resp = self.trials.posterior(elite.runs)
        noise = rng.random(resp.shape)
        resp += NOISE * (noise / noise.sum(axis=-1, keepdims=True) - resp)
        elite = self.settled(self.trials.first(resp))
        order = np.lexsort([self.costs(elite.runs), elite.suspect])
        return Elite(chosen(elite.runs, order), elite.suspect[order], elite.objective[order], elite.gains[:, order])

    def costs(self, c: Components) -> np.ndarray:
        """With a prior the objective of each run, without one minus its log-likelihood."""
        stats, penalty = self.trials.e_step(c), self.model.penalty
        has_prior = penalty.scale is not None or np.any(np.asarray(penalty.concentration) != 1.0)
        return self.model.objective(c, stats) if has_prior else -stats.bound

    def _advance(self, c: Components, steps: int) -> tuple[Components, np.ndarray, np.ndarray]:
        self.left -= steps * max(self.least, len(c.weights))
        return self.trials.advance(c, steps)

    def _suspect(self, c: Components) -> np.ndarray:
        """Above 0 for runs with a component of hardly any rows."""
        rows, scale, matrices = len(self.trials.X), self.trials.scale, self.trials.covariances(c)
        return spurious(self.model, rows, c.weights, c.means * scale, matrices, self.model.unit * scale)


def spurious(
    model: GaussianEM,
    rows: int,
    weights: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    unit: np.ndarray,
) -> np.ndarray:
    """2 if a component rests on too few rows, 1 if one is flat in some direction: likely by accident; 0 if neither.

    weights (..., k), means (..., k, d), covariances (..., k, d, d), `unit` (d,) the size of the columns. A
    component that shares shape and orientation with the others is sound on fewer rows than one whose covariance is
    all its own. Flat is thinner than the mixture is anywhere; unless its rows are few, also much thinner than the
    component is otherwise: a tight round cluster is not flat. A component with a share of `LARGE` of the rows is not
    flat by accident, unless its covariance is at the floor of `reg_covar`; one that shares everything is flat there.
    """
    letters, d = model.structure.name, covariances.shape[-1]
    enough = required_rows(letters, d)
    flat = 0.0 if enough == 1.5 else 2e-3
    away = means - weights[..., None, :] @ means
    whole = (weights[..., None, None] * covariances).sum(axis=-3)
    whole = whole + np.swapaxes(weights[..., None] * away, -1, -2) @ away
    thin = np.zeros(covariances.shape[:-2], bool)
    for size in (np.ones_like(unit), unit):
        scale = np.outer(size, size)
        least = np.linalg.eigvalsh(whole / scale)[..., :1]
        thin |= np.linalg.eigvalsh(covariances / scale)[..., 0] < flat * least
    whiten = np.linalg.inv(np.linalg.cholesky(whole / scale + 1e-12 * np.eye(d)))[..., None, :, :]
    values = np.linalg.eigvalsh(whiten @ (covariances / scale) @ np.swapaxes(whiten, -1, -2))
    at_floor = values[..., 0] < 20 * model.reg_covar
    collapsed = (values[..., 0] < flat * values[..., -1]) & (weights < LARGE) | at_floor
    counts = weights * rows
    few, thin = counts < enough, thin & (collapsed | (counts < 5 * enough)) | (at_floor & (flat == 0))
    return np.where(few.any(axis=-1), 2, thin.any(axis=-1))


def sound_first(model: GaussianEM, rows: int, c: Components) -> int:
    """Sort key of fits before their objectives: those with a component of hardly any rows come last."""
    matrices = forms.dense(model.form, c.covariances, *c.means.shape)
    return int(spurious(model, rows, c.weights, c.means, matrices, model.unit))
