"""Kernels are functions of arrays. `select` chooses the implementation of a task by type and size, from one table."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

SMALL = 1 << 17  # multiply-adds up to which NumPy is faster than loading compiled kernels
COMPILED = (
    "plain" if find_spec("numba") is None else "cpu"
)  # fits on a GPU do not need Numba: they compile nothing here
ON_DEVICE = 1 << 26  # number of values that are processed at once on a device
_passes = ContextVar("passes", default=1)


class Task(NamedTuple):
    """A task with kernels of the same name in `plain` (NumPy) and `cpu` (compiled), which give the same results."""

    work: Callable[..., int]  # number of multiply-adds, from the arguments of `select`
    limit: int = SMALL  # maximum work for which the plain kernels are used


def _warping(pairs: int, n: int, m: int) -> int:
    """NumPy computes one antidiagonal at a time, so their number counts, unless the table is too large for memory."""
    return pairs * (n + m) if n * m <= 1 << 24 else 1 << 62


def _products(X: Any, k: int) -> int:
    """NumPy is fastest for dense rows, so only products of sparse rows are compiled."""
    return (X.shape[0] + len(X.data)) * k if hasattr(X, "indptr") else 0


def _assignment(X: Any, k: int) -> int:
    return X.shape[0] * X.shape[1] * k


TASKS = {
    "agglomeration": Task(lambda n, d: n * n * d**3, limit=1 << 28),  # merges of n Gaussian clusters with d columns
    "condensed_tree": Task(lambda n: n, limit=1 << 11),  # trees of n rows
    "dendrograms": Task(lambda n: n * n),  # all pairs of n leaves
    "density": Task(lambda m, n: m * n),  # distances of m rows to n rows
    "diana": Task(lambda n: n * n),  # splits of n objects
    "dtw": Task(_warping, limit=1 << 12),  # pairs of series with n and m values
    "graph_linkage": Task(lambda n, edges: n * edges),  # merges of n rows along the edges of a graph
    "kmeans_1d": Task(lambda m, k: m * m * k, limit=1 << 24),  # optimal k clusters of m sorted values
    "linkage": Task(lambda n, d: n * n * d),  # merges by distances of n rows with d columns; d = 1 if precomputed
    "medians": Task(_assignment),  # L1 and Euclidean distances of rows X to k centers
    "nan_kmeans": Task(_assignment),  # rows X with missing values, k centers
    "pairwise": Task(lambda A, B: A.shape[0] * B.shape[0] * A.shape[1]),  # distances between rows of A and B
    "posteriors": Task(lambda X, k: 40 * X.shape[0] * k),  # rows X, k components; an exponential counts as 40
    "products": Task(_products),  # inner products of rows X with k dense rows
    "silhouette": Task(lambda n, d: n * n * d, limit=1 << 20),  # sums of distances of n rows with d columns
    "soft_dtw": Task(_warping, limit=1 << 12),
    "transport": Task(lambda n, k: n * k, limit=1 << 12),  # assignment of n rows to k clusters of bounded sizes
    "two_means": Task(lambda n, d: 2 * n * d),  # two clusters of a part of a table with n rows and d columns
}


def select(task: str, *sizes: Any) -> ModuleType:
    """The kernels of a task; `sizes` are the arguments of its `work` in `TASKS`.

    Some tasks also have kernels in `cuda`, for rows on a device.
    """
    entry = TASKS[task]
    if is_on_device(sizes[0]):
        return _load(f"cuda.{task}")
    return _load(f"{'plain' if _passes.get() * entry.work(*sizes) <= entry.limit else COMPILED}.{task}")


@contextmanager
def selected_for(passes: int, X: Any, k: int) -> Iterator[None]:
    """In this context and thread, kernels are selected for so many passes over rows `X` and k centers.

    Compiled kernels then pay off for fewer rows. Where they do not, this has no effect, whatever the number of centers.
    """
    token = _passes.set(passes if passes * _assignment(X, k) > SMALL else 1)
    try:
        yield
    finally:
        _passes.reset(token)


def is_on_device(X: Any) -> bool:
    """Whether an array is on a device."""
    return hasattr(X, "tensor")


def row_values(X: Any, fill: float, dtype: Any) -> Any:
    """One value for each row (n,), where the rows are."""
    if is_on_device(X):
        return _load("cuda").row_values(X, fill, dtype)
    return np.full(X.shape[0], fill, dtype)


def values_at_once(X: Any, in_cache: int) -> int:
    """Number of values of a block of rows: `in_cache` in main memory, many on a device, whose processors are many."""
    return ON_DEVICE if is_on_device(X) else in_cache


def for_centers(X: Any, k: int, n_total: int = 0) -> ModuleType:
    """The kernels for rows `X` and `k` centers or components.

    `plain` is NumPy; `cpu` is compiled for dense rows, `sparse` for CSR rows, `cuda` for rows on a GPU. All have the
    same functions, except that `sparse` has none for Gaussian components and fuzzy clusters. `X` may be one part of a
    table with `n_total` rows.
    """
    if is_on_device(X):
        return _load("cuda")
    if _passes.get() * max(X.shape[0], n_total) * X.shape[1] * k <= SMALL:
        return _load("plain")
    return _load("sparse" if hasattr(X, "indptr") else COMPILED)


def for_labels(X: Any) -> ModuleType:
    """The kernels for rows with known clusters on a device."""
    return _load("cuda.labelled")


def compile_pair(
    function: Callable[..., Any], arguments: tuple[Any, ...] = ()
) -> tuple[Callable[..., None], type[Exception]]:
    """Compile a user's function of two rows into a kernel; and the exception that is raised if this fails."""
    from coterie.kernels.cpu.pairwise import CannotCompile, compile_function

    block = compile_function(function)
    return lambda A, B, out: block(A, B, out, arguments), CannotCompile


@cache
def _load(module: str) -> ModuleType:
    return import_module(f"coterie.kernels.{module}")
