"""Arrays in, arrays out. `of` picks the kernels for an array, its kin those of other work; nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

SMALL = 1 << 17  # multiply-adds that do not repay loading a compiler
SMALL_TABLE = 1 << 12  # costs of rows in clusters, of which NumPy finds the cheapest division in a moment
SMALL_COLUMN = 1 << 24  # the same for costs of runs, of which NumPy compares whole tables at a time
FEW_DIAGONALS = 1 << 12  # the same for warping, of which NumPy does a diagonal of a table at a time


def of(X: Any, k: int, among: int = 0) -> ModuleType:
    """The kernels for rows like `X`, of a table of at least `among`, and `k` centers: by type and shape alone.

    `plain` is NumPy and costs no compilation; `cpu` is compiled for dense rows, `sparse` for CSR rows. All have the
    same names, but for those of Gaussian components and fuzzy clusters, whose rows are dense; and their labels agree.
    """
    n, d = X.shape
    if max(n, among) * d * k <= SMALL:
        from coterie.kernels import plain

        return plain
    if hasattr(X, "indptr"):
        from coterie.kernels import sparse

        return sparse
    from coterie.kernels import cpu

    return cpu


def of_column(m: int, k: int) -> ModuleType:
    """The kernels for the best `k` clusters of `m` sorted values, likewise."""
    if m * m * k <= SMALL_COLUMN:
        from coterie.kernels.plain import one_column as plain

        return plain
    from coterie.kernels.cpu import one_column as cpu

    return cpu


def of_medians(X: Any, k: int) -> ModuleType:
    """The kernels of unsquared distances and medians for dense rows like `X` and `k` centers, likewise."""
    n, d = X.shape
    if n * d * k <= SMALL:
        from coterie.kernels.plain import medians as plain

        return plain
    from coterie.kernels.cpu import medians as cpu

    return cpu


def of_observed(X: Any, k: int) -> ModuleType:
    """The kernels of rows with holes, dense ones like `X`, and `k` centers, likewise."""
    n, d = X.shape
    if n * d * k <= SMALL:
        from coterie.kernels.plain import observed as plain

        return plain
    from coterie.kernels.cpu import observed as cpu

    return cpu


def of_pairs(A: Any, B: Any) -> ModuleType:
    """The kernels of distances between the dense rows of `A` and `B`, likewise."""
    if A.shape[0] * B.shape[0] * A.shape[1] <= SMALL:
        from coterie.kernels.plain import pairwise as plain

        return plain
    from coterie.kernels.cpu import pairwise as cpu

    return cpu


def of_clusters(n: int, d: int) -> ModuleType:
    """The kernels of distances of `n` dense rows of `d` columns summed over clusters, likewise."""
    if n * n * d <= SMALL:
        from coterie.kernels.plain import silhouette as plain

        return plain
    from coterie.kernels.cpu import silhouette as cpu

    return cpu


def of_series(pairs: int, n: int, m: int) -> ModuleType:
    """The kernels of warping for so many pairs of series of `n` and `m` moments, likewise; all give the same bits."""
    if pairs * (n + m) <= FEW_DIAGONALS and n * m <= SMALL_COLUMN:
        from coterie.kernels.plain import dtw as plain

        return plain
    from coterie.kernels.cpu import dtw as cpu

    return cpu


def of_soft_series(pairs: int, n: int, m: int) -> ModuleType:
    """The kernels of soft warping, likewise."""
    if pairs * (n + m) <= FEW_DIAGONALS and n * m <= SMALL_COLUMN:
        from coterie.kernels.plain import soft_dtw as plain

        return plain
    from coterie.kernels.cpu import soft_dtw as cpu

    return cpu


def of_linkage(n: int, d: int) -> ModuleType:
    """The kernels of merges by a matrix of distances of `n` rows of `d` columns, likewise: 1 if distances are given."""
    if n * n * d <= SMALL:
        from coterie.kernels.plain import linkage as plain

        return plain
    from coterie.kernels.cpu import linkage as cpu

    return cpu


def of_own(function: Callable[..., Any]) -> tuple[Callable[..., None], type[Exception]]:
    """The kernel made of a user's function of two rows, and what it raises if the function cannot be compiled."""
    from coterie.kernels.cpu.pairwise import CannotCompile, compiled

    return compiled(function), CannotCompile


def of_transport(n: int, k: int) -> ModuleType:
    """The kernels that divide `n` rows among `k` clusters of given sizes, likewise."""
    if n * k <= SMALL_TABLE:
        from coterie.kernels.plain import transport as plain

        return plain
    from coterie.kernels.cpu import transport as cpu

    return cpu


def of_medoids(n: int, m: int, k: int) -> ModuleType:
    """The kernels of swaps of `k` medoids among `n` candidates for `m` objects, likewise."""
    if n * m * k <= SMALL:
        from coterie.kernels.plain import medoids as plain

        return plain
    from coterie.kernels.cpu import medoids as cpu

    return cpu


def of_trees(n: int) -> ModuleType:
    """The kernels of all pairs of `n` leaves of a tree, likewise."""
    if n * n <= SMALL:
        from coterie.kernels.plain import trees as plain

        return plain
    from coterie.kernels.cpu import trees as cpu

    return cpu


def of_diana(n: int) -> ModuleType:
    """The kernels of splits of `n` objects, likewise."""
    if n * n <= SMALL:
        from coterie.kernels.plain import diana as plain

        return plain
    from coterie.kernels.cpu import diana as cpu

    return cpu


def of_merging(n: int, edges: int) -> ModuleType:
    """The kernels of merges of `n` rows along the edges of a graph, likewise."""
    if n * edges <= SMALL:
        from coterie.kernels.plain import merging as plain

        return plain
    from coterie.kernels.cpu import merging as cpu

    return cpu


def of_products(X: Any, k: int) -> ModuleType:
    """The kernels of products of rows like `X` with `k` others: NumPy's own for dense rows, compiled for CSR ones."""
    n = X.shape[0]
    if not hasattr(X, "indptr") or (n + len(X.data)) * k <= SMALL:
        from coterie.kernels.plain import products as plain

        return plain
    from coterie.kernels.cpu import products as cpu

    return cpu


def of_posteriors(n: int, k: int) -> ModuleType:
    """The kernels of posteriors of `n` rows in `k` components, likewise; an exponential counts as 40 multiply-adds."""
    if 40 * n * k <= SMALL:
        from coterie.kernels.plain import posteriors as plain

        return plain
    from coterie.kernels.cpu import posteriors as cpu

    return cpu
