"""The Dask engine: a pass is one task for each worker, and only statistics are returned."""

import copy
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask

from coterie.core.packages import required
from coterie.core.placement import current_client
from coterie.core.protocols import Chunk, Memo, Source, Step
from coterie.core.stats import tree_sum
from coterie.engines.passes import ClusterEngine
from coterie.errors import ParameterError

TIMEOUT = "10s"  # for the connection to the scheduler


@dataclass(frozen=True)
class Dask(ClusterEngine):
    """The current Dask scheduler: a cluster if a client is open, else this process.

    On a cluster, each part is stored on one worker, and a pass sends one task to each worker, which returns sums of its
    parts. In this process, each part is a task of Dask, and is read again in each pass unless it is persisted.
    """

    def _new_placement(self, source: Source) -> Any:
        from coterie.engines.dask_placement import DaskPlacement

        return DaskPlacement(current_client(), source)

    def place(self, source: Source) -> Any:
        return None if current_client() is None else super().place(source)

    def sum(self, step: Step, source: Source) -> Any:
        if current_client() is not None:
            return super().sum(step, source)
        return dask.compute(tree_sum(self._tasks(step, source), _add))[0]

    def scan(self, step: Step, source: Source, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        if current_client() is not None:
            return super().scan(step, source, memos)
        pairs = dask.persist(*self._tasks(step, source, memos or [None] * len(source.parts())))
        stats = dask.compute(tree_sum([pair[0] for pair in pairs], _add))[0]
        return stats, [pair[1] for pair in pairs]

    def map(self, step: Step, source: Source, memos: list[Memo] | None = None) -> list[Any]:
        """The results as delayed values; on a cluster they are computed now, and stay on the workers."""
        if current_client() is None:
            return self._tasks(step, source, memos)
        return super().map(step, source, memos)

    def _tasks(self, step: Step, source: Source, memos: list[Memo] | None = None) -> list[Any]:
        shared = dask.delayed(step, traverse=False)  # one task, so that each worker receives the parameters once
        run = dask.delayed(_run, pure=False)
        if memos is None:
            return [run(shared, part) for part in source.parts()]
        return [run(shared, part, memo) for part, memo in zip(source.parts(), memos, strict=True)]


@contextmanager
def connected(address: str) -> Iterator[int]:
    """Context in which Dask uses the cluster at `address`, with its number of workers.

    Without an address, Dask uses the threads of this process, and the number is 0.
    """
    if not address:
        yield 0
        return
    with required('a Dask cluster requires the package distributed: pip install "coterie[dask]"'):
        from distributed import Client
    try:
        client = Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TypeError) as error:
        raise ParameterError(
            f"could not connect to a Dask scheduler at {address}: {error or type(error).__name__}. "
            "Check the address, and that the scheduler is running"
        ) from error
    with client:
        n_workers = len(client.nthreads())
        if not n_workers:
            raise ParameterError(f"the cluster at {address} has no workers: start some with `dask worker {address}`")
        yield n_workers


_add = dask.delayed(operator.add, pure=True)


def _run(step: Step, part: Any, *memo: Memo) -> Any:
    chunk = part if isinstance(part, Chunk) else part()
    return step(chunk, *copy.deepcopy(memo))  # a step modifies its memo, and Dask may run it again
