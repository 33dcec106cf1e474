"""What names rows without holding them, files and queries, as the rows themselves."""

from __future__ import annotations

import sys
from glob import glob
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    import polars as pl

    from coterie.data.tables.scan import Scan

PATTERN = frozenset("*?[")


class NamedRows(np.ndarray[Any, Any]):
    """Rows of a table with the names of its columns; what is cut out of them is an array like any other."""

    columns: list[str] | None = None


def read(path: str | PathLike[str]) -> np.ndarray[Any, Any]:
    """The rows of a table in a file, read once, or in all Parquet files of a pattern; an .npy file is mapped."""
    path = Path(path)
    many = path.suffix.lower() == ".parquet" and PATTERN.intersection(str(path)) and not path.exists()
    if many and not glob(str(path), recursive=True):
        raise InputError(f"X: no file fits the pattern {str(path)!r}")
    if not many:
        _check_there(path)
    if path.suffix.lower() == ".npy":
        return _mapped(path)
    try:
        from coterie.data.tables import scan as tables
    except ModuleNotFoundError as error:
        raise ParameterError(f"reading {path.suffix} needs one more package. Run: pip install polars") from error
    if path.suffix.lower() not in tables.SUFFIXES:
        raise InputError(
            f"X is the path {str(path)!r}; files that end in {', '.join(tables.SUFFIXES)} are read by their path, "
            "load others first"
        )
    return _named(tables.scan_many(path) if many else tables.scan(path))


def is_query(X: Any) -> bool:
    """Whether `X` is a Polars LazyFrame."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(X, polars.LazyFrame)


def is_polars_frame(X: Any) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(X, polars.DataFrame)


def flattened(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with its vectors in columns."""
    from coterie.data.tables import vector_columns as nested

    return nested.flattened(frame)


def computed(query: pl.LazyFrame) -> np.ndarray[Any, Any]:
    """The rows of a LazyFrame, some at a time."""
    from coterie.data.tables import scan as tables

    return _named(tables.scan_frame(query))


def _named(table: Scan) -> NamedRows:
    from coterie.data.tables import scan as tables

    rows = tables.matrix(table).view(NamedRows)
    rows.columns = list(table.schema)
    return rows


def _check_there(path: Path) -> None:
    if not path.exists():
        raise InputError(f"X: there is no file {str(path)!r}")
    if path.is_dir():
        raise InputError(
            f"X: {str(path)!r} is a folder; name a file in it, or all of them: {str(path / '*.parquet')!r}"
        )


def _mapped(path: Path) -> np.ndarray[Any, Any]:
    try:
        rows: np.ndarray[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return rows
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"X: {str(path)!r} cannot be read as an array of numbers: {error}") from None
