"""Tables: read whole or some rows at a time, and written back with their clusters."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from coterie import machine
from coterie.core.errors import InputError, ParameterError
from coterie.data import scratch
from coterie.data.tables import file_formats as formats
from coterie.data.tables.delimited_text import parsed
from coterie.data.tables.file_formats import STANDARD_INPUT
from coterie.data.tables.scan import ROWS, SUFFIXES, TEXT, Scan, empty_columns, readable, scan
from coterie.jobs import Progress, Step, silent
from coterie.jobs.labelled_table import Answers, Columns

LABEL = "cluster"
SIZES = {".parquet": 8, ".arrow": 2, ".feather": 2, ".npy": 3}  # of a table in memory, times that of its file, at most
OTHER_SIZE = 4  # of text: its fields, its numbers, and the matrix made of them


class Table(ABC):
    """A table in a file, and the type each of its columns turned out to have.

    What is written and what is read differ for text files only: there every field is also kept as it was written, so
    that ``007`` and ``1.50`` come out of a text file as they went in.
    """

    path: Path

    @property
    def name(self) -> str:
        return "standard input" if self.path == STANDARD_INPUT else self.path.name

    @property
    def is_array(self) -> bool:
        """Whether columns have no names of their own, and a unit in common."""
        return self.path.suffix.lower() in formats.ARRAYS

    @property
    def columns(self) -> list[str]:
        return list(self.schema)

    @property
    def width(self) -> int:
        return len(self.schema)

    @property
    @abstractmethod
    def rows(self) -> int: ...

    @property
    @abstractmethod
    def schema(self) -> dict[str, pl.DataType]: ...

    @property
    @abstractmethod
    def nothing(self) -> frozenset[str]:
        """Columns without a single value."""

    @property
    @abstractmethod
    def note(self) -> tuple[str, ...]:
        """What the reader should know of how it was read."""

    @abstractmethod
    def column(self, name: str) -> pl.Series:
        """One column whole."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """All rows of these columns, some at a time."""

    @abstractmethod
    def written(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """All rows, some at a time, of text files with every field as it was written."""

    @abstractmethod
    def room(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
        """Where a matrix of the rows can be put."""

    def frame(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """These columns whole, or all of them."""
        return pl.concat(self.batches(self.columns if columns is None else columns))


@dataclass(frozen=True)
class WholeTable(Table):
    """A table in memory."""

    path: Path
    raw: pl.DataFrame
    typed: pl.DataFrame
    note: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return self.typed.height

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.typed.schema)

    @cached_property
    def nothing(self) -> frozenset[str]:
        return frozenset(empty_columns(self.typed))

    def column(self, name: str) -> pl.Series:
        return self.typed[name]

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        return self.typed.select(columns).iter_slices(ROWS)

    def written(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        return iter([self.raw if columns is None else self.raw.select(columns)])

    def room(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
        return np.empty(shape, dtype)


@dataclass(frozen=True)
class LongTable(Table):
    """A table of which `batch_rows` rows are in memory at a time; a matrix of them lies on disk."""

    path: Path
    scan: Scan
    batch_rows: int
    note: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return self.scan.rows

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.scan.schema

    @property
    def nothing(self) -> frozenset[str]:
        with readable(self.path):
            return self.scan.nothing

    def column(self, name: str) -> pl.Series:
        with readable(self.path):
            return self.scan.column(name)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        return self._counted(self.scan.batches(columns, self.batch_rows))

    def written(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        return self._counted(self.scan.batches(columns, self.batch_rows, written=True))

    def room(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
        return scratch.room(shape, dtype)

    def _counted(self, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The frames, if they have as many rows as the first look found."""
        left = self.rows
        with readable(self.path):
            for frame in frames:
                left -= frame.height
                if left < 0:
                    break
                yield frame
            if left != 0:
                raise InputError(f"{self.name} changed while it was read: run the command again.")


def read(path: Path, batch_rows: int | None = None) -> Table:
    """Read a table whole, or say so many rows at a time; or say what stands in the way."""
    if path != STANDARD_INPUT:
        check_there(path)
        if path.is_file() and path.stat().st_size == 0:
            raise InputError(f"{path.name} is empty.")
    with readable(path):
        if batch_rows is None and _is_too_large(path):
            size = machine.in_words(path.stat().st_size)
            told = f"{path.name} ({size}) was read {ROWS:,} rows at a time: whole, it might not fit into memory."
            table: Table = _in_batches(path, ROWS, told)
        else:
            table = _whole(path) if batch_rows is None else _long(path, batch_rows)
    if table.rows == 0:
        raise InputError(f"{table.name} has no rows.")
    return table


