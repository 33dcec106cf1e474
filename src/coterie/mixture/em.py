"""What all mixtures have in common once rows have log densities: answers, and when EM has settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from coterie.core.protocols import Chunk
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.kernels.plain.gaussian import posterior
from coterie.seeding.plusplus import uniform

DEAD = 1e-8  # share of an average component's weight below which a component has no rows
ROUNDING = 1e-12  # rounding error of a log-likelihood per unit of weight, if its terms are large but their sum is not
RESEEDS = 2  # times a component may start anew in one run
BLOCK = 1 << 18  # numbers of a block of densities


@stored("mixture.Event")
class Event(NamedTuple):
    """Something a fit had to put right."""

    iteration: int
    component: int
    what: str  # "floored": singular covariance; "reseeded": no rows left


@dataclass(frozen=True)
class Worst(Stats):
    """The row that the mixture explains worst."""

    log_density: float
    row: Any  # (d,)

    def __add__(self, other: Worst) -> Worst:
        return self if self.log_density <= other.log_density else other


@dataclass(frozen=True)
class Halfway(Stats):
    """What an objective needs between two steps."""

    weight: Any  # (k,) of w r
    bound: Any  # J(q, parameters), the q of one step and the parameters of the next


class EM:
    """A mixture whose parameters have `weights` (k,) and `events`, and whose statistics `weight` and `bound`.

    A model says what `log_joint` and `rounding` are; the rest follows.
    """

    n_components: int
    e_step_kind: str
    tol: float

    climbs = "log-likelihood"  # what its objective, negated, is

    @property
    def converges(self) -> bool:
        return self.e_step_kind != "stochastic"

    def initial_memos(self, source: Any) -> None:
        return None

    def log_joint(self, c: Any, chunk: Chunk) -> np.ndarray:
        """log p(x, z) of every row and component (n, k)."""
        raise NotImplementedError

    def rounding(self, c: Any, stats: Any, objective: float) -> float:
        """How far the objective can be off."""
        raise NotImplementedError

    def halfway(self, before: Any, after: Any, chunk: Chunk, order: Any = None) -> Halfway:
        """J(q, after), rows divided as the E-step at `before` divides them: where the M-step has taken the bound.

        `order` says which component of `before` each of `after` was, where an M-step sorts them.
        """
        n, k = chunk.X.shape[0], self.n_components
        u = uniform(before.steps, chunk.part, n) if self.e_step_kind == "stochastic" else None
        weight, bound = np.zeros(k), self._base(chunk)
        for X, w, known, u_block in blocks(chunk, max(256, BLOCK // k), u):
            rows = Chunk(X, w, chunk.part, known)
            r, _, _ = posterior(self.log_joint(before, rows), self.e_step_kind, known, u_block)
            r = r if order is None else r[:, order]
            own, w = r > 0, np.ones(len(r)) if w is None else w
            gain = np.where(own, self.log_joint(after, rows), 0.0) - np.log(np.where(own, r, 1.0))
            weight += w @ r
            bound += float(w @ (r * gain).sum(axis=1))
        return Halfway(weight, bound)

    def _base(self, chunk: Chunk) -> float:
        """What `log_joint` leaves out of the log densities of these rows."""
        return 0.0

    def has_converged(
        self,
        before: Any,
        after: Any,
        stats: Any,
        history: Sequence[float],
        stretch: float | None = None,
    ) -> bool:
        """Whether what is left to gain, by Aitken's estimate, is below the tolerance."""
        if not self.converges or any(event.what == "reseeded" for event in after.events):
            return False
        gains = -np.diff(history[-5:])
        if gains[-1] <= self.rounding(after, stats, history[-1]) / 8:
            return True
        if len(gains) < 4:  # a start at which components all but coincide is left slowly at first
            return False
        enough = self.tol / 200 * float(stats.weight.sum())
        if stretch is not None:  # every other gain is a leap: no rate to go by
            plain = gains.reshape(2, 2).min(axis=1).max()
            return bool(max(10 * gains.max(), plain * stretch) < enough)
        with np.errstate(over="ignore"):  # of a gain after none: a component that started anew
            rate = float((gains[1:] / np.maximum(gains[:-1], np.finfo(np.float64).tiny)).max())
        return bool(rate < 1 and gains[-1] * max(1.0, rate / (1 - rate)) < enough)

    # answers, row by row

    def assign(self, c: Any, chunk: Chunk, memo: Any = None) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: self.log_joint(c, part).argmax(axis=1).astype(np.int32))

    def log_densities(self, c: Any, chunk: Chunk) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: posterior(self.log_joint(c, part))[1])

    def probabilities(self, c: Any, chunk: Chunk) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: posterior(self.log_joint(c, part))[0])

    def uncertainty(self, c: Any, chunk: Chunk) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: 1 - posterior(self.log_joint(c, part))[0].max(axis=1))

    def entropy(self, c: Any, chunk: Chunk) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: special.entr(posterior(self.log_joint(c, part))[0]).sum(axis=1))

    def _by_blocks(self, chunk: Chunk, answer: Callable[[Chunk], np.ndarray]) -> np.ndarray:
        """`answer` of blocks of rows whose densities fit the cache."""
        n, rows = chunk.X.shape[0], max(256, BLOCK // self.n_components)
        pieces = [answer(chunk._replace(X=chunk.X[i : i + rows])) for i in range(0, max(n, 1), rows)]
        return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]


def blocks(chunk: Chunk, rows: int, u: np.ndarray | None) -> Iterator[list[Any]]:
    """Rows, weights, known components and uniform numbers of a block after the other."""
    if chunk.X.shape[0] <= rows:
        yield [chunk.X, chunk.w, chunk.y, u]
        return
    for start in range(0, chunk.X.shape[0], rows):
        block = slice(start, start + rows)
        yield [None if a is None else a[block] for a in (chunk.X, chunk.w, chunk.y, u)]
