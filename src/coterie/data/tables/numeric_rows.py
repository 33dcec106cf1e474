"""Files and LazyFrames as one array of numbers, for estimators."""

from __future__ import annotations

from glob import glob
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.data.tables.array_files import ARRAYS, load_array
from coterie.data.tables.read_errors import check_file, readable
from coterie.errors import InputError, ParameterError

if TYPE_CHECKING:
    import polars as pl

    from coterie.data.tables.scan import Scan

PATTERN = frozenset("*?[")


class NamedRows(np.ndarray[Any, Any]):
    """Rows of a table with its column names; slices of it are ordinary arrays."""

    columns: list[str] | None = None


def read(path: str | PathLike[str]) -> np.ndarray[Any, Any]:
    """The rows of a file, or of all Parquet files that match a pattern; an .npy file is memory-mapped."""
    path = Path(path)
    suffix = path.suffix.lower()
    is_pattern = suffix == ".parquet" and PATTERN.intersection(str(path)) and not path.exists()
    if is_pattern and not glob(str(path), recursive=True):
        raise InputError(f'no file matches the pattern "{path}".')
    if path.is_dir():
        raise InputError(f'"{path}" is a folder; name a file in it, or all of them: "{path / "*.parquet"}".')
    if not is_pattern:
        check_file(path)
    if suffix in ARRAYS:
        with readable(path):
            return load_array(path, mmap_mode="r")
    try:
        from coterie.data.tables import scan
    except ModuleNotFoundError as error:
        raise ParameterError(f"reading {path.suffix} needs one more package. Run: pip install polars") from error
    table = scan.scan_pattern(path) if is_pattern else scan.scan(path)
    if table.n_rows == 0:
        raise InputError(f"{path.name} has no rows.")
    return _named(table)


def collect(query: pl.LazyFrame) -> np.ndarray[Any, Any]:
    """The rows of a LazyFrame, computed in batches."""
    from coterie.data.tables import scan

    return _named(scan.scan_frame(query))


def relation_rows(relation: Any) -> Any:
    """The rows of a relation of DuckDB as a frame, through Arrow."""
    try:
        import polars as pl

        from coterie.data.tables.vector_columns import flatten
    except ModuleNotFoundError:
        return relation.to_arrow_table()
    return flatten(pl.DataFrame(relation))


def _named(table: Scan) -> NamedRows:
    from coterie.data.tables import scan

    rows = scan.matrix(table).view(NamedRows)
    rows.columns = list(table.schema)
    return rows
