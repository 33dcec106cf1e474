"""Tables: read whole, written back with their clusters."""

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
from coterie.jobs import formats
from coterie.jobs.formats import STANDARD_INPUT

LABEL = "cluster"
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
    def name(self) -> str:
        return "standard input" if self.path == STANDARD_INPUT else self.path.name

    @property
    def rows(self) -> int:
        return self.typed.height

    @property
    def is_array(self) -> bool:
        """Whether columns have no names of their own, and a unit in common."""
        return self.path.suffix.lower() in formats.ARRAYS


def read(path: Path) -> Table:
    """Read a table, or say what stands in the way."""
    suffix = path.suffix.lower()
    if path != STANDARD_INPUT:
        check_there(path)
    with _readable(path):
        if path == STANDARD_INPUT or suffix in formats.TEXT:
            raw, separator = formats.text_frame(path)
            table = Table(path, raw, raw.with_columns(_parsed(column, separator) for column in raw))
        elif suffix in formats.FRAMES or suffix in formats.ARRAYS:
            frame = (formats.FRAMES | formats.ARRAYS)[suffix](path)
            table = Table(path, frame, frame)
        else:
            raise InputError(f'cannot read "{path}": tables end in {_listed(formats.READABLE)}.')
    if table.rows == 0:
        raise InputError(f"{table.name} has no rows.")
    return table


def check_output(path: Path, *, force: bool) -> None:
    """Refuse a place that cannot be written, before any work is done."""
    if path.suffix.lower() not in formats.WRITABLE:
        raise ParameterError(f'cannot write "{path}": an output ends in {_listed(formats.WRITABLE)}.')
    check_place(path, force=force)


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a folder that is not there, and a file that is."""
    if not path.parent.is_dir():
        raise ParameterError(f'cannot write "{path}": there is no folder "{path.parent}".')
    if path.exists() and not force:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def write(table: Table, new: pl.DataFrame, path: Path, *, force: bool) -> None:
    """Write `table` with the columns of `new` beside its own; the file appears whole or not at all."""
    check_output(path, force=force)
    suffix = path.suffix.lower()
    if suffix == formats.LABELS_ONLY:
        labels = new[LABEL].fill_null(-1).to_numpy()
        write_whole(path, lambda part: _save(part, labels))
        return
    frame = (table.raw if suffix in formats.TEXT else table.typed).with_columns(new)
    write_whole(path, lambda part: formats.WRITERS[suffix](frame, part))


def write_whole(path: Path, write_to: Callable[[Path], object]) -> None:
    """Write beside the place and move there, so that there is never half a file."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write_to(part)
        os.replace(part, path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f'cannot write "{path}": {_first_line(error)}') from error
    finally:
        part.unlink(missing_ok=True)


def _save(path: Path, labels: np.ndarray) -> None:
    with path.open("wb") as file:  # a name would get .npy at its end
        np.save(file, labels)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (InputError, ParameterError):
        raise
    except pl.exceptions.NoDataError as error:
        raise InputError(f"{path.name} is empty.") from error
    except (OSError, ValueError, EOFError, pl.exceptions.PolarsError) as error:
        raise InputError(f'cannot read "{path}": {_first_line(error)}') from error


def _parsed(column: pl.Series, separator: str) -> pl.Series:
    """The column as integers, else as numbers, where every field but the missing ones is one.

    Where fields are not separated by commas, a comma may stand before decimals.
    """
    text = column.str.strip_chars()
    present = text.set(text.is_in(MISSING_MARKS), None)
    spellings = [present] if separator == "," else [present, present.str.replace(",", ".", literal=True)]
    for spelling in spellings:
        for kind in (pl.Int64, pl.Float64):
            numbers = spelling.cast(kind, strict=False)
            if numbers.null_count() == present.null_count():
                return numbers
    return column.set(present.is_null(), None)


def check_there(path: Path) -> None:
    """Refuse a file that is not there, naming the one that was probably meant."""
    if not path.exists():
        raise InputError(_no_such_file(path))
    if path.is_dir():
        raise InputError(f'"{path}" is a folder; name a file in it.')


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


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
