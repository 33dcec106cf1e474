"""The only batch loop of the library."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from coterie.core.accelerate import Squarem
from coterie.core.errors import FitInterruptedWarning, plain_interrupts
from coterie.core.protocols import Engine, Memo, Model, Params, Source


@dataclass(frozen=True)
class Progress:
    """What a callback is told after every iteration; returning True stops the fit."""

    run: int  # which restart, from 0
    iteration: int  # M-steps taken in this run
    params: Params
    objective: float  # at exactly these parameters
    stats: Any = None  # taken with these parameters


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
) -> Fit:
    """Best by `key` of `n_init` descents, each from its own start; Ctrl-C keeps the best so far."""
    best: Fit | None = None
    for run, child in enumerate(rng.spawn(n_init)):
        descent = _Descent(model, source, engine, run, callback, accelerate)
        try:
            with plain_interrupts():
                found = descent.go(child, max_iter, keep_memos=n_init == 1)
        except KeyboardInterrupt:
            if best is None and descent.reached is None:
                raise
            warnings.warn("interrupted: the best result so far is kept", FitInterruptedWarning, stacklevel=3)
            if descent.reached is None:
                break
            found = replace(descent.reached, stopped=True)
        if best is None or key(found) < key(best):
            best = found
        if found.stopped:
            break
    assert best is not None
    return best


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
    ):
        self.model, self.source, self.engine = model, source, engine
        self.run, self.callback = run, callback
        self.squarem = Squarem(model) if accelerate else None
        self.passes = 0
        self.reached: Fit | None = None

    def go(self, rng: np.random.Generator, max_iter: int, keep_memos: bool) -> Fit:
        params = self.model.init(self.source, self.engine, rng)
        stats, memos = self._pass(params, self.model.begin(self.source))
        history = [self.model.objective(params, stats)]
        converged = False
        while True:
            self.reached = Fit(params, history[-1], tuple(history), converged, self.run, self.passes, stats=stats)
            stopped = self._report(len(history) - 1, params, history[-1], stats)
            if converged or stopped or self.passes > max_iter:
                return replace(self.reached, stopped=stopped, memos=memos if keep_memos else None)
            before = params
            params, stats, memos = self._step(params, stats, memos, history[-1])
            history.append(self.model.objective(params, stats))
            stretch = self.squarem.stretch if self.squarem else None
            converged = self.model.settled(before, params, stats, history, stretch)

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

    def _report(self, iteration: int, params: Params, objective: float, stats: Any) -> bool:
        if self.callback is None:
            return False
        return bool(self.callback(Progress(self.run, iteration, params, objective, stats)))
