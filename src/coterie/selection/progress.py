"""What long work tells its caller, and when it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.core.clock import Clock
from coterie.core.errors import ParameterError


@dataclass(frozen=True)
class Progress:
    """How far the work is; a callback that returns True ends it, and what there is by then is kept."""

    done: int  # pieces of work
    total: int
    what: str  # the last piece done
    left: float | None = None  # seconds that the rest will take, about; None: there is too little to go by


Callback = Callable[[Progress], bool | None]


def check_callback(progress: Any) -> Callback | None:
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be None or a function of one argument; got {progress!r}")
    found: Callback | None = progress
    return found


def watched(
    results: Iterable[Any], names: list[str], progress: Callback | None, costs: Sequence[float] | None = None
) -> Iterator[Any]:
    """The results, one for each of `names`, as they come; none after the one at which `progress` says stop.

    `costs` say how long each takes in comparison with the others, where that is known.
    """
    clock, spent = Clock(), 0.0
    costs = [1.0] * len(names) if costs is None else costs
    for done, (name, result, cost) in enumerate(zip(names, results, costs, strict=False), start=1):
        yield result
        spent += cost
        left = clock.left(spent / sum(costs) if done < len(names) else 1.0)
        if progress is not None and progress(Progress(done, len(names), name, left)):
            return
