"""From where: `as_source` is the only place that looks at the type of the user's data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from coterie.core.protocols import Source

__all__ = ["as_source"]


def as_source(X: Any, sample_weight: Any = None, y: Any = None) -> Source:
    """The rows of `X`, their weights, and what is known of their clusters, as a source.

    `X` may be a NumPy array (memory-mapped too), the path of an .npy file, a pandas, Polars or Arrow table, a SciPy
    sparse matrix, or a Dask array. float32 stays float32, other numbers become float64; what needs no copy is not
    copied.
    """
    if "dask" in sys.modules and hasattr(X, "__dask_graph__"):
        from coterie.data.dask import dask_source

        return dask_source(X, sample_weight, y)
    if isinstance(X, str | Path):
        from coterie.data.files import open_npy

        X = open_npy(X)
    from coterie.data.memory import memory_source

    return memory_source(X, sample_weight, y)
