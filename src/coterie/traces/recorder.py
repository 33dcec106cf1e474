"""A callback that records the parameters of the best restart."""

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from coterie.core import loop
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Engine, Maximizer, SortedComponents, Source
from coterie.core.rounding import is_lower
from coterie.core.stats import Stats
from coterie.errors import ParameterError

MAX_ITERATIONS = 240  # number of iterations of a restart that are recorded
MIN_ITERATIONS = 8  # recorded even if their parameters are larger than `MAX_BYTES`
MAX_BYTES = 1 << 26  # size of the recorded parameters of a restart


@dataclass(frozen=True)
class Iteration:
    """The state of a fit after an iteration."""

    iteration: int
    params: Any
    objective: float  # the objective that the loop minimises
    likelihood: float | None = None  # for mixtures, the log-likelihood with the prior; -objective is a bound of it
    is_penalised: bool = False  # whether the likelihood includes a prior
    weight: np.ndarray | None = None  # (k,) total weight of the rows in each cluster
    origin: np.ndarray | None = None  # (k,) initial number of each component, if iterations sort the components


@dataclass
class Run:
    """The iterations of one restart: all of them, or the first ones and later pairs at increasing distances."""

    number: int
    iterations: list[Iteration] = field(default_factory=list)
    limit: int = MAX_ITERATIONS
    stride: int = 1

    def add(self, iteration: Iteration) -> None:
        if self.iterations and not self._is_recorded(self.iterations[-1]):
            self.iterations.pop()  # the last iteration is always recorded, and this one no longer is the last
        if not self.iterations:
            size = max(1, n_bytes(iteration.params))
            self.limit = min(MAX_ITERATIONS, max(MIN_ITERATIONS, MAX_BYTES // size))
        self.iterations.append(iteration)
        while len(self.iterations) > self.limit and self.stride < iteration.iteration:
            self.stride = max(4, 2 * self.stride)
            self.iterations = [each for each in self.iterations if self._is_recorded(each) or each is iteration]

    def _is_recorded(self, iteration: Iteration) -> bool:
        return iteration.iteration < self.limit // 2 or iteration.iteration % self.stride < 2


class Recorder:
    """Records the best restart so far and the current one, while `fit_trace` runs."""

    def __init__(self) -> None:
        self.best: Run | None = None
        self.current: Run | None = None
        self.is_online = False
        self.numbers: np.ndarray | None = None  # (k,) of the clusters in traces; None: those of the fit

    def watching(
        self,
        callback: Callback | None,
        model: Any,
        source: Source,
        engine: Engine,
        key: Callable[[loop.Fit], Any] | None = None,
        start: Any = None,  # initial parameters of a fit by batches
    ) -> Callback:
        """Return a callback that records each iteration and then calls `callback`; `key` ranks restarts."""
        self.model, self.source, self.engine = model, source, engine
        self.key, self.is_online = key or attrgetter("objective"), start is not None
        if self.is_online:
            self.current = Run(0, [Iteration(0, start, np.nan)])

        def watch(progress: Progress) -> bool | None:
            self._record(progress)
            return None if callback is None else callback(progress)

        return watch

    def chose(self, result: loop.Fit) -> None:
        """Raise an error if the best restart of the loop was not recorded."""
        self._finish_run()
        if self.best is None or self.best.number != result.run:
            raise ParameterError(
                "fit_trace cannot record the best restart, because it was completed before the fit was resumed: set "
                "checkpoint=None"
            )

    @property
    def run(self) -> Run:
        """The best restart."""
        self._finish_run()
        assert self.best is not None
        return self.best

    def _record(self, progress: Progress) -> None:
        if self.current is None or self.current.number != progress.run:
            self._finish_run()
            self.current = Run(progress.run)
        previous = self.current.iterations[-1] if self.current.iterations else None
        self.current.add(self._iteration(progress, previous))

    def _iteration(self, progress: Progress, previous: Iteration | None) -> Iteration:
        stats, objective = progress.stats, float(progress.objective)
        weight: Any = getattr(stats, "weight", None)
        if not isinstance(self.model, Maximizer):
            return Iteration(progress.iteration, progress.params, objective, weight=weight)
        prior = -objective - float(stats.bound)
        origin = self._origin(len(weight), previous) if isinstance(self.model, SortedComponents) else None
        likelihood = float(stats.log_likelihood) - float(stats.bound) - objective
        return Iteration(progress.iteration, progress.params, objective, likelihood, prior != 0.0, weight, origin)

    def _origin(self, k: int, previous: Iteration | None) -> np.ndarray:
        if previous is None or previous.origin is None or previous.weight is None:
            return np.arange(k)
        return previous.origin[self.model.order(previous.weight)]

    def _finish_run(self) -> None:
        """Make the current restart the best one if it is better, by the same rule as the loop."""
        if self.current is None:
            return
        if self.best is None or is_lower(self._rank(self.current), self._rank(self.best)):
            self.best = self.current
        self.current = None

    def _rank(self, run: Run) -> Any:
        last = run.iterations[-1]
        return self.key(loop.Fit(last.params, last.objective, (), False, run.number))


def n_bytes(params: Any) -> int:
    """Return the size of the arrays in the parameters."""
    if isinstance(params, np.ndarray):
        return params.nbytes
    parts = params.leaves() if isinstance(params, Stats) else params if isinstance(params, tuple | list) else ()
    return sum(n_bytes(part) for part in parts)
