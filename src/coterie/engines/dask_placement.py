"""The parts of a source on the workers of a Dask cluster.

Blocks of rows are results of Dask tasks, so Dask accounts for their memory, writes them to disk if memory is short,
computes them again if their worker ends, and frees them when the client releases them or disconnects. What passes need
beside the rows (`HeldParts`, with memos) is the result of one more task for each worker, and is freed in the same way.
"""

import asyncio
import concurrent.futures
import itertools
import pickle
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, get_worker
from distributed.comm import CommClosedError
from distributed.protocol.pickle import dumps

from coterie import interrupts
from coterie.core.in_memory import is_in_memory
from coterie.core.placement import choose_workers
from coterie.core.protocols import Chunk, Source
from coterie.engines.passes import HeldParts, Ledger, Order, Reply, values_in_order
from coterie.errors import ClusterError

POLL = 0.2  # seconds between two checks that all workers are alive
MAX_PAUSE = 0.005  # seconds between two checks for results, and for Ctrl-C
PATIENCE = 60.0  # seconds to wait for a worker if none is left
LARGE = 1 << 22  # bytes of parameters for all workers, above which workers receive them from each other
RESUME = "fit again; with `checkpoint` the fit resumes from its last iteration"


class DaskPlacement:
    """The parts of one source, and the workers that hold them."""

    def __init__(self, client: Client, source: Source) -> None:
        self.client, self.ledger = client, Ledger()
        self.source = weakref.ref(source)  # a reference would keep the source, and so this placement, for ever
        self.is_local = is_in_memory(source)
        self.is_lazy = hasattr(source, "chunk_futures")
        self.restricted: set[Any] = set()  # keys of tasks that may run on one worker only
        self.chunks: list[Future] = self._sent(source)
        self.n_parts = len(self.chunks)
        self.held: dict[str, tuple[Future, list[int]]] = {}  # by worker: its HeldParts, and their numbers
        self.tasks: dict[str, Future] = {}  # the last task of each worker
        self._hold(list(range(self.n_parts)))

    # the interface of Placement

    def holders(self) -> dict[str, list[int]]:
        return {name: parts for name, (_, parts) in self.held.items()}

    def ask(self, order: Order, parts: dict[str, list[int]]) -> dict[str, Reply | None]:
        """One task for each worker. Results of rows stay on the workers if the rows are lazy: replies are without."""
        payload: Any = dumps(order)
        if len(payload) * len(parts) > LARGE:
            payload = self.client.submit(_same, payload, pure=False)
        self.tasks = {
            name: self._submit(name, _run, self.held[name][0], payload, self._selection(name, parts[name]))
            for name in parts
            if name in self.held
        }
        answers, stays_there = self.tasks, order.returns_rows and self.is_lazy
        if stays_there:
            answers = {name: self._submit(name, _without_values, task) for name, task in self.tasks.items()}
        try:
            done = self._gather(answers)
        except BaseException:
            self.client.cancel([*self.tasks.values(), *answers.values()], force=True)
            raise
        if stays_there:  # if its worker ends, the task fails on another one instead of waiting for this one
            self.restricted |= {self.tasks[name].key for name in done}
            self._lift_restrictions()
        return {name: done.get(name) for name in parts}

    def recover(self, parts: list[int]) -> dict[str, list[int]]:
        """Wait until Dask has computed the lost blocks again, and continue with the workers that hold them."""
        alive = live_workers(self.client)
        for name in [name for name in self.held if name not in alive]:
            del self.held[name]
        if self.is_local:  # Dask cannot compute rows again that were sent from here
            source = self.source()
            assert source is not None
            loaders = source.parts()
            for part, name in zip(parts, itertools.cycle(alive), strict=False):
                self.chunks[part] = self._scattered(loaders[part], [name])
        return self._hold(parts)

    # workers

    def _sent(self, source: Source) -> list[Future]:
        """The chunk of each part as a future; rows in files are read by the worker that will hold them."""
        workers = live_workers(self.client)
        if self.is_lazy:
            lazy: Any = source
            return list(lazy.chunk_futures(self.client, workers))
        parts = source.parts()
        sizes = [getattr(part, "rows", 1) for part in parts]
        names = choose_workers(sizes, workers, [None] * len(parts))
        if self.is_local:
            return [self._scattered(part, [name]) for part, name in zip(parts, names, strict=True)]
        futures = [
            self.client.submit(_load, part, workers=[name], allow_other_workers=True, pure=False)
            for part, name in zip(parts, names, strict=True)
        ]
        self.restricted |= {future.key for future in futures}
        return futures

    def _scattered(self, part: Callable[[], Chunk], workers: list[str]) -> Future:
        return self.client.scatter([part()], workers=workers, hash=False)[0]

    def _hold(self, parts: list[int]) -> dict[str, list[int]]:
        """Create the state of passes on the workers that hold these parts, and return the parts by worker."""
        new: dict[str, list[int]] = {}
        for part, name in zip(parts, self._workers_of([self.chunks[part] for part in parts]), strict=True):
            new.setdefault(name, []).append(part)
        for name, mine in new.items():
            keys = pickle.dumps({part: self.chunks[part].key for part in mine})
            before, known = self.held.get(name, (None, []))
            self.held[name] = self._submit(name, _hold_parts, keys, before), sorted({*known, *mine})
        return new

    def _workers_of(self, chunks: list[Future]) -> list[str]:
        """The worker that holds each chunk, when all are computed."""
        while True:
            self._wait_for_chunks(chunks)
            self._lift_restrictions()
            who_has = self.client.who_has(chunks)
            names = [next(iter(who_has.get(chunk.key, ())), "") for chunk in chunks]
            if all(names):  # else a worker has ended in the meantime
                return names

    def _selection(self, name: str, parts: list[int]) -> list[int] | None:
        return None if parts == self.held[name][1] else parts

    def _submit(self, name: str, function: Any, *args: Any) -> Future:
        return self.client.submit(function, *args, workers=[name], allow_other_workers=False, pure=False)

    def _lift_restrictions(self) -> None:
        """Let tasks run on any worker if their results are lost: if none was left, they would wait for the old one."""
        source: Any = self.source()
        if self.is_lazy and source is not None:
            self.restricted |= source.restricted_tasks()
        keys, self.restricted = self.restricted, set()
        if keys:
            self.client.sync(_lift_restrictions, self.client.scheduler, keys)

    def _gather(self, futures: dict[str, Future]) -> dict[str, Any]:
        """The results of tasks by worker; without those of workers that ended before their result was here."""
        while futures:
            results = self.client._gather(list(futures.values()))
            call = asyncio.run_coroutine_threadsafe(results, self.client.loop.asyncio_loop)
            try:
                if self._is_here(call, set(futures)):
                    return dict(zip(futures, call.result(), strict=True))
            except (CancelledError, CommClosedError, OSError) as error:
                raise _disconnected(self.client) from error
            finally:
                call.cancel()
            alive = live_workers(self.client)
            futures = {name: future for name, future in futures.items() if name in alive}
        return {}

    def _is_here(self, call: Any, names: set[str]) -> bool:
        """Wait until results are here; or until one of the workers has ended, whose result will not come."""
        deadline = time.monotonic() + POLL
        while not concurrent.futures.wait([call], timeout=MAX_PAUSE).done:
            interrupts.check()
            if time.monotonic() > deadline:
                if not names <= set(live_workers(self.client)):
                    return False
                deadline = time.monotonic() + POLL
        return True

    def _wait_for_chunks(self, futures: list[Future]) -> None:
        idle, names = 0, set(live_workers(self.client))
        while not _is_done(self.client, futures):
            alive = set(live_workers(self.client))
            if not names <= alive:
                self._lift_restrictions()
            idle = 0 if any(self.client.sync(self.client.scheduler.processing).values()) else idle + 1
            if idle * POLL > PATIENCE:
                raise ClusterError(
                    f"workers of {self.client.scheduler.addr} ended while they loaded the rows, probably because they "
                    f"ran out of memory: use smaller blocks or workers with more memory, and {RESUME}"
                )
            names = alive
        for future in futures:
            if future.status == "error":
                self._raise(future)
            if future.status == "cancelled":
                raise ClusterError(
                    f"the rows {future.key} are lost: they were on a worker that ended, or the cluster was restarted, "
                    f"and Dask cannot compute them again: {RESUME}"
                )

    def _raise(self, future: Future) -> None:
        error = future.exception()
        if isinstance(error, KilledWorker):
            worker = getattr(error.last_worker, "address", error.last_worker)
            raise ClusterError(
                f"workers that loaded the rows {future.key} ended, the last one was {worker}, probably because they "
                f"ran out of memory: use smaller blocks or workers with more memory, and {RESUME}"
            ) from error
        raise error

    # results of rows

    def values(self, replies: Iterator[tuple[str, Reply]]) -> list[Any]:
        """The result of each part as a delayed value, which is on its worker; or here, if the rows are from here."""
        if not self.is_lazy:
            return values_in_order(replies, self.n_parts)
        tasks = {part: self.tasks[name] for name, reply in replies for part in reply.values}
        results = {task: dask.delayed(task) for task in dict.fromkeys(tasks.values())}
        piece = dask.delayed(_piece, pure=True)
        return [piece(results[tasks[part]], part) for part in range(self.n_parts)]


