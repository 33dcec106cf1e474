"""What long work tells its caller, and when it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from coterie.core.errors import ParameterError


@dataclass(frozen=True)
class Progress:
    """How far the work is; a callback that returns True ends it, and what there is by then is kept."""

    done: int  # pieces of work
    total: int
    what: str  # the last piece done


Callback = Callable[[Progress], bool | None]


def check_callback(progress: Any) -> Callback | None:
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be None or a function of one argument; got {progress!r}")
    found: Callback | None = progress
    return found


def watched(results: Iterable[Any], names: list[str], progress: Callback | None) -> Iterator[Any]:
    """The results, one for each of `names`, as they come; none after the one at which `progress` says stop."""
    for done, (name, result) in enumerate(zip(names, results, strict=False), start=1):
        yield result
        if progress is not None and progress(Progress(done, len(names), name)):
            return
