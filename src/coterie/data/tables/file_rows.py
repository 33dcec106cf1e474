"""Some rows of a file, read where they are needed: by row number of binary files, by byte range of text files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from coterie import machine
from coterie.core.packages import required
from coterie.data.locations import Location, Version
from coterie.data.tables import vector_columns
from coterie.data.tables.array_files import array_frame, load_array
from coterie.data.tables.lazy_frames import scanned
from coterie.data.tables.text_index import TextIndex


class RowReader:
    """Reads rows of one file by number. It is small, and picklable."""

    def read(self, location: Location, version: Version, columns: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        """The rows `start` to `stop`."""
        raise NotImplementedError

    def cut(self, start: int, stop: int) -> RowReader:
        """A reader that needs to know these rows only."""
        return self


@dataclass(frozen=True)
class Polars(RowReader):
    """Parquet and Arrow files on this machine: only row groups, and pages, with these rows are decoded."""

    def read(self, location: Location, version: Version, columns: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        assert location.path is not None
        with scanned(location.path) as lazy:
            return lazy.select(columns).slice(start, stop - start).collect()


@dataclass(frozen=True)
class ArrayRows(RowReader):
    """The array of an .npy file on this machine."""

    def read(self, location: Location, version: Version, columns: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        assert location.path is not None
        rows = load_array(location.path, mmap_mode="r")[start:stop]
        return array_frame(rows, location.path.name).select(columns)


@dataclass(frozen=True)
class TextRows(RowReader):
    """Byte ranges of a text file."""

    index: TextIndex

    def read(self, location: Location, version: Version, columns: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        with location.open() as file:
            return self.index.read(file, columns, start, stop)

    def cut(self, start: int, stop: int) -> TextRows:
        return TextRows(self.index.cut(start, stop))


@dataclass(frozen=True)
class RowGroups(RowReader):
    """Row groups of a Parquet file, or record batches of an Arrow file, at an address; through PyArrow."""

    bounds: tuple[int, ...]  # numbers of the first rows of the groups, then the number of rows
    first: int = 0  # number of the first of these groups

    def read(self, location: Location, version: Version, columns: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        frames = []
        for group, (begin, end) in enumerate(pairwise(self.bounds), start=self.first):
            if begin < stop and start < end:
                frame = _groups.get(location, version, tuple(columns), group)
                frames.append(frame.slice(max(start - begin, 0), min(stop, end) - max(start, begin)))
        return pl.concat(frames)

    def cut(self, start: int, stop: int) -> RowGroups:
        bounds = np.array(self.bounds)
        first = max(int(np.searchsorted(bounds, start, side="right")) - 1, 0)
        last = max(int(np.searchsorted(bounds, stop, side="left")), first + 1)
        return RowGroups(self.bounds[first : last + 1], self.first + first)


@dataclass(frozen=True)
class Flattened(RowReader):
    """A file with columns of vectors, which become one column for each element."""

    reader: RowReader
    widths: vector_columns.Widths
    origins: dict[str, str]  # column of the file of every column

    def read(self, location: Location, version: Version, columns: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        names = list(dict.fromkeys(self.origins[name] for name in columns))
        frame = self.reader.read(location, version, names, start, stop)
        return vector_columns.flatten_batch(frame, self.widths, start).select(columns)

    def cut(self, start: int, stop: int) -> Flattened:
        return replace(self, reader=self.reader.cut(start, stop))


class _Groups:
    """The last row groups that were read from addresses: parts of one group are read one after the other, or at once.

    Threads that need the same group wait for the first of them. One group for each thread is kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._frames: OrderedDict[Any, Future[pl.DataFrame]] = OrderedDict()

    def get(self, location: Location, version: Version, columns: tuple[str, ...], group: int) -> pl.DataFrame:
        key = (location.url, version, columns, group)
        with self._lock:
            future, is_new = self._frames.get(key), key not in self._frames
            if future is None:
                future = self._frames[key] = Future()
            self._frames.move_to_end(key)
            while len(self._frames) > machine.core_count():
                self._frames.popitem(last=False)
        if is_new:
            try:
                future.set_result(read_group(location, columns, group))
            except BaseException as error:
                with self._lock:
                    self._frames.pop(key, None)
                future.set_exception(error)
                raise
        return future.result()


_groups = _Groups()


def read_group(location: Location, columns: Sequence[str], group: int) -> pl.DataFrame:
    """Columns of a row group, or of a record batch."""
    arrow = pyarrow(location)
    with location.open() as file:
        if location.suffix == ".parquet":
            table = arrow.parquet.ParquetFile(file).read_row_group(group, columns=list(columns))
        else:
            batch = arrow.ipc.open_file(file).get_batch(group)
            table = arrow.Table.from_batches([batch]).select(list(columns))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def pyarrow(location: Location) -> Any:
    """PyArrow, which reads ranges of files at addresses; Polars reads such files as a whole."""
    with required(f'reading {location.url} needs one more package. Run: pip install "coterie[cloud]"'):
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    return pyarrow


def row_groups(location: Location) -> tuple[dict[str, pl.DataType], RowGroups]:
    """Types of the columns of a file at an address, and its row groups. Parquet files say both at their end."""
    arrow = pyarrow(location)
    with location.open() as file:
        if location.suffix == ".parquet":
            table = arrow.parquet.ParquetFile(file)
            schema, metadata = table.schema_arrow, table.metadata
            sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        else:
            table = arrow.ipc.open_file(file)
            schema, sizes = table.schema, [table.get_batch(i).num_rows for i in range(table.num_record_batches)]
    empty = pl.from_arrow(schema.empty_table())
    assert isinstance(empty, pl.DataFrame)
    return dict(empty.schema), RowGroups(tuple(np.cumsum([0, *sizes]).tolist()))


def first_width(reader: RowReader, location: Location, version: Version, n_rows: int) -> Callable[[str], int | None]:
    """Function that returns the length of the first list of a column."""

    def width(name: str) -> int | None:
        for rows in (1, n_rows):
            lists = reader.read(location, version, [name], 0, min(rows, n_rows))[name]
            if (result := vector_columns.first_width(lists)) is not None:
                return result
        return None

    return width
