"""Readers of whole files, by the suffix of the file name."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from coterie.data.tables.array_files import ARRAYS, array_frame, load_array
from coterie.data.tables.vector_columns import flatten
from coterie.errors import ParameterError

EXCEL_PACKAGE = "fastexcel"
TEXT = (".csv", ".tsv", ".txt")
BATCHED = (*TEXT, ".parquet", ".arrow", ".feather", ".ndjson", ".jsonl", ".npy")  # can be read in batches of rows


def _read_excel(path: Path) -> pl.DataFrame:
    """The first sheet of a workbook."""
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"reading {path.suffix.lower()} needs one more package. Run: pip install {EXCEL_PACKAGE}"
        ) from error
    try:
        return pl.read_excel(path)
    except fastexcel.FastExcelError as error:
        raise ValueError(str(error)) from error


FRAMES: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": lambda path: flatten(pl.read_parquet(path, glob=False)),
    ".arrow": lambda path: flatten(pl.read_ipc(path)),
    ".feather": lambda path: flatten(pl.read_ipc(path)),
    ".ndjson": lambda path: flatten(pl.read_ndjson(path)),
    ".jsonl": lambda path: flatten(pl.read_ndjson(path)),
    ".xlsx": _read_excel,
    ".xls": _read_excel,
    ".ods": _read_excel,
    **dict.fromkeys(ARRAYS, lambda path: array_frame(load_array(path), path.name)),
}
READABLE = (*TEXT, *FRAMES)
