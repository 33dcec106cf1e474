"""States of an unfinished fit, and the interface of their storage."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from coterie.core.protocols import Model, Params
from coterie.core.stored import stored
from coterie.errors import CheckpointError


@stored("checkpoint.Descent", in_checkpoints=True, history="real *", trail="tuple", run="count", passes="count")
@dataclass(frozen=True)
class DescentState:
    """The state of one restart. Statistics and memos are not stored: one pass over the rows computes them again."""

    params: Params
    history: Any  # (iterations + 1,) objectives
    converged: bool
    run: int  # number of the restart
    passes: int  # over the rows
    trail: tuple[Any, ...] = ()  # of the acceleration: statistics as vectors
    stretch: float = np.inf  # of the acceleration: estimated number of plain steps left

    @classmethod
    def of(cls, fit: Any) -> "DescentState":
        """The state of a `coterie.core.loop.Fit`."""
        return cls(fit.params, np.array(fit.history), fit.converged, fit.run, fit.passes, fit.trail, fit.stretch)


@stored(
    "checkpoint.Restarts",
    in_checkpoints=True,
    run="count",
    current="none | <checkpoint.Descent>",
    best="none | <checkpoint.Descent>",
    records="none | dict",
)
@dataclass(frozen=True)
class RestartsState:
    """The state of a fit with several restarts."""

    run: int  # number of the restart to resume
    current: DescentState | None  # its state; None: it has not begun
    best: DescentState | None  # the best of the completed restarts
    records: Any = None  # of the history recorder


@stored(
    "checkpoint.Batches",
    in_checkpoints=True,
    params="real K D",
    seen="<statistics.KMeans>",
    history="real *",
    rng="generator",
)
@dataclass(frozen=True)
class MiniBatchState:
    """The state of a fit by mini-batches."""

    params: Params
    seen: Any  # statistics of all rows so far
    history: Any  # (batches,) costs
    rng: np.random.Generator
    stopping: tuple[Any, ...]  # the state of the stopping rule


@stored(
    "checkpoint.Search",
    in_checkpoints=True,
    params="real s 2 K D",
    objective="real s",
    defects="integer s",
    hits="integer s",
    failures="count",
    rng="generator",
)
@dataclass(frozen=True)
class SearchState:
    """The state of a search for centers between two jumps."""

    params: Any  # of the solutions, as the other arrays; see `coterie.core.search.Pool`
    objective: Any
    defects: Any
    hits: Any
    failures: int  # jumps since the last gain
    allowed: float  # work
    work: float  # multiply-adds so far
    seconds: float  # so far
    rng: np.random.Generator


class Store(Protocol):
    """Storage of the states of a fit, each under a name."""

    def read(self, name: str, model: Model) -> Any:
        """The state with this name, checked against the model; None if there is none."""

    def write(self, name: str, make: Callable[[], Any], at_once: bool = False) -> None:
        """Store the state that `make` returns, if the last one was stored long enough ago, or if `at_once`."""

    def initial_rng(self, rng: np.random.Generator) -> np.random.Generator:
        """The random generator that the fit began with: `rng`, or that of the fit that is resumed."""

    def stop_writing(self) -> None:
        """Leave the stored states as they are, because the fit was interrupted."""

    def remove(self) -> None:
        """Delete all states, because the fit is complete."""


class HistoryRecorder(Protocol):
    """A callback that records the history of a fit, and can save and restore its records."""

    def records_until(self, run: int, iteration: int) -> Any:
        """The records of all earlier restarts, and of restart `run` up to `iteration`, as plain data."""

    def restore(self, records: Any, last: tuple[Params, Any, float] | None) -> None:
        """Continue after these records; `last` has parameters, statistics and objective of the last iteration."""


class Checkpointer:
    """Saves the states of the batch loop in a store, and restores them."""

    def __init__(self, store: Store, name: str = "starts", recorder: HistoryRecorder | None = None) -> None:
        self.store, self.name, self.recorder = store, name, recorder

    def load(self, model: Model) -> RestartsState | None:
        """The state to resume from; None if there is none."""
        state: RestartsState | None = self.store.read(self.name, model)
        if state is not None and state.current is None:
            self.restore_records(state, None)
        return state

    def save(self, make: Callable[[], RestartsState], at_once: bool = False) -> None:
        """Store the state that `make` returns, if the last one was stored long enough ago, or if `at_once`."""
        self.store.write(self.name, lambda: self._with_records(make()), at_once)

    def _with_records(self, state: RestartsState) -> RestartsState:
        if self.recorder is None:
            return state
        iteration = -1 if state.current is None else len(state.current.history) - 1
        return replace(state, records=self.recorder.records_until(state.run, iteration))

    def restore_records(self, state: RestartsState, last: tuple[Params, Any, float] | None) -> None:
        """Give the saved records back to the recorder; `last` is described in `HistoryRecorder.restore`."""
        if self.recorder is not None:
            try:
                self.recorder.restore(state.records, last)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise CheckpointError(
                    f"the history in the checkpoint is malformed ({error}): delete the file to start a new fit"
                ) from None