def live_workers(client: Client) -> dict[str, int]:
    """The number of threads by address of each worker; waits a while for a worker if there is none."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            workers: dict[str, int] = client.sync(client.scheduler.ncores)
        except (CommClosedError, OSError) as error:
            raise _disconnected(client) from error
        if workers:
            return workers
        if time.monotonic() > deadline:
            raise ClusterError(f"the cluster at {client.scheduler.addr} has no workers left: start some, and {RESUME}")
        interrupts.check()
        time.sleep(POLL)


async def _lift_restrictions(scheduler: Any, keys: set[Any]) -> None:
    states = await scheduler.get_task_status(keys=list(keys))
    await scheduler.set_restrictions(worker={key: None for key, state in states.items() if state is not None})


def _disconnected(client: Client) -> ClusterError:
    address = client.scheduler.addr
    return ClusterError(f"the scheduler at {address} ended or was restarted: check it and its workers, and {RESUME}")


def _is_done(client: Client, futures: list[Future]) -> bool:
    """Wait for a moment, and return whether all futures are finished, or have failed.

    `distributed.wait` would raise an exception whose traceback keeps the futures, and so their memory, for a while.
    """
    deadline, pause = time.monotonic() + POLL, 0.0005
    while futures := [future for future in futures if future.status in ("pending", "lost")]:
        interrupts.check()
        if client.status != "running":
            raise _disconnected(client)
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE)
    return True


# functions that run on the workers


def _load(part: Callable[[], Chunk]) -> Chunk:
    return part()


def _hold_parts(keys: bytes, before: HeldParts | None) -> HeldParts:
    """The state of passes for the chunks with these keys, and for those of `before`."""
    held = HeldParts({**({} if before is None else before.places), **pickle.loads(keys)})
    if before is not None:
        held.memos = before.memos
    return held


def _run(held: HeldParts, payload: bytes, parts: list[int] | None) -> Reply:
    worker = get_worker()
    return held.run(pickle.loads(payload), parts, worker.data.get, worker.state.nthreads)


def _same(payload: bytes) -> bytes:
    return payload


def _without_values(reply: Reply) -> Reply:
    return reply._replace(values=dict.fromkeys(reply.values))


def _piece(reply: Reply, part: int) -> Any:
    if part not in reply.values:
        raise ClusterError("the worker that held these results has ended: predict again")
    return reply.values[part]
