"""Sizes of tables, from their files and before a reader allocates memory: one that gets none ends the process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

import numpy as np

from coterie import machine
from coterie.core.formatting import count, format_bytes
from coterie.errors import InputError

if TYPE_CHECKING:
    import polars as pl

COLUMN = 4096  # bytes of a column without its values
START = 1 << 29  # bytes of a process with its libraries
CELL = 64  # bytes of a cell of a sheet: in the reader, as text and as a number
CHUNK = 1 << 20
# Starts of rows and cells of a sheet, and references such as r="B7". Cells without one are beside each other.
POSITION = re.compile(rb"""<(?:[^\s<>/:]*:)?(row|c)(?=[\s/>])|\sr\s*=\s*["']([A-Za-z]*)(\d+)["']""")
LONGEST = 1 << 24  # bytes of a tag with the text after it
WIDTHS = {  # bytes of a value, by the name of its type; 8 for others
    "Boolean": 1 / 8, "Null": 0.0, "Int8": 1.0, "UInt8": 1.0, "Int16": 2.0, "UInt16": 2.0, "Int32": 4.0, "UInt32": 4.0,
    "Float32": 4.0, "Date": 4.0, "Categorical": 4.0, "Enum": 4.0,
}  # fmt: skip


def column_number(letters: bytes) -> int:
    """The number of a column, from 1: of ``A``, ``B``, …, ``AA``."""
    return reduce(lambda number, letter: 26 * number + letter - ord("A") + 1, letters.upper(), 0)


def check_rows(path: Path, n_rows: int, n_columns: int, nbytes: float) -> None:
    """Reject a table that does not fit into memory, with its size."""
    free = machine.free_memory()
    if nbytes > free:
        raise InputError(
            f"{path.name} has {count(n_rows, 'row')} and {count(n_columns, 'column')}, which take about "
            f"{format_bytes(nbytes)} of memory, but only {format_bytes(free)} are free: remove empty rows and columns, "
            "write fewer of them, or use a machine with more memory."
        )


def frame_size(path: Path) -> float:
    """Bytes of the table in a Parquet or Arrow file, by its footer; of lists by reading them."""
    import polars as pl

    from coterie.data.tables.lazy_frames import scanned

    with scanned(path) as lazy:
        schema = lazy.collect_schema()
        n_rows = int(lazy.select(pl.len()).collect(engine="streaming").item())
    nbytes = float(n_rows) * sum(map(_value_bytes, schema.values()))
    if any(dtype in (pl.List, pl.Struct) for dtype in schema.values()):
        answer = read_apart(__name__, path, machine.free_memory() // 2, "it has lists that")
        longest, nested = json.loads(answer)
        check_rows(path, n_rows, len(schema) + longest, float(COLUMN * longest))
        nbytes += nested
    return nbytes


def read_apart(module: str, path: Path, free: int, what: str, *words: str) -> bytes:
    """What a module prints about a file in a process with limited memory: readers that get none end their process."""
    command = [sys.executable, "-m", module, str(path), str(START + free), *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    if not done.stdout:
        raise InputError(
            f'"{path}" could not be read: {what} may need more memory than the {format_bytes(free)} that are free '
            "for it, or it is damaged."
        )
    return done.stdout


def limit_memory(free: int) -> None:
    """Limit the memory of this process."""
    with suppress(ImportError, ValueError):  # not on Windows; or the limit is already lower
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (free, free))


def _nested_size(path: Path) -> tuple[int, int]:
    """Elements of the longest list in a file, and bytes of all lists and records."""
    import polars as pl

    from coterie.data.tables.lazy_frames import scanned

    sizes = [(0, 0)]

    def add(batch: pl.DataFrame) -> None:
        lengths = batch.select(pl.selectors.by_dtype(pl.List).list.len().max())
        sizes.append(
            (max((n or 0 for row in lengths.iter_rows() for n in row), default=0), int(batch.estimated_size()))
        )

    with scanned(path) as lazy:
        lazy.select(pl.selectors.by_dtype(pl.List, pl.Struct)).sink_batches(add)
    longest, nbytes = zip(*sizes, strict=True)
    return max(longest), sum(nbytes)


def _value_bytes(dtype: pl.DataType) -> float:
    """Bytes of a value; of text and lists only those of their place."""
    name = dtype.base_type().__name__
    if name == "Array":
        return float(np.prod(dtype.shape)) * _value_bytes(dtype.inner)  # type: ignore[attr-defined]
    return WIDTHS.get(name, 8.0)


def check_sheets(path: Path) -> None:
    """Reject an .xlsx file whose parts, or a sheet of which, do not fit into memory; declared sizes are not trusted."""
    size = 0
    with _archive(path) as file:
        for info in file.infolist():
            info.file_size = sys.maxsize  # read to the end of the data, whatever the file says
            bottom = right = row = column = 0
            rest = b""
            with file.open(info) as part:
                while chunk := part.read(CHUNK):
                    size += len(chunk)
                    machine.check_memory(size, f"{path.name}, decompressed,", "save it with fewer cells.")
                    content, tag, rest = (rest + chunk).rpartition(b"<")
                    rest = tag + rest
                    if len(rest) > LONGEST:
                        raise InputError(f'cannot read "{path}": it is damaged. Save it again as a workbook.')
                    for tag, letters, digits in POSITION.findall(content):
                        if tag == b"row":
                            row, column = row + 1, 0
                        elif tag:
                            column += 1
                        else:
                            row, column = int(digits), column_number(letters)
                        bottom, right = max(bottom, row), max(right, column)
            check_rows(path, bottom, right, float(bottom) * right * CELL)


def check_arrays(path: Path) -> None:
    """Reject an .npz file whose arrays do not fit into memory, by their headers."""
    with _archive(path) as file:
        for info in file.infolist():
            shape: tuple[int, ...] = (info.file_size, 1)
            nbytes = float(info.file_size)
            if info.filename.endswith(".npy"):
                with file.open(info) as part:
                    is_first = np.lib.format.read_magic(part) == (1, 0)
                    read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
                    shape, _, dtype = read(part)
                nbytes = float(np.prod(shape, dtype=float)) * dtype.itemsize
            rows, columns = (*shape, 1, 1)[:2]
            check_rows(path, rows, columns, nbytes)


@contextmanager
def _archive(path: Path) -> Iterator[ZipFile]:
    try:
        with ZipFile(path) as file:
            yield file
    except (BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:  # also encrypted ones
        raise ValueError(f"it is damaged or encrypted ({error}).") from error


if __name__ == "__main__":
    limit_memory(int(sys.argv[2]))
    print(json.dumps(_nested_size(Path(sys.argv[1]))))
