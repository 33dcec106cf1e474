"""What happens to a fit that is interrupted: its best result is returned, and its state saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from coterie import interrupts
from coterie.core.checkpoint import Keeper, Reached, Runs
from coterie.core.errors import CheckpointError, FitInterruptedWarning
from coterie.core.protocols import Model, Params

if TYPE_CHECKING:
    from coterie.core.loop import Fit


class Recovery:
    """Saves the state of the batch loop, restores it, and handles Ctrl-C."""

    def __init__(self, model: Model, keeper: Keeper | None) -> None:
        self.model, self.keeper, self.stack = model, keeper, ExitStack()
        self.saved: Runs | None = None

    def __enter__(self) -> Self:
        self.stack.enter_context(interrupts.deferred())
        self.is_outermost = self.stack.enter_context(interrupts.outermost())
        with ExitStack() as on_error:
            on_error.push(self.stack)
            self.saved = None if self.keeper is None else self.keeper.last(self.model)
            on_error.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> Any:
        return self.stack.__exit__(kind, error, at)

    # the saved state

    @property
    def best(self) -> Reached | None:
        """The best result of the restarts that had ended."""
        return None if self.saved is None else self.saved.best

    @property
    def first_run(self) -> int:
        """The restart to begin with."""
        return 0 if self.saved is None else self.saved.run

    def descent_of(self, run: int) -> Reached | None:
        """The state in which this restart was interrupted; None if it had not begun."""
        return self.saved.now if self.saved is not None and run == self.saved.run else None

    def read_notes(self, last: tuple[Params, Any, float]) -> None:
        """Restore the history that a recorder of iterations had written."""
        assert self.keeper is not None
        assert self.saved is not None
        self.keeper.read_notes(self.saved, last)

    # during the fit

    def last_of(
        self, iterations: Iterator[Fit], report: Callable[[Fit], bool], run: int, best: Fit | None
    ) -> Fit | None:
        """The last fit of a descent; `best` is that of the restarts before.

        `report` is called after every iteration, and returns whether to stop. Then the state is saved: about once a
        second, and in any case if an exception ends the descent. After Ctrl-C the last iteration is returned; None if
        there is none but an earlier restart has a result.
        """
        last: Fit | None = None
        reported: Fit | None = None
        try:
            for last in iterations:
                is_stopped = report(last)
                reported = last
                self._save(run, reported, best)
                interrupts.check()
                if is_stopped:
                    break
            else:
                return last
        except BaseException as error:
            if reported is not None or best is not None:
                self._save(run, reported, best, at_once=True)
            if not isinstance(error, KeyboardInterrupt) or not self.is_outermost or (best is None and last is None):
                raise
            warnings.warn("interrupted: the best result so far is kept", FitInterruptedWarning, stacklevel=4)
            self._leave()
            return None if last is None else replace(last, stopped=True)
        self._save(run, reported, best, at_once=True)
        self._leave()
        return replace(last, stopped=True)

    def finished(self, run: int, best: Fit) -> None:
        """Save that a restart has ended."""
        self._save(run + 1, None, best)

    def check(self, best: Fit | None) -> Fit:
        """The result; a checkpoint without any is an error."""
        if best is None:
            raise CheckpointError(
                "the checkpoint file holds neither a state nor a result: delete it to begin a new fit"
            )
        return best

    def _save(self, run: int, now: Fit | None, best: Fit | None, at_once: bool = False) -> None:
        if self.keeper is not None:
            make = partial(_state, run, now, best)
            self.keeper.keep(make, at_once)

    def _leave(self) -> None:
        if self.keeper is not None:
            self.keeper.store.leave()


def _state(run: int, now: Fit | None, best: Fit | None) -> Runs:
    return Runs(run, None if now is None else Reached.of(now), None if best is None else Reached.of(best))
