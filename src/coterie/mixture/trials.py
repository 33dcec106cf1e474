"""Batches of EM runs on a sample of the rows: the interface between a search and a family, and random starts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.protocols import Chunk
from coterie.core.search import Effort


@dataclass(frozen=True, kw_only=True)
class MixtureEffort(Effort):
    """Length of a search of a mixture; its `work` counts an exponential as 40 multiply-adds."""

    starts: int = 0  # one batch, whose size depends on the data
    same: float = 0.0  # by the tolerance of the fit
    hope: float = 50.0
    short: int  # steps after which the best random starts of a batch are chosen
    continued: int  # number of runs that then continue
    steps: tuple[int, int]  # minimum and maximum number of steps of all runs
    splits: float = 0.0  # maximum share of new starts that split and merge components
    polish: float = 0.0  # multiply-adds of the last steps of the result


class Trials(ABC):
    """EM runs side by side: parameters are tuples of arrays whose first axis is the run.

    Responsibilities have shape (runs, n, k). `scores` are log densities up to a constant of each row.
    """

    auto: ClassVar[MixtureEffort]
    thorough: ClassVar[MixtureEffort]
    pool_size: ClassVar[int]  # maximum number of rows that are candidates for seeds
    random_methods: ClassVar[tuple[str, ...]] = ("k-means++", "random_from_data")

    def __init__(self, model: Any, chunk: Chunk, rng: np.random.Generator):
        self.model, self.rng = model, rng
        (self.n, self.d), self.k = chunk.X.shape, model.n_components
        self.w: np.ndarray = np.asarray(chunk.w)
        self.known = chunk.y  # (n,) known components, -1 if unknown

    @property
    def smallest_component(self) -> int:
        """Minimum number of rows of a component."""
        return 1

    # EM

    @property
    @abstractmethod
    def step_work(self) -> float:
        """Multiply-adds of a step of one run, where an exponential counts as 40."""

    @abstractmethod
    def m_step(self, resp: np.ndarray) -> Any:
        """Parameters of runs with these responsibilities, for any number of components."""

    @abstractmethod
    def advance(
        self, params: Any, steps: int, tol: float = -np.inf, is_extrapolated: bool = False
    ) -> tuple[Any, np.ndarray, np.ndarray, int]:
        """The runs after at most `steps` EM steps, their objectives (runs,), the gains of the last two steps (2, runs),
        and the work in steps of one run.

        A run may end when a step gains less than `tol`, or when the estimated remaining gain is less.
        """

    @abstractmethod
    def responsibilities(self, params: Any) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities (runs, n, k) and log densities (runs, n), for any number of components."""

    @abstractmethod
    def result(self, params: Any, run: int) -> Any:
        """The parameters of one run, for the rows as they were before any scaling."""

    def degeneracy(self, params: Any) -> np.ndarray:
        """Above 0 for runs with a degenerate component (runs,)."""
        return np.zeros(len(params.weights), int)

    def costs(self, params: Any, objective: np.ndarray) -> np.ndarray:
        """The values by which converged runs are compared (runs,); lower is better."""
        return objective

    def first(self, resp: np.ndarray) -> Any:
        """The runs that start with these responsibilities; known components take precedence."""
        if self.known is not None:
            is_known = self.known >= 0
            resp = resp.copy()
            resp[:, is_known] = self.known[is_known, None] == np.arange(self.k)
        return self.m_step(resp)

    def for_parts(self) -> Self:
        """The same for any number of components: without known components and without a prior of the weights."""
        trials = copy(self)
        trials.known = None
        return trials

    # starts

    @abstractmethod
    def scores_around(self, rows: Any, resp: np.ndarray | None = None, among: Any = None) -> np.ndarray:
        """Scores of all rows (n, m), or of those `among`, under components around `rows` (m,).

        With `resp` (rows, m), component j is around the mean of the rows with these weights.
        """

    @abstractmethod
    def nearness(self, params: Any, runs: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """How near each row is (m, n) to each of `rows` (m,) under the runs `runs` (m,): higher is nearer."""

    def default_start(self) -> np.ndarray:
        """Responsibilities (1, n, k) of a single good start."""
        return self.starts("k-means++", 1)

    def first_starts(self, kind: str) -> np.ndarray:
        """Responsibilities (runs, n, k) of the first starts of a search."""
        return self.starts("k-means++", 3)

    def short_starts(self, runs: int) -> np.ndarray:
        """Responsibilities (runs, n, k) of the random starts of a short search."""
        return self.random_starts(runs)

    def starts(self, method: str, runs: int) -> np.ndarray:
        """Responsibilities (runs, n, k) of random starts by this method."""
        if self.k == 1:
            return np.ones((runs, self.n, 1))
        if method == "random":
            resp = self.rng.random((runs, self.n, self.k))
            return resp / resp.sum(axis=-1, keepdims=True)
        return self._around_seeds(runs) if method == "k-means++" else self._around_random_rows(runs)

    def random_starts(self, runs: int) -> np.ndarray:
        """Responsibilities (runs, n, k) of random starts, by all `random_methods` alike.

        Components around random rows are as wide as all rows in the middle, and from a third of that to three times as
        wide: wide ones lead to clusters inside each other, narrow ones to small clusters.
        """
        share = runs // len(self.random_methods)
        sharpness = 10.0 ** np.linspace(-1, 1, share)[:, None, None]
        starts = [self._around_random_rows(share, sharpness)]
        if "random" in self.random_methods:
            starts.append(self.starts("random", share))
        return np.concatenate([self._around_seeds(runs - share * len(starts)), *starts])

    def _around_seeds(self, runs: int) -> np.ndarray:
        """Rows are assigned to the nearest of seeds from k-means++."""
        labels, known = self._known_components()
        mass = np.repeat(self.w[self.pool][None], runs, axis=0)
        nearest = None
        if len(labels):
            nearest = np.maximum(self._own_scores[:, None] - known[self.pool], 0.0).min(axis=1)
        seeds = plusplus(self._losses, mass, self.k - len(labels), self.rng, nearest)
        return (self._scores_of_starts(seeds).argmax(axis=2)[..., None] == np.arange(self.k)).astype(np.float64)

    def _around_random_rows(self, runs: int, sharpness: Any = 1.0) -> np.ndarray:
        """Responsibilities of components around random rows, with densities raised to the power `sharpness`."""
        count, m = self.k - len(self._known_components()[0]), len(self.pool)
        p = self.w[self.pool] / self.w[self.pool].sum()
        seeds = np.stack([self.rng.choice(m, count, replace=m < count, p=p) for _ in range(runs)])
        joint = self._scores_of_starts(seeds)
        resp = np.exp(sharpness * (joint - joint.max(axis=-1, keepdims=True)))
        return resp / resp.sum(axis=-1, keepdims=True)

    def _scores_of_starts(self, seeds: np.ndarray) -> np.ndarray:
        """Scores (runs, n, k): components without known rows are around the seeds (runs, m), indices of the pool."""
        labels, known = self._known_components()
        scores = np.empty((len(seeds), self.k, self.n))
        scores[:, labels] = known.T
        if seeds.size:  # else each component has known rows
            distinct, which = np.unique(seeds, return_inverse=True)
            around = np.ascontiguousarray(self.scores_around(self.pool[distinct]).T)
            scores[:, np.setdiff1d(np.arange(self.k), labels)] = around[which.reshape(seeds.shape)]
        return np.ascontiguousarray(scores.transpose(0, 2, 1))

    def _known_components(self) -> tuple[np.ndarray, np.ndarray]:
        """Components with known rows (m,), and the scores of all rows around the means of these rows (n, m)."""
        if self.known is None:
            return np.zeros(0, int), np.zeros((self.n, 0))
        rows = np.flatnonzero(self.known >= 0)
        labels = np.unique(self.known[rows])
        return labels, self.scores_around(rows, self.w[rows, None] * (self.known[rows, None] == labels))

    @cached_property
    def pool(self) -> np.ndarray:
        """Rows that are candidates for seeds."""
        if self.n <= self.pool_size:
            return np.arange(self.n)
        return np.sort(self.rng.choice(self.n, self.pool_size, replace=False))

    @cached_property
    def _pool_scores(self) -> np.ndarray:
        return self.scores_around(self.pool, among=self.pool)

    @property
    def _own_scores(self) -> np.ndarray:
        return np.diagonal(self._pool_scores)

    @cached_property
    def _losses(self) -> np.ndarray:
        """Log density that each row of the pool (first axis) loses at each other, compared with itself."""
        return np.maximum(self._own_scores[:, None] - self._pool_scores, 0.0)

    def halves(self, resp: np.ndarray) -> np.ndarray:
        """Each component (n, k) divided between two seeds from k-means++: shares of its rows (k, n, 2).

        Rows are divided at the mean of their difference in score, so that no half is empty.
        """
        mass = self.w[:, None] * resp
        pool_mass = mass[self.pool].T
        pool_mass = np.where(pool_mass.sum(axis=1, keepdims=True) > 0, pool_mass, 1.0)
        seeds = plusplus(self._losses, pool_mass, 2, self.rng)
        scores = self.scores_around(self.pool[seeds.ravel()]).reshape(self.n, -1, 2)
        difference = scores[..., 1] - scores[..., 0]
        mean = (mass * difference).sum(axis=0) / np.maximum(mass.sum(axis=0), np.finfo(np.float64).tiny)
        is_second = (difference > mean).T
        return np.stack([~is_second, is_second], axis=-1).astype(np.float64)


def plusplus(
    loss: np.ndarray, mass: np.ndarray, k: int, rng: np.random.Generator, nearest: np.ndarray | None = None
) -> np.ndarray:
    """Seeds (runs, k) by k-means++: rows in proportion to `mass` (runs, m) times their loss at the nearest seed.

    `loss` (m, m) is that of a row (first axis) at a seed; `nearest` (m,) the loss without any of the seeds.
    """
    runs, m = mass.shape
    seeds = np.empty((runs, k), np.intp)
    closest = np.ones((runs, m)) if nearest is None else np.repeat(nearest[None], runs, axis=0)
    for j in range(k):
        density = mass * closest
        until = np.where(density.sum(axis=1, keepdims=True) > 0, density, mass).cumsum(axis=1)
        aim = rng.random((runs, 1)) * until[:, -1:]
        seeds[:, j] = np.minimum((until <= aim).sum(axis=1), m - 1)
        added = loss[:, seeds[:, j]].T
        closest = added if j == 0 and nearest is None else np.minimum(closest, added)
    return seeds
