"""Where EM starts, whatever the family: many short runs on a sample of the rows, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie import interrupts
from coterie.core.protocols import Chunk, Engine, Source
from coterie.errors import InputError
from coterie.kernels.plain.gaussian import posterior
from coterie.mixture.family_em import Mix, MixtureEM, picked
from coterie.mixture.family_moves import rearranged

METHODS = ("auto", "k-means++", "random_from_data", "random")
SAMPLE = 2000  # rows on which starts are sought; more where components are many,
WIDE_SAMPLE = 5000  # or columns are
POOL = 300  # rows among which components may start
RUNS = 24  # short runs, half from k-means++, half from rows drawn at random
SHORT = 8  # steps of a short run
FINALISTS = 6  # short runs that go on
LONG = 60  # steps they take at most
SMALL = 1e-6  # of log-likelihood a row, whatever its unit: less does not decide between runs
WORK = 2e9  # multiply-adds that the short runs may cost


@dataclass(frozen=True)
class FamilyStart:
    """Finds the parameters EM starts from, on a sample of the rows."""

    method: str

    def __call__(self, model: MixtureEM, source: Source, engine: Engine, rng: np.random.Generator) -> Mix:
        trials = Trials(model, sample(model, source, rng), rng)
        if self.method == "auto":
            return trials.best()
        return trials.run(trials.first(trials.posteriors(self.method, 1)), 0)


def sample(model: MixtureEM, source: Source, rng: np.random.Generator) -> Chunk:
    """Rows to seek a start on, those of weight above 0: all of them, if they are few."""
    (n, d), k = source.shape, model.n_components
    wanted = max(SAMPLE, 50 * k, min(5 * k * d, WIDE_SAMPLE))
    chunk = source.pick(slice(None) if n <= wanted else np.sort(rng.choice(n, wanted, replace=False)))
    w = np.ones(chunk.X.shape[0]) if chunk.w is None else chunk.w
    counting = np.flatnonzero(w)
    if len(counting) == 0:
        raise InputError(f"all {wanted} rows of the random sample have weight 0: drop the rows of weight 0 from X")
    return Chunk(chunk.X[counting], w[counting], 0, None if chunk.y is None else chunk.y[counting])


class Trials:
    """EM runs side by side: R runs of K components are R K components of one family."""

    def __init__(self, model: MixtureEM, chunk: Chunk, rng: np.random.Generator):
        family = model.family
        if family.starts_smoothed and family.prior is None:
            family = family.with_prior("default")
        self.model, self.family, self.k, self.rng = replace(model, family=family), family, model.n_components, rng
        self.X, self.w, self.known = chunk.X, np.asarray(chunk.w), chunk.y
        self.features = self.family.features(chunk.X)
        self.n = chunk.X.shape[0]
        self.kind = "hard" if model.e_step_kind == "hard" else "soft"
        self.average = family.statistics(None, self.features, (self.w / self.w.sum())[:, None])

    @property
    def enough(self) -> float:
        """What is worth another step."""
        return self.model.tol * (1 + self.w.sum() / 1000)

    # runs

    def best(self) -> Mix:
        """The best of many short runs, taken further."""
        if self.k == 1:
            return self.run(self.first(np.ones((self.n, 1, 1))), 0)
        runs = int(np.clip(WORK / (SHORT * self.work), 2, RUNS))
        starts = [self.posteriors("k-means++", runs - runs // 2), self.posteriors("random_from_data", runs // 2)]
        found, objective = self.advance(self.first(np.concatenate(starts, axis=1)), SHORT)
        found = self.chosen(found, np.argsort(objective, kind="stable")[:FINALISTS])
        found, objective = self.advance(found, LONG)
        leader = int(np.argmin(objective))
        return rearranged(self, self.chosen(found, np.array([leader])), float(objective[leader]))

    @property
    def work(self) -> float:
        """Of a step of one run, in multiply-adds; an exponential or a logarithm counts as 40."""
        d = self.X.shape[1]
        width = len(self.X.data) / self.n if hasattr(self.X, "indptr") else d
        return self.k * (self.n * (2 * width + 40) + 40 * d)

    def first(self, resp: np.ndarray) -> Mix:
        """The runs whose first M-step takes the posteriors (n, runs, k)."""
        resp = self._respecting_known(resp)
        runs = resp.shape[1]
        shares = self.w[:, None] * resp.reshape(self.n, -1)
        stats = self.family.statistics(None, self.features, shares)
        return Mix(self.model.share(shares.sum(axis=0).reshape(runs, -1)), self.family.estimate(stats))

    def advance(self, c: Mix, steps: int) -> tuple[Mix, np.ndarray]:
        """The runs after so many EM steps, or when all have settled; and their objectives."""
        before: Any = -np.inf
        for _ in range(steps):
            interrupts.check()
            prepared, resp, bound = self.posterior(c)
            if np.all(bound - before < max(self.enough, SMALL * self.w.sum())):
                break
            before = bound
            shares = self.w[:, None] * resp.reshape(self.n, -1)
            parts = self.family.estimate(self.family.statistics(prepared, self.features, shares), c.parts)
            c = Mix(self.model.share(shares.sum(axis=0).reshape(len(c.weights), -1)), parts)
        _, _, bound = self.posterior(c)
        priors = [self.model.log_prior(self.run(c, run)) for run in range(len(c.weights))]
        return c, -(bound + np.array(priors))

    def posterior(self, c: Mix) -> tuple[Any, np.ndarray, np.ndarray]:
        """What the pass needed of the parameters; posteriors (n, runs, k); bounds less what is the same (runs,)."""
        prepared = self.family.prepare(c.parts)
        with np.errstate(divide="ignore"):
            joint = self.family.scores(prepared, self.features).reshape(self.n, -1, self.k) + np.log(c.weights)
        runs = joint.shape[1]
        known = None if self.known is None else np.repeat(self.known, runs)
        resp, _, bound = posterior(joint.reshape(-1, self.k), self.kind, known)
        return prepared, resp.reshape(self.n, runs, self.k), self.w @ bound.reshape(self.n, runs)

    def chosen(self, c: Mix, runs: np.ndarray) -> Mix:
        which = (runs[:, None] * self.k + np.arange(self.k)).ravel()
        return Mix(c.weights[runs], picked(c.parts, which))

    def run(self, c: Mix, run: int) -> Mix:
        """One of the runs."""
        return Mix(c.weights[run], picked(c.parts, slice(run * self.k, (run + 1) * self.k)))

    # starts

    def posteriors(self, method: str, runs: int) -> np.ndarray:
        """So many starts by that method (n, runs, k)."""
        if method == "random":
            return self.rng.dirichlet(np.ones(self.k), (self.n, runs))
        p = self.w / self.w.sum()
        rows = self.rng.choice(self.n, min(self.n, POOL), replace=False, p=p)
        scores = self.scores_around(rows)
        if method == "k-means++":
            seeds = np.stack([self.apart(scores[rows], self.w[rows], self.k) for _ in range(runs)])
        else:
            seeds = np.stack([self.rng.choice(len(rows), self.k, replace=len(rows) < self.k) for _ in range(runs)])
        joint = scores[:, seeds]
        joint = self._with_known(joint)
        if method == "k-means++":
            return (joint.argmax(axis=2)[..., None] == np.arange(self.k)).astype(np.float64)
        return posterior(joint.reshape(-1, self.k))[0].reshape(joint.shape)

    def scores_around(self, rows: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """Log densities of all rows, or of those `among`, under a component at each of these rows (n, rows)."""
        features = self.features if among is None else self.family.features(self.X[among])
        return self.family.scores(self.family.prepare(self.model.around(self.X[rows], self.average)), features)

    def apart(self, scores: np.ndarray, w: np.ndarray, k: int) -> np.ndarray:
        """So many seeds, drawn by what log density a row loses at the best seed there is, beside at itself."""
        loss = np.maximum(np.diagonal(scores)[:, None] - scores, 0.0)  # (row, seed)
        seeds, nearest = np.empty(k, np.intp), np.ones(len(w))
        for j in range(k):
            mass = w * nearest if (w * nearest).sum() > 0 else w
            seeds[j] = self.rng.choice(len(w), p=mass / mass.sum())
            nearest = loss[:, seeds[j]] if j == 0 else np.minimum(nearest, loss[:, seeds[j]])
        return seeds

    def _with_known(self, joint: np.ndarray) -> np.ndarray:
        """Scores (n, runs, k) where components of which rows are known are those of these rows."""
        if self.known is None:
            return joint
        told = [j for j in range(self.k) if (self.known == j).any()]
        resp = self.w[:, None] * (self.known[:, None] == np.array(told))
        mine = self.family.estimate(self.family.statistics(None, self.features, resp))
        joint = joint.copy()
        joint[:, :, told] = self.family.scores(self.family.prepare(mine), self.features)[:, None]
        return joint

    def _respecting_known(self, resp: np.ndarray) -> np.ndarray:
        if self.known is None:
            return resp
        sure = self.known >= 0
        resp = resp.copy()
        resp[sure] = (self.known[sure, None] == np.arange(self.k))[:, None]
        return resp
