"""Batches of EM runs of mixtures of any family."""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from coterie import interrupts
from coterie.core.arrays import is_sparse
from coterie.core.nested_arrays import by_array
from coterie.core.protocols import Chunk
from coterie.kernels.plain.gaussian import posterior
from coterie.mixture.family_em import Mix, MixtureEM, repeated
from coterie.mixture.trials import MixtureEffort, Trials

CALL = 1e5  # multiply-adds that one step of a batch costs at least, however few its runs


class FamilyTrials(Trials):
    """EM runs side by side: R runs of K components are R K components of one family.

    Families whose samples are small use their default prior.
    """

    auto = MixtureEffort(
        batch=12, agree=3, jumps=2, restart=1, work=9e8, steps=(54, 270), solutions=3, short=10, continued=3
    )
    thorough = MixtureEffort(
        batch=20, agree=8, jumps=3, restart=2, work=5e10, steps=(300, 10_000), solutions=3,
        short=10, continued=5, splits=2 / 3,
    )  # fmt: skip
    pool_size = 300

    def __init__(self, model: MixtureEM, chunk: Chunk, rng: np.random.Generator):
        super().__init__(model, chunk, rng)
        family = model.family
        if family.starts_smoothed and family.prior is None:
            family = family.with_prior("default")
            if np.all(np.asarray(model.concentration) == 1.0):  # there is no prior that counts rows
                self.w = self.w / self.w.mean()
        self.em, self.family = replace(model, family=family), family
        self.X, self.features = chunk.X, family.features(chunk.X)
        self.average = family.statistics(None, self.features, (self.w / self.n)[:, None])  # of mean weight

    @property
    def step_work(self) -> float:
        d = self.X.shape[1]
        width = len(self.X.data) / self.n if is_sparse(self.X) else d
        return float(self.k * (self.n * (2 * width + 40) + 40 * d))

    def for_parts(self) -> Self:
        trials = super().for_parts()
        trials.em = replace(self.em, concentration=1.0)
        return trials

    # EM

    def m_step(self, resp: np.ndarray) -> Mix:
        return self._estimate(np.ascontiguousarray(resp.transpose(1, 0, 2)), None, None)

    def _estimate(self, resp: np.ndarray, prepared: Any, before: Any) -> Mix:
        """Parameters for responsibilities (n, runs, k) that were computed with parameters `before`."""
        _, runs, k = resp.shape
        shares = self.w[:, None] * resp.reshape(self.n, -1)
        parts = self.family.estimate(self.family.statistics(prepared, self.features, shares), before)
        parts = by_array(lambda a: a.reshape(runs, k, *a.shape[1:]), parts)
        return Mix(self.em.share(shares.sum(axis=0).reshape(runs, k)), parts)

    def advance(
        self, params: Mix, steps: int, tol: float = -np.inf, is_extrapolated: bool = False
    ) -> tuple[Mix, np.ndarray, np.ndarray, int]:
        objectives = []
        for step in range(steps + 1):
            interrupts.check()
            before, prepared, resp, log_density = self._e_step(params)
            if step >= steps - 2:
                priors = [self.em.log_prior(self.result(params, run)) for run in range(len(params.weights))]
                objectives.append(-(self.w @ log_density + np.array(priors)))
            if step < steps:
                params = self._estimate(resp, prepared, before)
        work = steps * max(len(params.weights), int(CALL / self.step_work))
        return params, objectives[-1], -np.diff(objectives, axis=0), work

    def responsibilities(self, params: Mix) -> tuple[np.ndarray, np.ndarray]:
        _, _, resp, log_density = self._e_step(params)
        return np.ascontiguousarray(resp.transpose(1, 0, 2)), log_density.T

    def _e_step(self, params: Mix) -> tuple[Any, Any, np.ndarray, np.ndarray]:
        """Parameters as those of one batch of components, what was prepared of them; responsibilities; bounds."""
        runs, k = params.weights.shape
        parts = by_array(lambda a: a.reshape(runs * k, *a.shape[2:]), params.parts)
        prepared = self.family.prepare(parts)
        with np.errstate(divide="ignore"):
            joint = self.family.scores(prepared, self.features).reshape(self.n, runs, k) + np.log(params.weights)
        known = None if self.known is None else np.repeat(self.known, runs)
        kind = "hard" if self.em.e_step_kind == "hard" else "soft"
        resp, _, bound = posterior(joint.reshape(-1, k), kind, known)
        return parts, prepared, resp.reshape(joint.shape), bound.reshape(self.n, runs)

    def result(self, params: Mix, run: int) -> Mix:
        return Mix(params.weights[run], by_array(lambda a: a[run], params.parts))

    # starts

    def first_starts(self, kind: str) -> np.ndarray:
        return self.random_starts(6)

    def scores_around(self, rows: Any, resp: np.ndarray | None = None, among: Any = None) -> np.ndarray:
        """Components are estimated from the rows and one average row."""
        resp = self.w.mean() * np.eye(len(rows)) if resp is None else resp
        stats = self.family.statistics(None, self.family.features(self.X[rows]), resp)
        params = self.family.estimate(stats + repeated(self.average, resp.shape[1]))
        features = self.features if among is None else self.family.features(self.X[among])
        return np.asarray(self.family.scores(self.family.prepare(params), features))

    def nearness(self, params: Mix, runs: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Scores under components around the rows, whatever the run."""
        distinct, which = np.unique(rows, return_inverse=True)
        return self.scores_around(distinct).T[which]
