"""The Dask engine: steps are sent to the workers that hold the rows, and only statistics are returned."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask

from coterie.core.protocols import Chunk, Memo, Source, Step
from coterie.core.stats import tree_sum
from coterie.errors import ParameterError

TIMEOUT = "10s"  # for the connection to the scheduler


@dataclass(frozen=True)
class Dask:
    """The current Dask scheduler: a cluster if a client is open, else this process.

    Each pass sends the step to all parts, adds the statistics in a tree on the workers, and fetches one result.
    """

    def sum(self, step: Step, source: Source) -> Any:
        return dask.compute(tree_sum(self.map(step, source), _add))[0]

    def scan(self, step: Step, source: Source, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        pairs = dask.persist(*self.map(step, source, memos or [None] * len(source.parts())))
        stats = dask.compute(tree_sum([pair[0] for pair in pairs], _add))[0]
        return stats, [pair[1] for pair in pairs]

    def map(self, step: Step, source: Source, memos: list[Memo] | None = None) -> list[Any]:
        shared = dask.delayed(step, traverse=False)  # one task, so that each worker receives the parameters once
        run = dask.delayed(_run, pure=False)
        if memos is None:
            return [run(shared, part) for part in source.parts()]
        return [run(shared, part, memo) for part, memo in zip(source.parts(), memos, strict=True)]


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Context in which Dask uses the cluster at `address`; without an address, the threads of this process."""
    if not address:
        yield
        return
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise ParameterError('a Dask cluster requires the package distributed: pip install "coterie[dask]"') from error
    try:
        client = Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TypeError) as error:
        raise ParameterError(
            f"could not connect to a Dask scheduler at {address}: {error or type(error).__name__}. "
            "Check the address, and that the scheduler is running"
        ) from error
    with client:
        yield


_add = dask.delayed(operator.add, pure=True)


def _run(step: Step, part: Any, *memo: Memo) -> Any:
    chunk = part if isinstance(part, Chunk) else part()
    return step(chunk, *copy.deepcopy(memo))  # a step modifies its memo, and Dask may run it again
