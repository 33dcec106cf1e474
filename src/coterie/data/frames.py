"""Tables of any frame library, through narwhals."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.core.errors import InputError


def is_frame(X: Any) -> bool:
    return hasattr(X, "__dataframe__") or hasattr(X, "__narwhals_dataframe__") or hasattr(X, "__arrow_c_stream__")


def frame_to_array(X: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """The columns as a C-ordered array, float32 if all of them are; and their names."""
    import narwhals.stable.v2 as nw

    _refuse_odd_shapes(X)
    table = nw.from_native(X, eager_only=True)
    text = {name: str(kind) for name, kind in table.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)}
    if text:
        found = ", ".join(f"{name!r} ({kind})" for name, kind in text.items())
        raise InputError(
            f"X has columns that are not numbers: {found}. Drop them, or encode them first (one column a category)"
        )
    single = len(table.columns) > 0 and all(kind == nw.Float32 for kind in table.schema.values())
    target = nw.Float32 if single else nw.Float64
    values = np.empty(table.shape, np.float32 if single else np.float64)
    for j, column in enumerate(table.iter_columns()):
        values[:, j] = column.cast(target).to_numpy()
    return values, [str(name) for name in table.columns]


def _refuse_odd_shapes(X: Any) -> None:
    if hasattr(X, "to_frame"):
        raise InputError("X is a series, one column without a table: pass X.to_frame()")
    names = [str(name) for name in getattr(X, "column_names", getattr(X, "columns", []))]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"X has more than one column called {', '.join(map(repr, twice))}: rename or drop the others")
