"""Tables of any frame library, through narwhals."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from coterie.errors import InputError

ENCODE = "Drop them, or encode them first (one column a category)"


def is_frame(X: Any) -> bool:
    """Whether `X` is a table in memory; one of Dask is not."""
    if hasattr(X, "__dask_graph__"):
        return False
    return hasattr(X, "__dataframe__") or hasattr(X, "__narwhals_dataframe__") or hasattr(X, "__arrow_c_stream__")


def frame_to_array(X: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """The columns as a C-ordered array, float32 if all of them are; and their names."""
    import narwhals.stable.v2 as nw

    refuse_odd_shapes(X)
    table = nw.from_native(X, eager_only=True)
    values = np.empty(table.shape, number_type(table))
    put(table, values)
    return values, [str(name) for name in table.columns]


def header(columns: list[str]) -> Any:
    """A frame of these columns and no rows."""
    import narwhals.stable.v2 as nw

    library = "polars" if "polars" in sys.modules else "pandas"
    kinds = dict.fromkeys(columns, nw.Float64())
    return nw.from_dict({name: [] for name in columns}, kinds, backend=library).to_native()


def number_type(frame: Any, remedy: str = ENCODE) -> type[np.floating[Any]]:
    """What holds the columns of a frame side by side: float32 if all of them are, else float64."""
    import narwhals.stable.v2 as nw

    kinds = dict(nw.from_native(frame, eager_only=True).schema)
    text = {name: str(kind) for name, kind in kinds.items() if not (kind.is_numeric() or kind == nw.Boolean)}
    if text:
        found = ", ".join(f"{name!r} ({kind})" for name, kind in text.items())
        raise InputError(f"X has columns that are not numbers: {found}. {remedy}")
    return np.float32 if kinds and all(kind == nw.Float32 for kind in kinds.values()) else np.float64


def put(frame: Any, values: np.ndarray[Any, Any]) -> None:
    """The columns of a frame into an array of its shape."""
    import narwhals.stable.v2 as nw

    target = nw.Float32 if values.dtype == np.float32 else nw.Float64
    for j, column in enumerate(nw.from_native(frame, eager_only=True).iter_columns()):
        values[:, j] = column.cast(target).to_numpy()


def refuse_odd_shapes(X: Any) -> None:
    """Refuses one column without a table, and two of one name."""
    if hasattr(X, "to_frame"):
        raise InputError("X is a series, one column without a table: pass X.to_frame()")
    names = [str(name) for name in getattr(X, "column_names", getattr(X, "columns", []))]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"X has more than one column called {', '.join(map(repr, twice))}: rename or drop the others")
