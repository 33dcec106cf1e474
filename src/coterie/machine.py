"""Resources of this machine: threads, BLAS threads and memory."""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import joblib
from threadpoolctl import ThreadpoolController

from coterie import interrupts
from coterie.core.arguments import is_integer
from coterie.core.formatting import format_bytes
from coterie.errors import InputError, ParameterError

SMALL_OBJECT = 1 << 22  # bytes that are not compared with the free memory: reading its size takes half a millisecond
POLL = 0.05  # seconds between two checks for Ctrl-C while waiting for other threads

GROUPS = (  # folders of control groups (v2, v1), and their files with the memory limit and the memory in use
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
OWN_GROUPS = Path("/proc/self/cgroup")
LIMITS = (("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData"))  # resource limits, and what counts against them


class _OneBlasThread:
    """Context that limits BLAS to one thread, because chunks are already computed in parallel. It can be nested.

    Ctrl-C is deferred within it, so that the limit is always removed at the end: see `interrupts`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._libraries: list[Any] | None = None  # of BLAS; finding them takes long
        self._thread_counts: list[tuple[Any, int]] = []  # of the libraries that are limited
        self._thread = threading.local()

    @interrupts.critical
    def __enter__(self) -> None:
        guard = interrupts.deferred()
        guard.__enter__()
        vars(self._thread).setdefault("guards", []).append(guard)
        with self._lock:
            if self._users == 0:
                self._limit()
            self._users += 1

    @interrupts.critical
    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for library, count in self._thread_counts:
                    library.set_num_threads(count)
        self._thread.guards.pop().__exit__()

    def _limit(self) -> None:
        if self._libraries is None:
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        counts = [(library, library.get_num_threads()) for library in self._libraries]
        self._thread_counts = [(library, count) for library, count in counts if count not in (None, 1)]
        for library, _ in self._thread_counts:
            library.set_num_threads(1)


class _Pools:
    """Thread pools by size, shared by all computations of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[int, ThreadPoolExecutor] = {}

    def __getitem__(self, workers: int) -> ThreadPoolExecutor:
        with self._lock:
            if workers not in self._pools:
                self._pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="coterie")
            return self._pools[workers]


one_blas_thread, _pools = _OneBlasThread(), _Pools()


def _after_fork() -> None:
    """Reset the state of a child process: threads do not survive a fork, and locks may be held."""
    global one_blas_thread, _pools
    one_blas_thread, _pools = _OneBlasThread(), _Pools()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def in_threads(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], n_jobs: int | None) -> Iterator[Any]:
    """Yield ``function(*call)`` for all `calls`, in their order, computed in parallel threads.

    If the function uses BLAS, the caller must be within `one_blas_thread`.
    """
    calls = list(calls)
    workers = 1 if len(calls) <= 1 and n_jobs is None else thread_count(n_jobs)  # which rejects an invalid `n_jobs`
    if len(calls) <= 1 or workers == 1:
        return (interrupts.Group().call(function, *call) for call in calls)
    return _run_in_pool(workers - 1, function, calls)


def run_in_threads(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], n_jobs: int | None) -> list[Any]:
    """The results of `in_threads` as a list."""
    return list(in_threads(function, calls, n_jobs))


