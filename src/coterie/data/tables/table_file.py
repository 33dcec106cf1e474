"""One file of a table that may be in several files: its columns, its number of rows, and how its rows are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from coterie.core.formatting import join_words
from coterie.data.locations import Location, Version
from coterie.data.tables import scan, text_index, vector_columns
from coterie.data.tables.file_rows import (
    ArrayRows,
    Flattened,
    Polars,
    RowGroups,
    RowReader,
    TextRows,
    first_width,
    row_groups,
)
from coterie.data.tables.lazy_frames import scanned
from coterie.data.tables.suffixes import BINARY, JSON_LINES, TEXT
from coterie.errors import InputError

IN_PARTS = (*BINARY, *TEXT, *JSON_LINES, ".npy")


@dataclass(frozen=True)
class FileRows:
    """Consecutive rows of a file; picklable, so that another process can read them."""

    location: Location
    version: Version
    reader: RowReader
    start: int
    stop: int

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """These columns of the rows; an error if the file changed."""
        self.location.check(self.version)
        with self.location.errors():
            frame = self.reader.read(self.location, self.version, columns, self.start, self.stop)
            if frame.height != self.stop - self.start:
                raise InputError(
                    f'"{self.location.url}" has other rows than when it was opened: call again, with files that do not '
                    "change"
                )
        return frame


@dataclass(frozen=True)
class TableFile:
    """A file with a table."""

    location: Location
    version: Version
    schema: dict[str, pl.DataType]  # with vectors as columns
    n_rows: int
    reader: RowReader | None  # None: the file can be read from its beginning only
    table: scan.Scan | None = None  # None: the rows are read by `reader`

    @property
    def largest_group(self) -> int:
        """Rows of the largest row group, of files in which a group is read as a whole; otherwise 0."""
        reader = self.reader.reader if isinstance(self.reader, Flattened) else self.reader
        return int(max(np.diff(reader.bounds), default=0)) if isinstance(reader, RowGroups) else 0

    def rows(self, start: int, stop: int) -> FileRows:
        """The rows `start` to `stop`."""
        assert self.reader is not None
        return FileRows(self.location, self.version, self.reader.cut(start, stop), start, stop)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """All rows, in batches."""
        if self.n_rows == 0:
            return
        if self.table is not None:
            yield from self.table.batches(columns)
            return
        step = scan.batch_rows(len(columns))
        for start in range(0, self.n_rows, step):
            yield self.rows(start, min(start + step, self.n_rows)).read(columns)


def open_file(location: Location, in_parts: bool) -> TableFile:
    """Open a file; with `in_parts`, or at an address, any of its rows can be read without the others."""
    version = location.version()
    if version.size == 0:
        raise InputError(f'"{location.url}" is empty.')
    with location.errors():
        try:
            open_one = _open_in_parts if in_parts or location.path is None else _open_in_order
            return open_one(location, version)
        except InputError as error:
            if location.url in str(error):
                raise
            raise InputError(f'cannot read "{location.url}": {error}') from error


def _open_in_order(location: Location, version: Version) -> TableFile:
    assert location.path is not None
    table = scan.scan(location.path)
    if location.suffix in TEXT:
        with location.open() as file:
            text_index.check_last_line(file, location.suffix)
    return TableFile(location, version, table.schema, table.n_rows, None, table)


def _open_in_parts(location: Location, version: Version) -> TableFile:
    suffix = location.suffix
    if suffix not in IN_PARTS or (suffix == ".npy" and location.path is None):
        where = "" if location.path is not None else " at an address"
        remedy = "use cache='memory' or 'disk'" if location.path is not None else "copy it to this machine"
        formats = join_words([each for each in IN_PARTS if location.path is not None or each != ".npy"])
        raise InputError(f"files{where} are read in parts, which {formats} allow: {remedy}")
    if suffix in (*TEXT, *JSON_LINES):
        with location.open() as file:
            index = text_index.index_delimited(file, suffix) if suffix in TEXT else text_index.index_json(file)
        n_rows, schema = int(index.rows[-1]), dict(index.schema)
        reader: RowReader = TextRows(index)
    elif location.path is None:
        schema, groups = row_groups(location)
        n_rows, reader = groups.bounds[-1], groups
    elif suffix == ".npy":
        table = scan.scan(location.path)
        return TableFile(location, version, table.schema, table.n_rows, ArrayRows())
    else:
        with scanned(location.path) as lazy:
            schema, n_rows = dict(lazy.collect_schema()), lazy.select(pl.len()).collect().item()
        reader = Polars()
    widths = vector_columns.widths(schema, first_width(reader, location, version, n_rows))
    if widths:
        reader = Flattened(reader, widths, vector_columns.flat_names(schema, widths))
        schema = vector_columns.flat_schema(schema, widths)
    return TableFile(location, version, schema, n_rows, reader)
