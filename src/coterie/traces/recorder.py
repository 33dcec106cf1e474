"""A callback that keeps the parameters of the best start, and little else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from coterie.core import loop
from coterie.core.errors import ParameterError
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Engine, Source
from coterie.core.stats import Stats

MOST = 240  # iterations of a start that are kept
FEWEST = 8  # that are kept however large they are
BYTES = 1 << 26  # of parameters that are kept of a start


@dataclass(frozen=True)
class Moment:
    """A fit after an iteration."""

    iteration: int
    params: Any
    objective: float  # as the loop has it: to be made small
    likelihood: float | None = None  # of a mixture, with the prior: what the objective is a bound of
    penalised: bool = False  # whether that has a prior's part
    weight: np.ndarray | None = None  # (k,) of the rows of each cluster, at these parameters
    came: np.ndarray | None = None  # (k,) which component of the start each is, where steps sort them


@dataclass
class Run:
    """The iterations of one start: all while they are few; of many the first, then pairs ever further apart."""

    number: int
    moments: list[Moment] = field(default_factory=list)
    most: int = MOST
    stride: int = 1

    def add(self, moment: Moment) -> None:
        if self.moments and not self._keeps(self.moments[-1]):
            self.moments.pop()  # it was kept only as long as it was the last
        if not self.moments:
            self.most = min(MOST, max(FEWEST, BYTES // max(1, size(moment.params))))
        self.moments.append(moment)
        while len(self.moments) > self.most and self.stride < moment.iteration:
            self.stride = max(4, 2 * self.stride)
            self.moments = [each for each in self.moments if self._keeps(each) or each is moment]

    def _keeps(self, moment: Moment) -> bool:
        return moment.iteration < self.most // 2 or moment.iteration % self.stride < 2


class Recorder:
    """What a fit tells while `fit_trace` runs it: the best start so far, and the one under way."""

    def __init__(self) -> None:
        self.best: Run | None = None
        self.now: Run | None = None
        self.online = False

    def watching(
        self,
        callback: Callback | None,
        model: Any,
        source: Source,
        engine: Engine,
        key: Callable[[loop.Fit], Any] | None = None,
        start: Any = None,
    ) -> Callback:
        """`callback`, told after this. `key` is what the loop ranks starts by, `start` that of a fit by batches."""
        self.model, self.source, self.engine = model, source, engine
        self.key, self.online = key or attrgetter("objective"), start is not None
        if self.online:
            self.now = Run(0, [Moment(0, start, np.nan)])

        def watch(progress: Progress) -> bool | None:
            self._note(progress)
            return None if callback is None else callback(progress)

        return watch

    def chose(self, found: loop.Fit) -> None:
        """Told what the loop found, for which the best start must be one that was watched."""
        self._settle()
        if self.best is None or self.best.number != found.run:
            raise ParameterError(
                "fit_trace tells what it saw, and the best start was over before: use it without a checkpoint of an "
                "earlier fit (checkpoint=None)"
            )

    @property
    def run(self) -> Run:
        """The start that was kept."""
        self._settle()
        assert self.best is not None
        return self.best

    def _note(self, progress: Progress) -> None:
        if self.now is None or self.now.number != progress.run:
            self._settle()
            self.now = Run(progress.run)
        self.now.add(self._moment(progress, self.now.moments[-1] if self.now.moments else None))

    def _moment(self, progress: Progress, before: Moment | None) -> Moment:
        stats, objective = progress.stats, float(progress.objective)
        weight: Any = getattr(stats, "weight", None)
        noted = Moment(progress.iteration, progress.params, objective, weight=weight)
        if not hasattr(self.model, "climbs"):
            return noted
        prior = -objective - float(stats.bound)
        came = self._came(len(weight), before) if hasattr(self.model, "order") else None
        likelihood = float(stats.log_likelihood) - float(stats.bound) - objective
        return Moment(progress.iteration, progress.params, objective, likelihood, prior != 0.0, weight, came)

    def _came(self, k: int, before: Moment | None) -> np.ndarray:
        if before is None or before.came is None or before.weight is None:
            return np.arange(k)
        came: np.ndarray = before.came[self.model.order(before.weight)]
        return came

    def _settle(self) -> None:
        """The start under way becomes the best if it is better, as the loop would say."""
        if self.now is None:
            return
        if self.best is None or self._rank(self.now) < self._rank(self.best):
            self.best = self.now
        self.now = None

    def _rank(self, run: Run) -> Any:
        last = run.moments[-1]
        return self.key(loop.Fit(last.params, last.objective, (), False, run.number))


def size(params: Any) -> int:
    """Bytes of the arrays that parameters are made of."""
    if isinstance(params, np.ndarray):
        return params.nbytes
    parts = params.leaves() if isinstance(params, Stats) else params if isinstance(params, tuple | list) else ()
    return sum(size(part) for part in parts)
