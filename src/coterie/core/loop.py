"""The batch loop: every iterative fit repeats E-steps and M-steps, from several initialisations."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from coterie.core.accelerate import Squarem
from coterie.core.checkpoint import Checkpointer, DescentState
from coterie.core.clock import Descents
from coterie.core.progress import Callback, Progress, silent
from coterie.core.protocols import Engine, EStep, Memo, Model, Params, Source
from coterie.core.recovery import Recovery, recovering
from coterie.core.rounding import first_lowest, is_lower


@dataclass(frozen=True)
class Fit:
    """Result of a fit: parameters, the objective at exactly these parameters, and the history."""

    params: Params
    objective: float
    history: tuple[float, ...]  # the objective before the first M-step and after each
    converged: bool
    run: int = 0  # number of the restart
    passes: int = 1  # over the rows; more than iterations if accelerated steps were rejected
    stopped: bool = False  # by the callback or by Ctrl-C
    stats: Any = None  # of the last pass
    memos: list[Memo] | None = None  # of the last pass, while they are needed
    trail: tuple[Any, ...] = ()  # of the acceleration, as `stretch`
    stretch: float = np.inf

    @classmethod
    def restored(cls, saved: DescentState) -> "Fit":
        """The fit that a checkpoint stores; statistics and memos have to be computed again."""
        history = tuple(saved.history.tolist())
        return cls(saved.params, history[-1], history, saved.converged, saved.run, saved.passes)


def objective_at(model: Model, params: Params, source: Source, engine: Engine) -> float:
    """The objective of all rows at these parameters."""
    stats, _ = engine.scan(partial(model.e_step, params), source, None)
    return float(model.objective(params, stats))


def fit(
    model: Model,
    source: Source,
    engine: Engine,
    *,
    rng: np.random.Generator,
    n_init: int = 1,
    max_iter: int = 300,
    callback: Callback | None = None,
    accelerate: bool = False,
    key: Callable[[Fit], Any] = attrgetter("objective"),
    checkpointer: Checkpointer | None = None,
) -> Fit:
    """Run `n_init` restarts, and return the one with the lowest `key`.

    After Ctrl-C the best result so far is returned with a `FitInterruptedWarning`, unless this fit is a step of a
    larger computation. A `checkpointer` saves the state of the fit after iterations, and a saved fit is resumed.
    A model with a method `fit_restarts` computes all restarts together if it can, and if nothing follows iterations.
    """
    if n_init > 1 and checkpointer is None and callback in (None, silent):
        fits = model.fit_restarts(source, engine, rng, n_init, max_iter) if hasattr(model, "fit_restarts") else None
        if fits is not None:
            return _with_stats(first_lowest(fits, key), model, source, engine)
    with recovering(model, checkpointer) as recovery:
        before = recovery.saved
        best = None if before.best is None else Fit.restored(before.best)
        clock = Descents(n_init, max_iter, getattr(model, "converges", True))
        for run, child in enumerate(rng.spawn(n_init)):
            if run < before.run:
                continue
            saved = before.current if run == before.run else None
            descent = Descent(model, source, engine, run, accelerate)
            report = Report(callback, clock, run, is_resumed=saved is not None)
            result = recovery.last_of(descent.iterations(child, max_iter, saved, recovery), report, run, best)
            if result is None:  # interrupted before its first iteration
                break
            if best is None or is_lower(key(result), key(best)):
                best = result if n_init == 1 else replace(result, memos=None)
            if result.stopped:
                break
            recovery.finished(run, best)
        return _with_stats(recovery.check(best), model, source, engine)


class Report:
    """Calls the callback after each iteration of one restart; the first of a resumed one was reported before."""

    def __init__(self, callback: Callback | None, clock: Descents, run: int, is_resumed: bool) -> None:
        self.callback, self.clock, self.run, self.is_known = callback, clock, run, is_resumed

    def __call__(self, fit: Fit) -> bool:
        """Whether the callback stops the fit."""
        is_known, self.is_known = self.is_known, False
        if self.callback is None or self.callback is silent or is_known:
            return False
        iteration = len(fit.history) - 1
        left = self.clock.left(self.run, iteration, float(fit.objective))
        progress = Progress("iteration", iteration, None, left, self.run, fit.params, fit.objective, fit.stats)
        return bool(self.callback(progress))


class Descent:
    """The iterations of one restart."""

    def __init__(self, model: Model, source: Source, engine: Engine, run: int, accelerate: bool) -> None:
        self.model, self.source, self.engine, self.run = model, source, engine, run
        self.squarem = Squarem(model) if accelerate else None
        self.passes = 0

    def iterations(
        self,
        rng: np.random.Generator,
        max_iter: int,
        saved: DescentState | None = None,
        recovery: Recovery | None = None,
    ) -> Iterator[Fit]:
        """Yield the fit before the first M-step, or the saved one, and after each iteration."""
        fit = self.start(rng) if saved is None or recovery is None else self.resume(saved, recovery)
        while True:
            yield fit
            if fit.converged or fit.passes > max_iter:
                return
            fit = self.step(fit)

    def start(self, rng: np.random.Generator) -> Fit:
        params = self.model.init(self.source, self.engine, rng)
        stats, memos = self._pass(params, self.model.initial_memos(self.source))
        return self._fit(params, (self.model.objective(params, stats),), False, stats, memos)

    def step(self, fit: Fit) -> Fit:
        """One M-step and the E-step after it."""
        params, stats, memos = self._next(fit)
        history = (*fit.history, self.model.objective(params, stats))
        stretch = self.squarem.stretch if self.squarem else None
        converged = self.model.has_converged(fit.params, params, stats, history, stretch)
        return self._fit(params, history, converged, stats, memos)

    def _fit(self, params: Params, history: tuple[float, ...], converged: bool, stats: Any, memos: list[Memo]) -> Fit:
        acceleration = (tuple(self.squarem.trail), self.squarem.stretch) if self.squarem else ((), np.inf)
        return Fit(params, history[-1], history, converged, self.run, self.passes, False, stats, memos, *acceleration)

    def _next(self, fit: Fit) -> tuple[Params, Any, list[Memo]]:
        memos: Any = fit.memos
        for extrapolated in self.squarem.tries(fit.params, fit.stats) if self.squarem else ():
            params = self.model.m_step(fit.params, extrapolated)
            stats, memos = self._pass(params, memos)
            if self.model.objective(params, stats) <= fit.objective:
                return params, stats, memos
        estimated = self.model.m_step(fit.params, fit.stats)
        params = self.model.repair(estimated, fit.stats, self.source, self.engine, memos)
        if self.squarem and params is not estimated:
            self.squarem.reset()
        return params, *self._pass(params, memos)

    def _pass(self, params: Params, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        self.passes += 1
        return self.engine.scan(EStep(self.model.e_step, params), self.source, memos)

    def resume(self, saved: DescentState, recovery: Recovery) -> Fit:
        """The fit as it was when it was interrupted; the pass that restores its statistics does not count."""
        fit = Fit.restored(saved)
        stats, memos = self._pass(fit.params, self.model.initial_memos(self.source))
        self.passes = fit.passes
        if self.squarem:
            self.squarem.restore(list(saved.trail), saved.stretch, self.squarem.model.to_vector(fit.params, stats))
        recovery.restore_records((fit.params, stats, fit.objective))
        return self._fit(fit.params, fit.history, fit.converged, stats, memos)


def _with_stats(fit: Fit, model: Model, source: Source, engine: Engine) -> Fit:
    """The fit with its statistics, which are computed again if it was restored from a checkpoint."""
    if fit.stats is not None:
        return fit
    stats, _ = engine.scan(EStep(model.e_step, fit.params), source, model.initial_memos(source))
    return replace(fit, stats=stats)
