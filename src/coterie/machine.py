"""What this machine has, and how it is shared out: threads, and memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from coterie import interrupts
from coterie.core.errors import InputError, ParameterError

POLL = 0.05  # seconds between two looks at whether Ctrl-C was pressed, while other threads work

GROUPS = (  # folders of control groups, and their files of what is allowed and what is used
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


class _OneBlasThread:
    """Holds BLAS to one thread while any part of this process computes: the chunks use the cores already.

    Ctrl-C is deferred meanwhile, so that the limit is always lifted: see `interrupts`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: Any = None
        self._limit: Any = None
        self._thread = _Deferred()

    @interrupts.critical
    def __enter__(self) -> None:
        guard = interrupts.deferred()
        guard.__enter__()
        self._thread.guards.append(guard)
        with self._lock:
            if self._users == 0:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    @interrupts.critical
    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()
        self._thread.guards.pop().__exit__()


class _Deferred(threading.local):
    def __init__(self) -> None:
        self.guards: list[interrupts.deferred] = []


class _Pools:
    """One pool of threads for each size, shared by all work of the process."""

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


def in_threads(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], n_jobs: int | None) -> Iterator[Any]:
    """``function(*call)`` for every one of `calls`, in their order, a call a thread.

    The caller holds `one_blas_thread` if the function uses BLAS.
    """
    calls, workers = list(calls), thread_count(n_jobs)
    if workers == 1 or len(calls) <= 1:
        return (interrupts.Group().call(function, *call) for call in calls)
    return _work_along(workers - 1, function, calls)


def _work_along(others: int, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Iterator[Any]:
    """Results in order; the caller's own thread takes calls too, so it is never an idle one too many.

    After an error or Ctrl-C no call is left running: those under way end at their next check for interrupts.
    """
    group, futures = interrupts.Group(), list[Future[Any]]()
    own: dict[int, Any] = {}  # results of calls that this thread took
    untaken = iter(range(len(calls)))
    try:
        with interrupts.deferred():  # the pool has locks of its own
            pool = _pools[others]
            futures.extend(pool.submit(group.call, function, *call) for call in calls)
        for i, future in enumerate(futures):
            while i not in own and not future.done():
                taken = next((j for j in untaken if futures[j].cancel()), None)
                if taken is None:
                    break
                own[taken] = group.call(function, *calls[taken])
            yield own.pop(i) if i in own else _result(future)
    finally:
        group.cancelled = True
        wait([future for future in futures if not future.cancel()])


def _result(future: Future[Any]) -> Any:
    while not future.done():
        interrupts.check()
        wait([future], POLL)
    return future.result()


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


def free_memory() -> int:
    """Bytes this process can still have: what the system has free, or its control group allows if that is less."""
    return min([_free_in_system(), *_free_in_group()])


def check_room(nbytes: int, what: str, remedy: str) -> None:
    """Refuses work that cannot fit before it is begun."""
    free = free_memory()
    if nbytes > free:
        raise InputError(f"{what} would take {in_words(nbytes)} and {in_words(free)} are free: {remedy}")


def _free_in_system() -> int:
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        sizes = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        return int(sizes["MemAvailable"].split()[0]) * 1024
    pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")


def _free_in_group() -> Iterator[int]:
    for folder, limit, used in GROUPS:
        at_most, now = Path(folder, limit), Path(folder, used)
        if at_most.exists() and now.exists() and (most := at_most.read_text().strip()).isdigit():
            yield max(0, int(most) - int(now.read_text()) + _cached(Path(folder, "memory.stat")))


def _cached(stat: Path) -> int:
    """Bytes of files that are counted as used, and go as soon as they are in the way."""
    lines = stat.read_text().splitlines() if stat.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.split()[0] == "inactive_file")


def in_words(nbytes: int) -> str:
    """``1.23 GB``."""
    size, unit = float(nbytes), "bytes"
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"
