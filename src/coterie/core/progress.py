"""The argument of all callbacks, and a helper that calls them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coterie.core.clock import Clock
from coterie.errors import ParameterError


@dataclass(frozen=True)
class Progress:
    """Progress of a computation. If a callback returns True, the computation stops with what is complete by then."""

    step: str  # the unit of work ("iteration"), the one completed last ("K = 3"), or the stage ("reading x.csv")
    done: int = 0  # units completed
    total: int | None = None  # all units; None: unknown
    left: float | None = field(default=None, compare=False)  # estimated seconds left; None: too early to estimate
    run: int = 0  # number of the restart, from 0
    params: Any = field(default=None, compare=False)  # parameters of the model after this iteration
    objective: Any = None  # at exactly these parameters
    # Sufficient statistics computed with these parameters; the result of a criterion, if one was evaluated
    stats: Any = field(default=None, compare=False)

    @property
    def iteration(self) -> int:
        """Iterations of this restart."""
        return self.done


Callback = Callable[[Progress], bool | None]


def silent(progress: Progress) -> None:
    """Ignore progress."""


def check_callback(callback: Any) -> Callback | None:
    """Return the callback; raise `ParameterError` if it is not callable."""
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback must be None or a function of one argument; got {callback!r}")
    checked: Callback | None = callback
    return checked


def report_to(callback: Callback | None, unit: str, total: int) -> Callable[[int], None]:
    """A function that reports the units done; where a part is no result, a callback ends the work as Ctrl-C does."""

    def report(done: int) -> None:
        if callback is not None and callback(Progress(unit, done, total)):
            raise KeyboardInterrupt(f"the callback returned True after {done} of {total} {unit}s")

    return report


def reported(
    results: Iterable[Any], steps: list[str], callback: Callback | None, costs: Sequence[float] | None = None
) -> Iterator[Any]:
    """Yield the results of `steps`, whose relative durations are `costs`, until the callback returns True."""
    clock, spent = Clock(), 0.0
    costs = [1.0] * len(steps) if costs is None else costs
    for done, (step, result, cost) in enumerate(zip(steps, results, costs, strict=False), start=1):
        yield result
        spent += cost
        left = clock.left(spent / sum(costs) if done < len(steps) else 1.0)
        if callback is not None and callback(Progress(step, done, len(steps), left)):
            return
