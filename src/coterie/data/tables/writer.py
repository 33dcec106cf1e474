"""Writes frames to files, batch by batch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from coterie.data.tables import delimited_text
from coterie.errors import InputError

# A leading quote makes spreadsheet programs show a cell as text. Some also accept full-width forms of the signs.
FORMULA = r"^(\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n])"
QUOTE = "'"

MAX_EXCEL_ROWS = 1_048_575  # below the header


def _write_excel(lazy: pl.LazyFrame, path: Path) -> None:
    """Write a sheet; text stays text, also if it looks like a formula or an address."""
    from xlsxwriter import Workbook

    frame = lazy.collect()
    if frame.height > MAX_EXCEL_ROWS:
        raise InputError(
            f"an .xlsx file has at most {MAX_EXCEL_ROWS:,} rows; the table has {frame.height:,}: use .csv."
        )
    options = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    with path.open("wb") as file, Workbook(file, options) as workbook:
        frame.write_excel(workbook, "table", autofit=True)


WRITERS: dict[str, Callable[[pl.LazyFrame, Path], Any]] = {
    ".csv": lambda frame, path: frame.sink_csv(path),
    ".tsv": lambda frame, path: frame.sink_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.sink_parquet(path),
    ".arrow": lambda frame, path: frame.sink_ipc(path),
    ".feather": lambda frame, path: frame.sink_ipc(path),
    ".xlsx": _write_excel,
    ".ndjson": lambda frame, path: frame.sink_ndjson(path),
    ".jsonl": lambda frame, path: frame.sink_ndjson(path),
}
LABELS_ONLY = ".npy"
WRITABLE = (*WRITERS, LABELS_ONLY)


def write(frames: Iterator[pl.DataFrame], path: Path, *, safe_csv: bool = False) -> None:
    """Write frames one below the other, each released before the next; `safe_csv` writes formulas as text."""
    frames = map(escape_formulas, frames) if safe_csv else frames
    first = next(frames)
    errors: list[BaseException] = []

    def batches(*_: Any) -> Iterator[pl.DataFrame]:
        try:
            yield first
            yield from frames
        except GeneratorExit:  # Polars stops early and raises its own error
            raise
        except BaseException as error:
            errors.append(error)  # Polars replaces it with an error of its own
            raise

    try:
        WRITERS[path.suffix.lower()](register_io_source(batches, schema=first.schema), path)
    except pl.exceptions.PolarsError:
        if errors:
            raise errors[0] from None
        raise


def escape_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Put a quote before each text and column name that starts like a formula; numbers stay as they are."""
    names = pl.Series("", frame.columns, dtype=pl.String)
    return frame.with_columns(
        _quoted(column.cast(pl.String)) for column in frame if column.dtype.base_type() in delimited_text.TEXT_TYPES
    ).rename(dict(zip(frame.columns, _quoted(names).to_list(), strict=True)))


def _quoted(column: pl.Series) -> pl.Series:
    is_formula = column.str.contains(FORMULA) & delimited_text.is_not_number(column)
    return column.zip_with(~is_formula.fill_null(False), QUOTE + column)
