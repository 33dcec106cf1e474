"""Readers of whole files, by the suffix of the file name."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from coterie.core.formatting import first_names
from coterie.data.tables.array_files import array_frame, load_array
from coterie.data.tables.suffixes import ARRAYS, EXCEL
from coterie.data.tables.vector_columns import flatten
from coterie.errors import InputError, ParameterError


def read_excel(path: Path, sheet: str | None = None, header_row: int | None = None) -> pl.DataFrame:
    """A sheet of a workbook, by default the first; `header_row` is the row of the column names, counted from 1."""
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise ParameterError(
            f'reading {path.suffix.lower()} needs one more package. Run: pip install "coterie[excel]"'
        ) from error
    try:
        names = fastexcel.read_excel(path).sheet_names
        if sheet is not None and sheet not in names:
            raise InputError(f'{path.name} has no sheet "{sheet}". Sheets: {first_names(names)}')
        options = {} if header_row is None else {"header_row": header_row - 1}
        return pl.read_excel(path, sheet_name=sheet or names[0], read_options=options)
    except fastexcel.FastExcelError as error:
        raise ValueError(str(error)) from error


FRAMES: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": lambda path: flatten(pl.read_parquet(path, glob=False)),
    ".arrow": lambda path: flatten(pl.read_ipc(path)),
    ".feather": lambda path: flatten(pl.read_ipc(path)),
    ".ndjson": lambda path: flatten(pl.read_ndjson(path)),
    ".jsonl": lambda path: flatten(pl.read_ndjson(path)),
    **dict.fromkeys(EXCEL, read_excel),
    **dict.fromkeys(ARRAYS, lambda path: array_frame(load_array(path), path.name)),
}
