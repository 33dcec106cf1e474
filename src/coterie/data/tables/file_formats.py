"""Files of many kinds as frames."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from coterie.core.errors import InputError, ParameterError
from coterie.data.tables import delimited_text as text
from coterie.data.tables.scan import TEXT, array_frame, load_array
from coterie.data.tables.vector_columns import flattened
from coterie.data.tables.writer import without_formulas

EXCEL_PACKAGE = "fastexcel"
STANDARD_INPUT = Path("-")


def text_frame(path: Path) -> tuple[pl.DataFrame, text.Layout]:
    """Every field of a delimited file as it is written, and how they stand in it."""
    content = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
    return text.frame(content, path.suffix)


def excel_frame(path: Path) -> pl.DataFrame:
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


def npy_frame(path: Path) -> pl.DataFrame:
    return array_frame(load_array(path), path.name)


def npz_frame(path: Path) -> pl.DataFrame:
    if not is_zipfile(path):
        raise ValueError("it is not an .npz file.")
    with np.load(path, allow_pickle=False) as arrays:
        return array_frame(_only_table(path, dict(arrays)), path.name)


def safetensors_frame(path: Path) -> pl.DataFrame:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return array_frame(_only_table(path, load(path.read_bytes())), path.name)
    except SafetensorError as error:
        raise InputError(f'cannot read "{path}": {error}') from error


def _only_table(path: Path, arrays: dict[str, Any]) -> Any:
    """The one array that has rows and columns."""
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        held = ", ".join(f"{name} {array.shape}" for name, array in sorted(arrays.items())) or "nothing"
        raise InputError(f"{path.name} must hold one array of rows and columns; it holds {held}.")
    return arrays[tables[0]]


ARRAYS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".npy": npy_frame,
    ".npz": npz_frame,
    ".safetensors": safetensors_frame,
}
FRAMES: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": lambda path: flattened(pl.read_parquet(path, glob=False)),
    ".arrow": lambda path: flattened(pl.read_ipc(path)),
    ".feather": lambda path: flattened(pl.read_ipc(path)),
    ".ndjson": lambda path: flattened(pl.read_ndjson(path)),
    ".jsonl": lambda path: flattened(pl.read_ndjson(path)),
    ".xlsx": excel_frame,
    ".xls": excel_frame,
    ".ods": excel_frame,
}
READABLE = (*TEXT, *FRAMES, *ARRAYS)

WRITERS: dict[str, Callable[[pl.LazyFrame, Path], Any]] = {
    ".csv": lambda frame, path: frame.sink_csv(path),
    ".tsv": lambda frame, path: frame.sink_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.sink_parquet(path),
    ".arrow": lambda frame, path: frame.sink_ipc(path),
    ".feather": lambda frame, path: frame.sink_ipc(path),
    ".ndjson": lambda frame, path: frame.sink_ndjson(path),
    ".jsonl": lambda frame, path: frame.sink_ndjson(path),
}
LABELS_ONLY = ".npy"
WRITABLE = (*WRITERS, LABELS_ONLY)


def write(frames: Iterator[pl.DataFrame], path: Path, *, safe_csv: bool = False) -> None:
    """Write frames of the same columns one below the other; each is let go before the next is asked for.

    With `safe_csv`, no cell of text is a formula to a spreadsheet program.
    """
    frames = map(without_formulas, frames) if safe_csv else frames
    first = next(frames)
    failed: list[BaseException] = []

    def rows(*_: Any) -> Iterator[pl.DataFrame]:
        try:
            yield first
            yield from frames
        except GeneratorExit:  # Polars gives up, and says why itself
            raise
        except BaseException as error:
            failed.append(error)  # Polars tells of its own kind of error in place of it
            raise

    try:
        WRITERS[path.suffix.lower()](register_io_source(rows, schema=first.schema), path)
    except pl.exceptions.PolarsError:
        if failed:
            raise failed[0] from None
        raise
