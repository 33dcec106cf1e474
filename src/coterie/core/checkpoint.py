"""What a fit writes down, so that another one can go on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from coterie.core.errors import CheckpointError
from coterie.core.protocols import Model, Params
from coterie.core.stored import stored


@stored("checkpoint.Descent", in_checkpoints=True, history="real *", trail="tuple", run="count", passes="count")
@dataclass(frozen=True)
class Reached:
    """Where one descent stands. Statistics and memos are not kept: a pass over the rows brings them back."""

    params: Params
    history: Any  # (steps + 1,) objectives
    converged: bool
    run: int
    passes: int
    trail: tuple[Any, ...] = ()  # of the acceleration: statistics as vectors
    stretch: float = np.inf

    @classmethod
    def of(cls, fit: Any) -> Reached:
        """The state of a `coterie.core.loop.Fit`."""
        return cls(fit.params, np.array(fit.history), fit.converged, fit.run, fit.passes, fit.trail, fit.stretch)


@stored(
    "checkpoint.Restarts",
    in_checkpoints=True,
    run="count",
    now="none | <checkpoint.Descent>",
    best="none | <checkpoint.Descent>",
    notes="none | dict",
)
@dataclass(frozen=True)
class Runs:
    """Where a fit of several starts stands."""

    run: int  # the one to go on with
    now: Reached | None  # how far it has come; None: it has not begun
    best: Reached | None  # of those that ended
    notes: Any = None  # of who writes the history


@stored(
    "checkpoint.Batches",
    in_checkpoints=True,
    params="real K D",
    seen="<statistics.KMeans>",
    history="real *",
    chance="generator",
)
@dataclass(frozen=True)
class Batches:
    """Where a fit by mini-batches stands."""

    params: Params
    seen: Any  # statistics of all rows so far
    history: Any  # (batches,) costs
    chance: np.random.Generator
    stopping: tuple[Any, ...]  # what the rule that ends it remembers


class Store(Protocol):
    """Where states are kept, each under a name of its own."""

    def read(self, name: str, model: Model) -> Any:
        """The state of that name, which must be one of that model; None if there is none."""

    def write(self, name: str, make: Callable[[], Any], at_once: bool = False) -> None:
        """Keep the state that `make` makes, if it is time for that, or `at_once`."""

    def chance(self, rng: np.random.Generator) -> np.random.Generator:
        """The chance that the fit began with: `rng`, or that of the fit which is gone on with."""

    def leave(self) -> None:
        """The fit is cut short: what is kept stays as it is, whatever it does before it ends."""

    def remove(self) -> None:
        """The fit has ended: nothing is kept any longer."""


class Notes(Protocol):
    """Who writes the history of a fit, and can go on with what was written before."""

    def written(self, run: int, iteration: int) -> Any:
        """What was written before that run, and of it up to that iteration, as plain data."""

    def go_on(self, written: Any, last: tuple[Params, Any, float] | None) -> None:
        """Go on after that; `last` are the parameters, statistics and objective of the iteration it ends with."""


class Keeper:
    """Takes the states of the batch loop to a store, and back."""

    def __init__(self, store: Store, name: str = "starts", notes: Notes | None = None) -> None:
        self.store, self.name, self.notes = store, name, notes

    def last(self, model: Model) -> Runs | None:
        """The state to go on from; None: start."""
        found: Runs | None = self.store.read(self.name, model)
        if found is not None and found.now is None:
            self.read_notes(found, None)
        return found

    def keep(self, make: Callable[[], Runs], at_once: bool = False) -> None:
        """Keep the state that `make` makes, if it is time for that, or `at_once`."""
        self.store.write(self.name, lambda: self._with_notes(make()), at_once)

    def _with_notes(self, state: Runs) -> Runs:
        if self.notes is None:
            return state
        iteration = -1 if state.now is None else len(state.now.history) - 1
        return replace(state, notes=self.notes.written(state.run, iteration))

    def read_notes(self, state: Runs, last: tuple[Params, Any, float] | None) -> None:
        if self.notes is not None:
            try:
                self.notes.go_on(state.notes, last)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise CheckpointError(
                    f"the history in the checkpoint is malformed ({error}): delete the file to start anew"
                ) from None