def _run_in_pool(pool_size: int, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield the results in order; the calling thread also computes, instead of only waiting for the pool.

    After an error or Ctrl-C, no call is left running: running calls end at their next check for interrupts.
    """
    group, futures = interrupts.Group(), list[Future[Any]]()
    local_results: dict[int, Any] = {}  # of calls that the calling thread computed
    indices = iter(range(len(calls)))
    try:
        with interrupts.deferred():  # the pool uses locks
            pool = _pools[pool_size]
            futures.extend(pool.submit(group.call, function, *call) for call in calls)
        for i, future in enumerate(futures):
            while i not in local_results and not future.done():
                pending = next((j for j in indices if futures[j].cancel()), None)
                if pending is None:
                    break
                local_results[pending] = group.call(function, *calls[pending])
            yield local_results.pop(i) if i in local_results else _wait_for(future)
    finally:
        group.cancelled = True
        wait([future for future in futures if not future.cancel()])


def _wait_for(future: Future[Any]) -> Any:
    while not future.done():
        interrupts.check()
        wait([future], POLL)
    return future.result()


@cache
def core_count() -> int:
    """Number of cores that this process may use; cached, because joblib reads it from files."""
    return int(joblib.cpu_count())


def thread_count(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`, as in joblib; the default is all cores, or OMP_NUM_THREADS if that is less."""
    cores = core_count()
    if n_jobs is None:
        allowed = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # joblib sets it in its worker processes
        return min(cores, int(allowed)) if allowed.isdigit() and int(allowed) > 0 else cores
    count = int(n_jobs) if is_integer(n_jobs) else 0
    if count == 0:
        raise ParameterError(
            f"n_jobs must be None, a positive number of threads, or negative (-1: all cores, -2: all but one); "
            f"got {n_jobs!r}"
        )
    return count if count > 0 else max(1, cores + 1 + count)


def free_memory() -> int:
    """Bytes of memory available to this process: in the system, or less by its control group or resource limits."""
    return min([_free_in_system(), *_free_in_group(), *_free_by_limits()])


def check_memory(nbytes: int, name: str, remedy: str) -> None:
    """Raise an error if an object called `name` does not fit into memory, before it is computed."""
    if nbytes > SMALL_OBJECT and nbytes > (free := free_memory()):
        raise InputError(
            f"{name} would take {format_bytes(nbytes)} of memory, but only {format_bytes(free)} are free: {remedy}"
        )


def _free_in_system() -> int:
    if sys.platform == "win32":
        return _free_on_windows()
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        sizes = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        return int(sizes["MemAvailable"].split()[0]) * 1024
    pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")


class _MemoryStatus(ctypes.Structure):
    """The structure MEMORYSTATUSEX of Windows."""

    _fields_: ClassVar = [
        ("size", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("total", "free", "total_page", "free_page", "total_virtual")),
        ("free_virtual", ctypes.c_uint64),
        ("free_extended", ctypes.c_uint64),
    ]


def _free_on_windows() -> int:
    status = _MemoryStatus(size=ctypes.sizeof(_MemoryStatus))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.free)


def _free_in_group() -> Iterator[int]:
    for root, limit_name, usage_name in GROUPS:
        for folder in {Path(root), *(Path(root + group) for group in _own_groups())}:
            limit_file, usage_file = folder / limit_name, folder / usage_name
            if limit_file.exists() and usage_file.exists() and (limit := limit_file.read_text().strip()).isdigit():
                yield max(0, int(limit) - int(usage_file.read_text()) + _cached(folder / "memory.stat"))


def _free_by_limits() -> Iterator[int]:
    """Bytes that the process may still allocate, if `ulimit -v` or `ulimit -d` limits them."""
    status = Path("/proc/self/status")
    if not status.exists():
        return
    import resource  # not available on Windows

    sizes = dict(line.split(":", 1) for line in status.read_text().splitlines())
    for name, used in LIMITS:
        limit, _ = resource.getrlimit(getattr(resource, name))
        if limit != resource.RLIM_INFINITY:
            yield max(0, limit - 1024 * int(sizes[used].split()[0]))


def _own_groups() -> list[str]:
    """Paths of the control groups of this process, which a container shows as ``/``, but a service does not."""
    if not OWN_GROUPS.exists():
        return []
    entries = [line.split(":", 2) for line in OWN_GROUPS.read_text().splitlines()]
    return [path for _, controllers, path in entries if controllers == "" or "memory" in controllers.split(",")]


def _cached(stat: Path) -> int:
    """Bytes of the file cache, which are counted as used, but are freed when memory is needed."""
    lines = stat.read_text().splitlines() if stat.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.split()[0] == "inactive_file")


def release_memory() -> None:
    """Return freed memory to the operating system; only the C library of Linux keeps much of it otherwise."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
