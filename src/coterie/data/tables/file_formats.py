"""Readers of whole files, by the suffix of the file name."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from coterie.data.tables.array_files import array_frame, load_array
from coterie.data.tables.suffixes import ARRAYS, EXCEL
from coterie.data.tables.vector_columns import flatten
from coterie.data.tables.workbooks import read_workbook

FRAMES: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": lambda path: flatten(pl.read_parquet(path, glob=False)),
    ".arrow": lambda path: flatten(pl.read_ipc(path)),
    ".feather": lambda path: flatten(pl.read_ipc(path)),
    ".ndjson": lambda path: flatten(pl.read_ndjson(path)),
    ".jsonl": lambda path: flatten(pl.read_ndjson(path)),
    **dict.fromkeys(EXCEL, lambda path: read_workbook(path)[1]),
    **dict.fromkeys(ARRAYS, lambda path: array_frame(load_array(path), path.name)),
}
