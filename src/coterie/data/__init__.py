"""Data sources: `as_source` is the only function that depends on the type of the user's data."""

from __future__ import annotations

import sys
from os import PathLike
from typing import Any

from coterie.core.protocols import Source
from coterie.errors import ParameterError

__all__ = ["as_source", "opened"]


def as_source(X: Any, sample_weight: Any = None, y: Any = None, device: str = "cpu") -> Source:
    """Convert `X`, sample weights and known labels to a source.

    The rows of the source are on `device`, one of 'cpu', 'cuda' and 'auto', which is where `X` is.

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
        if device == "cuda":
            raise ParameterError("device='cuda' does not support Dask arrays: pass X.compute(), or use device='cpu'")
        from coterie.data.dask import dask_source

        return dask_source(X, sample_weight, y)
    from coterie.data import tensors
    from coterie.data.memory import memory_source

    if device == "cuda" or (device == "auto" and tensors.is_on_device(X)):
        return tensors.tensor_source(X, sample_weight, y)
    return memory_source(opened(X), tensors.as_array(sample_weight), y)


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
