"""Parquet, Arrow and JSON files on this machine as LazyFrames."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from coterie.data.tables.suffixes import JSON_LINES


@contextmanager
def scanned(path: Path) -> Iterator[pl.LazyFrame]:
    """Context with all rows of a file. Only the rows and columns that are selected are decoded."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield pl.scan_parquet(path, glob=False)
        return
    with path.open("rb") as file:  # Polars would interpret some file names as patterns
        yield pl.scan_ndjson(file) if suffix in JSON_LINES else pl.scan_ipc(file)