def _in_batches(path: Path, batch_rows: int, *told: str) -> LongTable:
    found = scan(path)
    return LongTable(path, found, batch_rows, (*told, *found.notes))


def _is_too_large(path: Path) -> bool:
    """Whether a table that can be read some rows at a time might take more memory than is free."""
    suffix = path.suffix.lower()
    if path == STANDARD_INPUT or suffix not in SUFFIXES:
        return False
    return path.stat().st_size * SIZES.get(suffix, OTHER_SIZE) > machine.free_memory()


def _whole(path: Path) -> WholeTable:
    suffix = path.suffix.lower()
    if path == STANDARD_INPUT or suffix in TEXT:
        raw, layout = formats.text_frame(path)
        typed = raw.with_columns(parsed(column, layout.separator) for column in raw)
        return WholeTable(path, raw, typed, layout.notes)
    if suffix in formats.FRAMES or suffix in formats.ARRAYS:
        frame = (formats.FRAMES | formats.ARRAYS)[suffix](path)
        return WholeTable(path, frame, frame)
    raise InputError(f'cannot read "{path}": tables end in {listed(formats.READABLE)}.')


def _long(path: Path, batch_rows: int) -> LongTable:
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return _in_batches(path, batch_rows)
    if path == STANDARD_INPUT or suffix in formats.READABLE:
        raise ParameterError(
            f"--batch-rows is for {listed(SUFFIXES)}: {suffix or 'standard input'} is read whole. Leave it out."
        )
    raise InputError(f'cannot read "{path}": tables end in {listed(formats.READABLE)}.')


def labelled(
    table: Table, kept: np.ndarray, new: Answers, path: Path, progress: Progress = silent, *, safe_csv: bool = False
) -> Callable[[Path], object]:
    """What writes `table` with new columns beside its own, as a file called like `path`.

    `new` are the columns of the rows that took part, which are those that were `kept`.
    """
    suffix = path.suffix.lower()
    if suffix == formats.LABELS_ONLY:
        labels = spread(new(slice(0, int(np.count_nonzero(kept))))[LABEL], kept)
        return lambda part: np.save(part, labels)
    as_text = suffix in TEXT

    def told(rows: int) -> None:
        progress(Step(f"writing {path.name}", rows, table.rows))

    return lambda part: formats.write(
        _beside(table.written() if as_text else table.batches(table.columns), kept, new, told), part, safe_csv=safe_csv
    )


def _beside(
    frames: Iterator[pl.DataFrame], kept: np.ndarray, new: Answers, told: Callable[[int], None]
) -> Iterator[pl.DataFrame]:
    """Frames with the new columns of their rows, empty where a row took no part."""
    none = pl.DataFrame(new(slice(0, 1))).clear()
    start = stop = 0
    for frame in frames:
        here = kept[start : start + frame.height]
        rows = slice(stop, stop + int(np.count_nonzero(here)))
        yield frame.with_columns(_spread_out(new(rows), here) if here.any() else none.clear(frame.height))
        start, stop = start + frame.height, rows.stop
        told(start)


def _spread_out(columns: Columns, kept: np.ndarray) -> pl.DataFrame:
    """Columns of the rows that took part (`kept`), beside every row: empty where it did not."""
    at = np.zeros(len(kept), dtype=np.int64)
    at[kept] = np.arange(np.count_nonzero(kept))
    everywhere = pl.DataFrame({name: values[at] for name, values in columns.items()})
    return everywhere.select(pl.when(pl.Series(kept)).then(pl.all()))


def spread(labels: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """One label for each row of the table, -1 where the row took no part."""
    found = np.full(len(kept), -1, dtype=np.int64)
    found[kept] = labels
    return found


def refuse_clash(table: Table, added: Iterable[str], *, force: bool) -> None:
    """Refuse columns that would stand in place of the table's own."""
    taken = [name for name in added if name in table.columns]
    if taken and not force:
        raise ParameterError(
            f"{table.name} has {' and '.join(taken)} already. Use --force to replace them in the output."
        )


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


def listed(names: Sequence[str]) -> str:
    """``.csv, .tsv or .npy``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
