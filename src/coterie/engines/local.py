"""This machine: one chunk after the other, or one chunk a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from coterie.core.errors import ParameterError
from coterie.core.protocols import Memo, Source, Step
from coterie.core.stats import tree_sum


class _OneBlasThread:
    """Holds BLAS to one thread while any engine of this process computes: the chunks use the cores already."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


class _Pools:
    """One pool of threads for each size, shared by all fits of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[int, ThreadPoolExecutor] = {}

    def __getitem__(self, workers: int) -> ThreadPoolExecutor:
        with self._lock:
            if workers not in self._pools:
                self._pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="coterie")
            return self._pools[workers]


one_blas_thread, _pools = _OneBlasThread(), _Pools()


def _start_anew() -> None:
    """Threads and held locks do not survive a fork: a child process starts with none."""
    global one_blas_thread, _pools
    one_blas_thread, _pools = _OneBlasThread(), _Pools()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


class _Local:
    """Steps are run by `_run`, in the order of the parts; the rest is the same for every local engine."""

    def _run(self, step: Step, source: Source, *memos: list[Memo]) -> Iterator[Any]:
        raise NotImplementedError

    def sum(self, step: Step, source: Source) -> Any:
        with one_blas_thread:
            return tree_sum(self._run(step, source))

    def scan(self, step: Step, source: Source, memos: list[Memo] | None) -> tuple[Any, list[Memo]]:
        kept: list[Memo] = []

        def stats() -> Iterator[Any]:
            for stats, memo in self._run(step, source, memos or [None] * len(source.parts())):
                kept.append(memo)
                yield stats

        with one_blas_thread:
            return tree_sum(stats()), kept

    def map(self, step: Step, source: Source, memos: list[Memo] | None = None) -> list[Any]:
        with one_blas_thread:
            return list(self._run(step, source, *([] if memos is None else [memos])))


@dataclass(frozen=True)
class Serial(_Local):
    """One chunk after the other."""

    def _run(self, step: Step, source: Source, *memos: list[Memo]) -> Iterator[Any]:
        for part, *memo in zip(source.parts(), *memos, strict=True):
            yield step(part(), *memo)


@dataclass(frozen=True)
class Threads(_Local):
    """A chunk a thread; kernels hold no lock while they compute."""

    n_jobs: int | None = None  # None: all cores; -1 too, -2 all but one

    def _run(self, step: Step, source: Source, *memos: list[Memo]) -> Iterator[Any]:
        workers, parts = thread_count(self.n_jobs), source.parts()
        if workers == 1 or len(parts) == 1:
            return Serial()._run(step, source, *memos)
        return _work_along(_pools[workers - 1], partial(_run_part, step), list(zip(parts, *memos, strict=True)))


def _run_part(step: Step, part: Any, *memo: Memo) -> Any:
    return step(part(), *memo)


def _work_along(pool: ThreadPoolExecutor, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Iterator[Any]:
    """Results in order; the caller's own thread takes calls too, so it is never an idle one too many."""
    futures = [pool.submit(function, *call) for call in calls]
    own: dict[int, Any] = {}  # results of calls that this thread took
    untaken = iter(range(len(calls)))
    try:
        for i, future in enumerate(futures):
            while i not in own and not future.done():
                taken = next((j for j in untaken if futures[j].cancel()), None)
                if taken is None:
                    break
                own[taken] = function(*calls[taken])
            yield own.pop(i) if i in own else future.result()
    finally:
        for future in futures:
            future.cancel()


@cache
def core_count() -> int:
    """Cores this process may use; read once, for it is read from files."""
    return int(joblib.cpu_count())


def thread_count(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means, in joblib's words; by default no more than OMP_NUM_THREADS says."""
    cores = core_count()
    if n_jobs is None:
        allowed = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # joblib sets it in its worker processes
        return min(cores, int(allowed)) if allowed.isdigit() and int(allowed) > 0 else cores
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0:
        raise ParameterError(f"n_jobs must be None, positive, or negative to count back from all cores; got {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
