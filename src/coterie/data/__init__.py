"""From where: `as_source` is the only place that looks at the type of the user's data."""

from __future__ import annotations

import sys
from os import PathLike
from typing import Any

from coterie.core.protocols import Source

__all__ = ["as_source", "opened"]


def as_source(X: Any, sample_weight: Any = None, y: Any = None) -> Source:
    """The rows of `X`, their weights, and what is known of their clusters, as a source.

    `X` may be

    - a NumPy array (memory-mapped too), a SciPy sparse matrix, or a PyTorch tensor;
    - a pandas, Polars or Arrow table; columns of Polars that are lists of numbers (embeddings) become a column for
      each place in them, also in files and LazyFrames;
    - a Polars LazyFrame, or the path of a .csv, .tsv, .txt, .parquet, .arrow, .feather, .ndjson, .jsonl, .xlsx, .xls,
      .ods, .npy, .npz or .safetensors file, or a pattern of Parquet files (``"year/*.parquet"``): read once, in batches
      where the format allows it, into memory or, where they would take more than a quarter of what is free, into a
      file without a name (in the folder TMPDIR);
    - a Dask array or DataFrame.

    float32 stays float32, other numbers become float64; what needs no copy is not copied.
    """
    if "dask" in sys.modules and hasattr(X, "__dask_graph__"):
        from coterie.data.dask import dask_source

        return dask_source(X, sample_weight, y)
    from coterie.data.memory import memory_source

    return memory_source(opened(X), sample_weight, y)


def opened(X: Any) -> Any:
    """`X`; if it is the path of a file, or a LazyFrame, or a tensor, the rows it stands for; vectors in columns.

    What looks at `X` more than once opens it first, so that no file is read twice.
    """
    from coterie.data import tensors
    from coterie.data.tables import numeric_rows

    if isinstance(X, str | PathLike):
        return numeric_rows.read(X)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(X, polars.LazyFrame):
        return numeric_rows.collect(X)
    if polars is not None and isinstance(X, polars.DataFrame):
        from coterie.data.tables.vector_columns import flatten

        return flatten(X)
    return tensors.as_array(X) if tensors.is_tensor(X) else X
