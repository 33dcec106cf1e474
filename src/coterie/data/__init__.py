"""Data sources: `as_source` is the only function that depends on the type of the user's data."""

from __future__ import annotations

import sys
from os import PathLike
from typing import Any

from coterie.core.protocols import Source

__all__ = ["as_source", "opened"]


def as_source(X: Any, sample_weight: Any = None, y: Any = None) -> Source:
    """Convert `X`, sample weights and known labels to a source.

    `X` may be

    - a NumPy array (memory-mapped too), a SciPy sparse matrix, or a PyTorch tensor;
    - a pandas, Polars or Arrow table; Polars columns of lists of numbers (embeddings) become one column for each
      element, also in files and LazyFrames;
    - a Polars LazyFrame, the path of a .csv, .tsv, .txt, .parquet, .arrow, .feather, .ndjson, .jsonl, .xlsx, .xls,
      .ods, .npy, .npz or .safetensors file, or a pattern of Parquet files (``"year/*.parquet"``). It is read once, in
      batches if the format allows it, into memory; or into a temporary file in TMPDIR if it needs more than a quarter
      of the free memory;
    - a relation of DuckDB (``duckdb.sql("SELECT …")``), through Arrow;
    - a Dask array or DataFrame.

    float32 stays float32, other numbers become float64. Data is copied only if necessary.
    """
    if "dask" in sys.modules and hasattr(X, "__dask_graph__"):
        from coterie.data.dask import dask_source

        return dask_source(X, sample_weight, y)
    from coterie.data.memory import memory_source

    return memory_source(opened(X), sample_weight, y)


def opened(X: Any) -> Any:
    """Read `X` if it is a path or a LazyFrame, and convert tensors and vector columns; return other data unchanged.

    Functions that use `X` more than once call it first, so that no file is read twice.
    """
    from coterie.data import frames, tensors
    from coterie.data.tables import numeric_rows

    if isinstance(X, str | PathLike):
        return numeric_rows.read(X)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(X, polars.LazyFrame):
        return numeric_rows.collect(X)
    if polars is not None and isinstance(X, polars.DataFrame):
        from coterie.data.tables.vector_columns import flatten

        return flatten(X)
    if frames.is_relation(X):
        return numeric_rows.relation_rows(X)
    return tensors.as_array(X)
