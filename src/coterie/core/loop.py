"""The only batch loop of the library."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from coterie import interrupts
from coterie.core.accelerate import Squarem
from coterie.core.checkpoint import Keeper, Reached, Runs
from coterie.core.clock import Descents
from coterie.core.errors import CheckpointError, FitInterruptedWarning
from coterie.core.protocols import Engine, Memo, Model, Params, Source


@dataclass(frozen=True)
class Progress:
    """What a callback is told after every iteration; returning True stops the fit."""

    run: int  # which restart, from 0
    iteration: int  # M-steps taken in this run
    params: Params
    objective: float  # at exactly these parameters
    stats: Any = None  # taken with these parameters
    left: float | None = None  # seconds that the fit will still take, about; None: there is too little to go by


Callback = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Fit:
    """Parameters, the objective at exactly these parameters, and the way there."""

    params: Params
    objective: float
    history: tuple[float, ...]  # the objective before the first M-step and after each
    converged: bool
    run: int = 0  # which start it came from
    passes: int = 1  # over the rows; more than steps where steps were tried in vain
    stopped: bool = False  # by the callback or the keyboard
    stats: Any = None  # of the last pass
    memos: list[Memo] | None = None  # of the last pass, while they are kept


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
    keeper: Keeper | None = None,
) -> Fit:
    """Best by `key` of `n_init` descents, each from its own start.

    Ctrl-C keeps the best so far with a `FitInterruptedWarning`, unless this fit is a step of a larger computation.

    With a `keeper` the state after an iteration is kept, and a fit that finds one goes on from there.
    """
    with interrupts.deferred(), interrupts.outermost() as keeps:
        last = None if keeper is None else keeper.last(model)
        best = None if last is None or last.best is None else _as_fit(last.best)
        clock = Descents(n_init, max_iter, getattr(model, "converges", True))
        for run, child in enumerate(rng.spawn(n_init)):
            if last is not None and run < last.run:
                continue
            descent = _Descent(model, source, engine, run, callback, accelerate, keeper, best, clock)
            try:
                found = descent.go(child, max_iter, n_init == 1, last if last and run == last.run else None)
            except KeyboardInterrupt:
                descent.keep(at_once=True)
                if not keeps or (best is None and descent.reached is None):
                    raise
                warnings.warn("interrupted: the best result so far is kept", FitInterruptedWarning, stacklevel=3)
                if descent.reached is None:
                    _leave(keeper)
                    break
                found = replace(descent.reached, stopped=True)
            except BaseException:
                descent.keep(at_once=True)
                raise
            if best is None or key(found) < key(best):
                best = found
            if found.stopped:
                descent.keep(at_once=True)
                _leave(keeper)
                break
            if keeper is not None:
                keeper.keep(partial(_runs, run + 1, None, best))
        if best is None:
            raise CheckpointError(
                "the checkpoint file holds neither a state nor a result: delete it to begin a new fit"
            )
        if best.stats is None:  # it ended before the fit was cut short
            best = replace(best, stats=engine.scan(partial(model.e_step, best.params), source, model.begin(source))[0])
        return best


def _leave(keeper: Keeper | None) -> None:
    if keeper is not None:
        keeper.store.leave()


def _runs(run: int, now: Fit | None, best: Fit | None, trail: tuple[Any, ...] = (), stretch: float = np.inf) -> Runs:
    """The state to keep: `run` is the one to go on with, and stands where `now` says."""
    reached = None if now is None else replace(_as_reached(now), trail=trail, stretch=stretch)
    return Runs(run, reached, None if best is None else _as_reached(best))


def _as_reached(found: Fit) -> Reached:
    return Reached(found.params, np.array(found.history), found.converged, found.run, found.passes)


def _as_fit(reached: Reached) -> Fit:
    history = tuple(reached.history.tolist())
    return Fit(reached.params, history[-1], history, reached.converged, reached.run, reached.passes)


class _Descent:
    """One run from one start, which knows how far it got when it is cut short."""

    def __init__(
        self,
        model: Model,
        source: Source,
        engine: Engine,
        run: int,
        callback: Callback | None,
        accelerate: bool = False,
        keeper: Keeper | None = None,
        best: Fit | None = None,  # of the runs before
        clock: Descents | None = None,
    ):
        self.model, self.source, self.engine = model, source, engine
        self.run, self.callback = run, callback
        self.squarem = Squarem(model) if accelerate else None
        self.passes = 0
        self.reached: Fit | None = None
        self.keeper = keeper
        self.state = None if best is None else partial(_runs, run, None, best)  # makes the last that is complete
        self.best, self.clock = best, clock or Descents(1, 1)

    def go(self, rng: np.random.Generator, max_iter: int, keep_memos: bool, last: Runs | None = None) -> Fit:
        if last is None or last.now is None:
            params = self.model.init(self.source, self.engine, rng)
            stats, memos = self._pass(params, self.model.begin(self.source))
            history, converged, known = [self.model.objective(params, stats)], False, False
        else:
            params, stats, memos, history, converged = self._again(last, last.now)
            known = True  # to the callback
        while True:
            self.reached = Fit(params, history[-1], tuple(history), converged, self.run, self.passes, stats=stats)
            stopped = not known and self._report(len(history) - 1, params, history[-1], stats)
            known = False
            self.keep()
            interrupts.check()
            if converged or stopped or self.passes > max_iter:
                return replace(self.reached, stopped=stopped, memos=memos if keep_memos else None)
            before = params
            params, stats, memos = self._step(params, stats, memos, history[-1])
            history.append(self.model.objective(params, stats))
            stretch = self.squarem.stretch if self.squarem else None
            converged = self.model.settled(before, params, stats, history, stretch)

    def _again(self, last: Runs, now: Reached) -> tuple[Params, Any, list[Memo], list[float], bool]:
        """Where the run was cut short; the pass that brings its statistics and memos back does not count."""
        stats, memos = self._pass(now.params, self.model.begin(self.source))
        self.passes = now.passes
        assert self.keeper is not None
        if self.squarem:
            self.squarem.go_on(list(now.trail), now.stretch, self.squarem.model.to_vector(now.params, stats))
        history = now.history.tolist()
        self.keeper.read_notes(last, (now.params, stats, history[-1]))
        return now.params, stats, memos, history, now.converged

    def _step(self, before: Params, stats: Any, memos: list[Memo], objective: float) -> tuple[Params, Any, list[Memo]]:
        """One M-step and the pass after it; from statistics further ahead, where that leads lower."""
        for ahead in self.squarem.tries(before, stats) if self.squarem else ():
            params = self.model.m_step(before, ahead)
            tried, memos = self._pass(params, memos)
            if self.model.objective(params, tried) <= objective:
                return params, tried, memos
        made = self.model.m_step(before, stats)
        params = self.model.repair(made, stats, self.source, self.engine, memos)
        if self.squarem and params is not made:
            self.squarem.forget()
        return params, *self._pass(params, memos)

    def _pass(self, params: Params, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        self.passes += 1
        return self.engine.scan(partial(self.model.e_step, params), self.source, memos)

    def keep(self, at_once: bool = False) -> None:
        """Keep the state, which is complete once the callback has been told of it; `at_once`, the last that was."""
        if self.keeper is None:
            return
        if not at_once:
            ahead = (tuple(self.squarem.trail), self.squarem.stretch) if self.squarem else ()
            self.state = partial(_runs, self.run, self.reached, self.best, *ahead)
        if self.state is not None:
            self.keeper.keep(self.state, at_once)

    def _report(self, iteration: int, params: Params, objective: float, stats: Any) -> bool:
        if self.callback is None:
            return False
        left = self.clock.left(self.run, iteration, float(objective))
        return bool(self.callback(Progress(self.run, iteration, params, objective, stats, left)))
