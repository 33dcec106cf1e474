"""Workbooks: the cells of a sheet as text, which is cleaned and read as a text file is."""

import io
import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree
from zipfile import ZipFile

import polars as pl

from coterie import machine
from coterie.core.formatting import first_names
from coterie.data.tables import delimited_text
from coterie.data.tables.table_size import check_sheets, column_number, limit_memory, read_apart
from coterie.errors import InputError, ParameterError

SUFFIX = ".tsv"  # of the text of a sheet
LINE_BREAK = "\v"  # in cells of that text, so that a line is a row of the sheet
MIDNIGHT = " 00:00:00"
SheetCells: TypeAlias = tuple[list[str], str, pl.DataFrame]
MERGED = re.compile(rb'mergeCell [^>]*ref="([A-Z]+)([1-9]\d*):[A-Z]+([1-9]\d*)"')


def read_workbook(
    path: Path, sheet: str | None = None, header_row: int | None = None
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    """The rows of a sheet as text and as numbers, and notes; by default of the first visible sheet with a table.

    `header_row` is the row of the column names, counted from 1; None: it is found.
    """
    if find_spec("fastexcel") is None:
        raise ParameterError(f'reading {path.suffix.lower()} needs one more package. Run: pip install "coterie[excel]"')
    if path.suffix.lower() == ".xlsx":
        check_sheets(path)  # its extent is known before it is read
        names, name, cells = read_cells(path, sheet)
    else:
        names, name, cells = _read_apart(path, sheet)
    content = cells.write_csv(separator="\t", include_header=False).rstrip().encode()
    raw, layout = delimited_text.read_text(content, SUFFIX, header_row, "row")
    raw = raw.rename(lambda column: column.replace(LINE_BREAK, " ").removesuffix(MIDNIGHT))
    raw = raw.with_columns(_with_dates(column.str.replace_all(LINE_BREAK, "\n", literal=True)) for column in raw)
    texts = raw.select(pl.col(pl.String))  # "1,5" is not read as a number here: its cell is text
    typed = raw.with_columns(delimited_text.parse(column, ",") for column in texts)
    others = [each for each in names if each != name]
    choice = [f'sheet "{name}" was read; --sheet reads another: {first_names(others)}.'] if others and not sheet else []
    return raw, typed, (*choice, *layout.notes)


def _read_apart(path: Path, sheet: str | None) -> SheetCells:
    """The cells of other workbooks, read by a process with limited memory: without any, the reader ends its process."""
    answer = read_apart(__name__, path, machine.free_memory(), "its sheets", json.dumps(sheet))
    head, _, content = answer.partition(b"\n")
    names, name, problem, is_damaged = json.loads(head)
    if problem is not None:
        raise ValueError(problem) if is_damaged else InputError(problem)
    return names, name, pl.read_ipc(content)


def _answer(path: Path, sheet: str | None) -> bytes:
    """What the process of `_read_apart` prints: names of sheets, the name of the one it read, and the cells."""
    try:
        names, name, cells = read_cells(path, sheet)
    except (InputError, ValueError) as error:
        return json.dumps([[], "", str(error), not isinstance(error, InputError)]).encode() + b"\n"
    content = io.BytesIO()
    cells.write_ipc(content)
    return json.dumps([names, name, None, False]).encode() + b"\n" + content.getvalue()


def read_cells(path: Path, sheet: str | None) -> SheetCells:
    """Names of the sheets, the name of the one that is read, and its cells as text."""
    import fastexcel

    try:
        workbook = fastexcel.read_excel(path)
        names = workbook.sheet_names
        if not names:
            raise InputError(f"{path.name} has no sheets.")
        if sheet is not None and sheet not in names:
            raise InputError(f'{path.name} has no sheet "{sheet}". Sheets: {first_names(names)}')
        name = sheet or max(names, key=lambda each: _visible_size(workbook, each))  # of equal ones the first
        return names, name, _cells(workbook, path, name)
    except fastexcel.FastExcelError as error:
        raise ValueError(str(error)) from error
    except (ElementTree.ParseError, KeyError, StopIteration) as error:  # of merged cells
        raise ValueError("it is damaged. Save it again as a workbook.") from error


def _visible_size(workbook: Any, name: str) -> int:
    """2 for a visible sheet of several rows and columns, 1 for one that is smaller, as covers are, and 0 for others."""
    sheet = workbook.load_sheet(name, header_row=None, n_rows=0)
    has_table = sheet.total_height > 1 and len(sheet.available_columns()) > 1
    return 1 + has_table if sheet.visible == "visible" and sheet.total_height > 0 else 0


def _cells(workbook: Any, path: Path, name: str) -> pl.DataFrame:
    """All cells of a sheet as text, from its first row on; each of several merged cells has the value of the first."""

    def load(dtype: str) -> Any:
        return workbook.load_sheet(name, header_row=None, skip_rows=0, dtypes=dtype)

    sheet = load("string")
    if sheet.total_height == 0:
        raise InputError(f'sheet "{name}" of {path.name} is empty. Sheets: {first_names(workbook.sheet_names)}')
    texts, numbers = pl.DataFrame(sheet), pl.DataFrame(load("float"))
    columns = []
    for text, number in zip(texts, numbers, strict=True):
        rounded = text.cast(pl.Float64, strict=False)  # the text of a number has 9 decimals
        columns.append(text.replace("", None).zip_with((rounded == number).fill_null(True), number.cast(pl.String)))
    cells = pl.DataFrame([column.str.replace_all(r"\r?\n|\r", LINE_BREAK) for column in columns])
    start = sheet.available_columns()[0].absolute_index
    for top, left, bottom in _merged_cells(path, name) if path.suffix.lower() == ".xlsx" else ():
        rows = list(range(top, min(bottom, cells.height)))
        if rows and 0 <= left - start < cells.width:
            cells[rows, left - start] = cells[top, left - start]
    return cells


def _merged_cells(path: Path, name: str) -> list[tuple[int, int, int]]:
    """Merged cells of a sheet of an .xlsx file: first row, column, and the row after the last."""
    with ZipFile(path) as file:
        sheets = [each.attrib for each in ElementTree.fromstring(file.read("xl/workbook.xml")).iter()]
        sheet = next(each for each in sheets if each.get("name") == name and each.get("sheetId"))
        number = next(value for key, value in sheet.items() if key.endswith("}id"))
        relations = ElementTree.fromstring(file.read("xl/_rels/workbook.xml.rels"))
        target = next(each.attrib["Target"] for each in relations if each.attrib["Id"] == number)
        content = file.read(target.lstrip("/") if target.startswith("/") else f"xl/{target}")
    found = MERGED.findall(content)
    return [(int(top) - 1, column_number(left) - 1, int(bottom)) for left, top, bottom in found if top != bottom]


def _with_dates(column: pl.Series) -> pl.Series:
    """The column as dates if each of its cells is one, which a sheet has as ``2024-05-01 00:00:00``."""
    times = column.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
    if times.null_count() > column.null_count() or times.null_count() == len(column):
        return column
    has_time = (times.dt.truncate("1d") != times).any()
    return times if has_time else times.cast(pl.Date)


if __name__ == "__main__":
    limit_memory(int(sys.argv[2]))
    sys.stdout.buffer.write(_answer(Path(sys.argv[1]), json.loads(sys.argv[3])))
