"""The same rows in other containers: order, strides, types of numbers, frames, files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

Array = np.ndarray[Any, Any]


def read_only(X: Array) -> Array:
    X = X.copy()
    X.flags.writeable = False
    return X


def every_other_row(X: Array) -> Array:
    return np.repeat(X, 2, axis=0)[::2]


def backwards(X: Array) -> Array:
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def unaligned(X: Array) -> Array:
    """Rows at an address that is no multiple of their size."""
    room = np.empty(X.nbytes + 1, np.uint8)[1:]
    view = room.view(X.dtype).reshape(X.shape)
    view[...] = X
    return view


def swapped_bytes(X: Array) -> Array:
    return X.astype(X.dtype.newbyteorder())


def memory_map(X: Array) -> Array:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, X.dtype, "w+", shape=X.shape)
        mapped[...] = X
        return mapped


def _named(X: Array) -> dict[str, Array]:
    return {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}


def pandas_frame(X: Array) -> Any:
    return pd.DataFrame(_named(X))


def polars_frame(X: Array) -> Any:
    return pl.DataFrame(_named(X))


def arrow_table(X: Array) -> Any:
    return pa.table(_named(X))


def nested_lists(X: Array) -> Any:
    return X.astype(np.float64).tolist()


DENSE: tuple[Callable[[Array], Any], ...] = (
    np.asfortranarray, read_only, every_other_row, backwards, unaligned, swapped_bytes, memory_map, pandas_frame,
    polars_frame, arrow_table,
)  # fmt: skip


def csr(X: Array) -> Any:
    """The rows as a sparse array; zeros are not stored."""
    return sparse.csr_array(X)
