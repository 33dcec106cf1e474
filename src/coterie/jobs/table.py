"""Tables on disk: read whole, written back with their clusters."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import polars as pl

from coterie.core.errors import InputError, ParameterError

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = ".parquet"
ARRAY = ".npy"
MISSING_MARKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


@dataclass(frozen=True)
class Table:
    """A table as it was read, and with the type each column turned out to have.

    The two differ for text files only: there `raw` keeps every field as it was written, so that ``007`` and
    ``1.50`` come out of a text file as they went in.
    """

    path: Path
    raw: pl.DataFrame
    typed: pl.DataFrame

    @property
    def rows(self) -> int:
        return self.typed.height


def read(path: Path) -> Table:
    """Read a table, or say what stands in the way."""
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(_no_such_file(path))
    if path.is_dir():
        raise InputError(f'"{path}" is a folder; name a file in it.')
    with _readable(path):
        if suffix in SEPARATORS:
            raw = pl.read_csv(path, separator=SEPARATORS[suffix], infer_schema=False, glob=False)
            table = Table(path, raw, raw.with_columns(_parsed(column) for column in raw))
        elif suffix == PARQUET:
            frame = pl.read_parquet(path, glob=False)
            table = Table(path, frame, frame)
        elif suffix == ARRAY:
            frame = _array_frame(path)
            table = Table(path, frame, frame)
        else:
            raise InputError(f'cannot read "{path}": tables end in .csv, .tsv, .parquet or .npy.')
    if table.rows == 0:
        raise InputError(f"{path.name} has no rows.")
    return table


def check_output(path: Path, *, force: bool) -> None:
    """Refuse a place that cannot be written, before any work is done."""
    if path.suffix.lower() not in {*SEPARATORS, PARQUET}:
        raise ParameterError(f'cannot write "{path}": an output ends in .csv, .tsv or .parquet.')
    if not path.parent.is_dir():
        raise ParameterError(f'cannot write "{path}": there is no folder "{path.parent}".')
    if path.exists() and not force:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def write(table: Table, new: pl.DataFrame, path: Path, *, force: bool) -> None:
    """Write `table` with the columns of `new` beside its own; the file appears whole or not at all."""
    check_output(path, force=force)
    separator = SEPARATORS.get(path.suffix.lower())
    if separator is None:
        frame = table.typed.with_columns(new)
        _write_whole(path, frame.write_parquet)
    else:
        frame = table.raw.with_columns(new)
        _write_whole(path, lambda part: frame.write_csv(part, separator=separator))


def _write_whole(path: Path, write_to: Callable[[Path], None]) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write_to(part)
        os.replace(part, path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f'cannot write "{path}": {_first_line(error)}') from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except pl.exceptions.NoDataError as error:
        raise InputError(f"{path.name} is empty.") from error
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(f'cannot read "{path}": {_first_line(error)}') from error


def _array_frame(path: Path) -> pl.DataFrame:
    array = np.load(path, allow_pickle=False)
    if array.ndim != 2:
        raise InputError(f"{path.name} has {array.ndim} dimensions; it needs two, rows and columns.")
    if array.dtype.char not in "efd" and array.dtype.kind not in "iub":
        raise InputError(f"{path.name} holds {array.dtype.name}, not numbers.")
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    return pl.DataFrame({f"x{j}": array[:, j] for j in range(array.shape[1])})


def _parsed(column: pl.Series) -> pl.Series:
    """The column as integers, else as numbers, where every field but the missing ones is one."""
    text = column.str.strip_chars()
    present = text.set(text.is_in(MISSING_MARKS), None)
    for kind in (pl.Int64, pl.Float64):
        numbers = present.cast(kind, strict=False)
        if numbers.null_count() == present.null_count():
            return numbers
    return column


def _no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f'no file "{path}": there is no folder "{folder}".'
    where = "here" if folder == Path() else f'in "{folder}"'
    names: list[str] = []
    with suppress(OSError):
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    close = get_close_matches(path.name, names, n=1)
    hint = f" Did you mean {folder / close[0]}?" if close else ""
    return f'no file "{path.name}" {where}.{hint}'


def _first_line(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.splitlines()[0] if text else type(error).__name__
