"""Arrays in, arrays out. `of` picks the kernels for an array, its kin those of other work; nothing else does."""

from __future__ import annotations

from types import ModuleType
from typing import Any

SMALL = 1 << 17  # multiply-adds that do not repay loading a compiler
SMALL_COLUMN = 1 << 24  # the same for costs of runs, of which NumPy compares whole tables at a time


def of(X: Any, k: int) -> ModuleType:
    """The kernels for rows like `X` and `k` centers: a function of type and shape alone.

    `plain` is NumPy and costs no compilation; `cpu` is compiled for dense rows, `sparse` for CSR rows. All have the
    same names, but for those of Gaussian components and fuzzy clusters, whose rows are dense; and their labels agree.
    """
    n, d = X.shape
    if n * d * k <= SMALL:
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
