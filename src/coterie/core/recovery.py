"""Recovery of interrupted fits: return the best result so far, save the state, and resume from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from coterie import interrupts
from coterie.core.checkpoint import Checkpointer, DescentState, RestartsState
from coterie.core.protocols import Model, Params
from coterie.errors import CheckpointError

if TYPE_CHECKING:
    from coterie.core.loop import Fit

NOTHING = RestartsState(0, None, None)  # the state before the first iteration


@contextmanager
def recovering(model: Model, checkpointer: Checkpointer | None) -> Iterator[Recovery]:
    """Context in which a batch loop runs: Ctrl-C is deferred, and the saved state is loaded."""
    with interrupts.deferred(), interrupts.outermost() as is_outermost:
        yield Recovery(checkpointer, (checkpointer and checkpointer.load(model)) or NOTHING, is_outermost)


@dataclass(frozen=True)
class Recovery:
    """Saves the state of the batch loop, restores it, and handles Ctrl-C."""

    checkpointer: Checkpointer | None
    saved: RestartsState
    is_outermost: bool

    def restore_records(self, last: tuple[Params, Any, float]) -> None:
        """Restore the records of the history recorder."""
        assert self.checkpointer is not None
        self.checkpointer.restore_records(self.saved, last)

    def last_of(
        self, iterations: Iterator[Fit], report: Callable[[Fit], bool], run: int, best: Fit | None
    ) -> Fit | None:
        """The fit after the last iteration of a restart; `best` is the best result of earlier restarts.

        `report` is called after every iteration, and returns whether to stop. Then the state is saved: about once a
        second, and in any case if an exception ends the restart. After Ctrl-C the fit of the last iteration is
        returned, or None if this restart has none but an earlier one has a result.
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
            interrupts.keep_result(error, self.is_outermost, has_result=best is not None or last is not None)
            self._stop_writing()
            # The interrupted pass may have changed some of the memos in place.
            return None if last is None else replace(last, stopped=True, memos=None)
        self._save(run, reported, best, at_once=True)
        self._stop_writing()
        return replace(last, stopped=True)

    def finished(self, run: int, best: Fit) -> None:
        """Save the state after a completed restart."""
        self._save(run + 1, None, best)

    def check(self, best: Fit | None) -> Fit:
        """Return the result; raise `CheckpointError` if the checkpoint has none."""
        if best is None:
            raise CheckpointError(
                "the checkpoint file contains neither a state nor a result: delete it to start a new fit"
            )
        return best

    def _save(self, run: int, current: Fit | None, best: Fit | None, at_once: bool = False) -> None:
        if self.checkpointer is not None:
            self.checkpointer.save(partial(_state, run, current, best), at_once)

    def _stop_writing(self) -> None:
        if self.checkpointer is not None:
            self.checkpointer.store.stop_writing()


def _state(run: int, current: Fit | None, best: Fit | None) -> RestartsState:
    states = (None if fit is None else DescentState.of(fit) for fit in (current, best))
    return RestartsState(run, *states)
