"""Data frames of any library, through narwhals."""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie.core.frames import open_frame
from coterie.errors import InputError

ENCODE = (
    "Drop them, or encode them first (one column for each category). coterie.Job(X, k=3).run() reads amounts such as "
    '"$1,001.35", percentages, dates and yes/no as numbers'
)


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame in memory, not of Dask or DuckDB."""
    if hasattr(X, "__dask_graph__") or is_relation(X):
        return False
    return hasattr(X, "__dataframe__") or hasattr(X, "__narwhals_dataframe__") or hasattr(X, "__arrow_c_stream__")


def is_relation(X: Any) -> bool:
    """Whether `X` is a relation of DuckDB."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(X, duckdb.DuckDBPyRelation)


def check_spark(X: Any) -> None:
    """Raise an error if `X` is a Spark DataFrame that cannot be read as a stream, of PySpark before 4.2."""
    if type(X).__module__.partition(".")[0] == "pyspark" and not hasattr(X, "__arrow_c_stream__"):
        raise InputError(
            "X is a Spark DataFrame, which can be read as a stream from PySpark 4.2 on: pass X.toArrow() if it fits "
            "into memory, or let Spark write it, X.write.parquet(folder), and pass the folder"
        )


def frame_to_array(X: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Convert columns to a C-ordered array, float32 if all of them are; and return their names."""
    table = open_frame(X)
    values = np.empty(table.shape, common_dtype(table))
    copy_columns(table, values)
    return values, [str(name) for name in table.columns]


def empty_frame(columns: list[str]) -> Any:
    """A data frame with these columns and no rows."""
    import narwhals.stable.v2 as nw

    library = "polars" if "polars" in sys.modules else "pandas"
    dtypes = dict.fromkeys(columns, nw.Float64())
    return nw.from_dict({name: [] for name in columns}, dtypes, backend=library).to_native()


def common_dtype(frame: Any, remedy: str = ENCODE) -> type[np.floating[Any]]:
    """dtype of an array of all columns: float32 if all of them are, otherwise float64."""
    import narwhals.stable.v2 as nw

    dtypes = dict(open_frame(frame).schema)
    text = {name: str(dtype) for name, dtype in dtypes.items() if not (dtype.is_numeric() or dtype == nw.Boolean)}
    if text:
        listed = ", ".join(f"{name!r} ({dtype})" for name, dtype in text.items())
        raise InputError(f"X has columns that are not numbers: {listed}. {remedy}")
    return np.float32 if dtypes and all(dtype == nw.Float32 for dtype in dtypes.values()) else np.float64


def copy_batches(batches: Iterable[Any], values: np.ndarray[Any, Any]) -> bool:
    """Copy batches of rows to an array, one below the other; return whether they have as many rows as the array."""
    stop = 0
    for batch in batches:
        start, stop = stop, stop + len(batch)
        if stop > len(values):
            break
        copy_columns(batch, values[start:stop])
    return stop == len(values)


def copy_columns(frame: Any, values: np.ndarray[Any, Any]) -> None:
    """Copy the columns of a data frame to an array of its shape."""
    import narwhals.stable.v2 as nw

    target = nw.Float32 if values.dtype == np.float32 else nw.Float64
    for j, column in enumerate(open_frame(frame).iter_columns()):
        values[:, j] = column.cast(target).to_numpy()
