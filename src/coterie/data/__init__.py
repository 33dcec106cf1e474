"""Data sources: `as_source` is the only function that depends on the type of the user's data."""

import sys
from typing import Any

import numpy as np

from coterie.core.lazy import attach
from coterie.core.protocols import Source
from coterie.errors import ParameterError

__all__ = ["FileSource", "as_source", "opened", "scan_files"]

_HOME = {"FileSource": "files", "scan_files": "open_files"}

__getattr__ = attach(__name__, {name: f"{__name__}.{module}" for name, module in _HOME.items()})


def as_source(X: Any, sample_weight: Any = None, y: Any = None, device: str = "cpu") -> Source:
    """Convert `X`, sample weights and known labels to a source.

    The rows of the source are on `device`, one of 'cpu', 'cuda' and 'auto', which is where `X` is.

    `X` may be

    - a NumPy array (memory-mapped too), a SciPy sparse matrix, or a PyTorch tensor;
    - a pandas, Polars or Arrow table; Polars columns of lists of numbers (embeddings) become one column for each
      element, also in files and LazyFrames;
    - a Polars LazyFrame, or the path of a .csv, .tsv, .txt, .parquet, .arrow, .feather, .ndjson, .jsonl, .xlsx, .xls,
      .ods, .npy, .npz or .safetensors file. It is read once, in batches if the format allows it, into memory; or into a
      temporary file in TMPDIR if it needs more than a quarter of the free memory;
    - several files with the same columns: a list of paths, a folder, a pattern (``"year/*.parquet"``), or addresses
      such as ``s3://bucket/year/*.parquet``. They are read in the same way;
    - the result of `scan_files`, which can also be read again in every pass;
    - a stream, which is read once: a relation of DuckDB (``duckdb.sql("SELECT …")``), a dataset or RecordBatchReader of
      PyArrow, a Spark DataFrame (PySpark 4.2 or later), any object with an Arrow C stream, or an iterator of frames or
      arrays with the same columns;
    - a Dask array or DataFrame.

    float32 stays float32, other numbers become float64. Data is copied only if necessary.
    """
    if "dask" in sys.modules and hasattr(X, "__dask_graph__"):
        if device == "cuda":
            raise ParameterError("device='cuda' does not support Dask arrays: pass X.compute(), or use device='cpu'")
        from coterie.data.dask import dask_source

        return dask_source(X, sample_weight, y)
    from coterie.data import tensors
    from coterie.data.files import FileSource, file_source
    from coterie.data.memory import memory_source

    if device == "cuda" or (device == "auto" and tensors.is_on_device(X)):
        return tensors.tensor_source(X, sample_weight, y)
    X, sample_weight = opened(X), tensors.as_array(sample_weight)
    return file_source(X, sample_weight, y) if isinstance(X, FileSource) else memory_source(X, sample_weight, y)


def opened(X: Any) -> Any:
    """Read `X` if it is a path, a LazyFrame or a stream, and convert tensors, vector columns and masked arrays.

    Masked values become NaN. Other data is returned unchanged.
    Functions that use `X` more than once call it first, so that no file is read twice. A `FileSource` with
    ``cache="none"`` is returned unchanged.
    """
    if type(X) is np.ndarray:
        return X
    from coterie.data import frames, locations, streams, tensors
    from coterie.data.files import FileSource
    from coterie.data.open_files import scan_files
    from coterie.data.tables import numeric_rows

    if locations.is_paths(X):
        X = scan_files(X) if locations.is_several(X) else numeric_rows.read(X)
    if isinstance(X, FileSource):
        return X if X.cache == "none" else X.cached_rows()
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(X, polars.LazyFrame):
        return numeric_rows.collect(X)
    if polars is not None and isinstance(X, polars.DataFrame):
        from coterie.data.tables.vector_columns import flatten

        return flatten(X)
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(X.dtype if X.dtype.kind == "f" else np.float64), np.nan)
    if streams.is_stream(X):
        return streams.read_stream(X)
    frames.check_spark(X)
    return tensors.as_array(X)
