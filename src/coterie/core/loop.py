"""The only batch loop of the library."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie.core.errors import FitInterruptedWarning
from coterie.core.protocols import Engine, Memo, Model, Params, Source


@dataclass(frozen=True)
class Progress:
    """What a callback is told after every iteration; returning True stops the fit."""

    run: int  # which restart, from 0
    iteration: int  # M-steps taken in this run
    params: Params
    objective: float  # at exactly these parameters


Callback = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Fit:
    """Parameters, the objective at exactly these parameters, and the way there."""

    params: Params
    objective: float
    history: tuple[float, ...]  # the objective before the first M-step and after each
    converged: bool
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
) -> Fit:
    """Best of `n_init` descents, each from its own start; Ctrl-C keeps the best so far."""
    best: Fit | None = None
    for run, child in enumerate(rng.spawn(n_init)):
        descent = _Descent(model, source, engine, run, callback)
        try:
            found = descent.go(child, max_iter, keep_memos=n_init == 1)
        except KeyboardInterrupt:
            if best is None and descent.reached is None:
                raise
            warnings.warn("interrupted: the best result so far is kept", FitInterruptedWarning, stacklevel=3)
            if descent.reached is None:
                break
            found = replace(descent.reached, stopped=True)
        if best is None or found.objective < best.objective:
            best = found
        if found.stopped:
            break
    assert best is not None
    return best


class _Descent:
    """One run from one start, which knows how far it got when it is cut short."""

    def __init__(self, model: Model, source: Source, engine: Engine, run: int, callback: Callback | None):
        self.model, self.source, self.engine = model, source, engine
        self.run, self.callback = run, callback
        self.reached: Fit | None = None

    def go(self, rng: np.random.Generator, max_iter: int, keep_memos: bool) -> Fit:
        params = self.model.init(self.source, self.engine, rng)
        stats, memos = self._pass(params, self.model.begin(self.source))
        history = [self.model.objective(stats)]
        converged = False
        while True:
            self.reached = Fit(params, history[-1], tuple(history), converged, stats=stats)
            stopped = self._report(len(history) - 1, params, history[-1])
            if converged or stopped or len(history) > max_iter:
                return replace(self.reached, stopped=stopped, memos=memos if keep_memos else None)
            before = params
            params = self.model.m_step(params, stats)
            params = self.model.repair(params, stats, self.source, self.engine, memos)
            stats, memos = self._pass(params, memos)
            history.append(self.model.objective(stats))
            converged = self.model.settled(before, params, stats)

    def _pass(self, params: Params, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        return self.engine.scan(partial(self.model.e_step, params), self.source, memos)

    def _report(self, iteration: int, params: Params, objective: float) -> bool:
        if self.callback is None:
            return False
        return bool(self.callback(Progress(self.run, iteration, params, objective)))
