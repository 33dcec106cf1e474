"""Files and LazyFrames as one array of numbers, for estimators."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.core.packages import required
from coterie.data.tables.array_files import load_array
from coterie.data.tables.read_errors import check_table_file, readable
from coterie.data.tables.suffixes import ARRAYS
from coterie.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from coterie.data.tables.scan import Scan


class NamedRows(np.ndarray[Any, Any]):
    """Rows of a table with its column names; slices of it are ordinary arrays."""

    columns: list[str] | None = None


def named(X: np.ndarray[Any, Any], columns: list[str] | None) -> NamedRows:
    """The rows of an array with the names of its columns."""
    rows = X.view(NamedRows)
    rows.columns = columns
    return rows


def read(path: str | PathLike[str]) -> np.ndarray[Any, Any]:
    """The rows of a file on this machine; an .npy file is memory-mapped."""
    path = Path(path)
    suffix = path.suffix.lower()
    check_table_file(path)
    if suffix in ARRAYS:
        with readable(path):
            return load_array(path, mmap_mode="r")
    with required(f"reading {path.suffix} needs one more package. Run: pip install polars"):
        from coterie.data.tables import scan
    table = scan.scan(path)
    if table.n_rows == 0:
        raise InputError(f"{path.name} has no rows.")
    return _named(table)


def collect(query: pl.LazyFrame) -> np.ndarray[Any, Any]:
    """The rows of a LazyFrame, computed in batches."""
    from coterie.data.tables import scan

    return _named(scan.scan_frame(query))


def _named(table: Scan) -> NamedRows:
    from coterie.data.tables import scan

    return named(scan.matrix(table), list(table.schema))
