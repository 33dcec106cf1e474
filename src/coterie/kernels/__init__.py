"""Kernels: arrays in, arrays out. `select` chooses the implementation of a task by type and size, from one table."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

SMALL = 1 << 17  # multiply-adds up to which NumPy is faster than loading compiled kernels


class Task(NamedTuple):
    """A task with kernels of the same name in `plain` (NumPy) and `cpu` (compiled), which give the same results."""

    work: Callable[..., int]  # multiply-adds, from the sizes that `select` gets
    limit: int = SMALL  # work up to which the plain kernels are used


def _warping(pairs: int, n: int, m: int) -> int:
    """NumPy computes a diagonal of a table at a time: diagonals count, unless the table is too large for memory."""
    return pairs * (n + m) if n * m <= 1 << 24 else 1 << 62


def _products(X: Any, k: int) -> int:
    """NumPy's own products are best for dense rows; those of sparse rows are compiled."""
    return (X.shape[0] + len(X.data)) * k if hasattr(X, "indptr") else 0


def _rows(X: Any, k: int) -> int:
    return X.shape[0] * X.shape[1] * k


TASKS = {
    "diana": Task(lambda n: n * n),  # splits of n objects
    "dtw": Task(_warping, limit=1 << 12),  # pairs of series of n and m values
    "linkage": Task(lambda n, d: n * n * d),  # merges by distances of n rows of d columns; d = 1 if precomputed
    "medians": Task(_rows),  # unsquared distances of rows X to k centers
    "medoids": Task(lambda n, m, k: n * m * k),  # swaps of k medoids among n candidates for m objects
    "merging": Task(lambda n, edges: n * edges),  # merges of n rows along the edges of a graph
    "observed": Task(_rows),  # rows X with missing values, k centers
    "one_column": Task(lambda m, k: m * m * k, limit=1 << 24),  # optimal k clusters of m sorted values
    "pairwise": Task(lambda A, B: A.shape[0] * B.shape[0] * A.shape[1]),  # distances between rows of A and B
    "posteriors": Task(lambda n, k: 40 * n * k),  # n rows, k components; an exponential counts as 40
    "products": Task(_products),  # inner products of rows X with k others
    "silhouette": Task(lambda n, d: n * n * d),  # sums over clusters of distances of n rows of d columns
    "soft_dtw": Task(_warping, limit=1 << 12),
    "transport": Task(lambda n, k: n * k, limit=1 << 12),  # n rows divided among k clusters of given sizes
    "trees": Task(lambda n: n * n),  # all pairs of n leaves of a tree
}


def select(task: str, *sizes: Any) -> ModuleType:
    """The kernels of a task in `TASKS`, for arrays or sizes as its entry takes them."""
    entry = TASKS[task]
    return _load(f"{'plain' if entry.work(*sizes) <= entry.limit else 'cpu'}.{task}")


def for_centers(X: Any, k: int, n_total: int = 0) -> ModuleType:
    """The kernels of rows like `X` and `k` centers or components.

    `plain` is NumPy; `cpu` is compiled for dense rows, `sparse` for CSR rows. All have the same functions, except those
    of Gaussian components and fuzzy clusters, whose rows are dense. `X` may be one part of a table of `n_total` rows.
    """
    if max(X.shape[0], n_total) * X.shape[1] * k <= SMALL:
        return _load("plain")
    return _load("sparse" if hasattr(X, "indptr") else "cpu")


def compile_pair(
    function: Callable[..., Any], arguments: tuple[Any, ...] = ()
) -> tuple[Callable[..., None], type[Exception]]:
    """A kernel made of a user's function of two rows, and the exception it raises if that cannot be compiled."""
    from coterie.kernels.cpu.pairwise import CannotCompile, compiled

    block = compiled(function)
    return lambda A, B, out: block(A, B, out, arguments), CannotCompile


@cache
def _load(module: str) -> ModuleType:
    return import_module(f"coterie.kernels.{module}")
