"""A table with columns that are read as numbers by a `Reading`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from coterie.core.formatting import truncate
from coterie.data.tables.reader import Table
from coterie.data.tables.readings import DESCRIPTIONS, Reading, convert
from coterie.errors import InputError

LONGEST = 40  # characters of a value that a message quotes


@dataclass(frozen=True)
class ConvertedTable(Table):
    """A table in which each of `readings` is a column of numbers; other columns are those of `original`."""

    original: Table
    readings: Mapping[str, Reading]

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        sources = {name: self.readings[name].column if name in self.readings else name for name in columns}
        start = 0
        for batch in self.original.batches(list(dict.fromkeys(sources.values()))):
            yield pl.DataFrame(
                [
                    self._convert(batch[source], name, start) if name in self.readings else batch[source]
                    for name, source in sources.items()
                ]
            )
            start += batch.height

    def raw_batches(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        return self.original.raw_batches(columns)

    def with_text(self, columns: Sequence[str]) -> Table:
        return converted(self.original.with_text(columns), self.readings)

    def allocate(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
        return self.original.allocate(shape, dtype)

    def _convert(self, column: pl.Series, name: str, start: int) -> pl.Series:
        reading = self.readings[name]
        values, is_invalid = convert(column, reading)
        if is_invalid.any():
            row = int(is_invalid.arg_max() or 0)
            value = truncate(str(column[row]), LONGEST)
            example = f', such as "{reading.example}"' if reading.example else ""
            raise InputError(
                f'{self.place_of(start + row)}: column "{reading.column}" has the value "{value}", but the model needs '
                f"{DESCRIPTIONS[reading.kind]} there{example}. Correct the cell; or empty it, and use --missing drop."
            )
        return values.alias(name)


def converted(table: Table, readings: Mapping[str, Reading]) -> Table:
    """The table with the columns of `readings` as numbers; the table itself if there are none.

    New columns follow the column that they are read from.
    """
    if not readings:
        return table
    sources = dict.fromkeys(reading.column for reading in readings.values())
    table = table.with_text([name for name in sources if name in table.schema])
    by_column: dict[str, list[str]] = {}
    for name, reading in readings.items():
        by_column.setdefault(reading.column, []).append(name)
    schema: dict[str, pl.DataType] = {}
    for name, dtype in table.schema.items():
        schema |= {new: pl.Float64() for new in by_column[name]} if name in by_column else {name: dtype}
    return ConvertedTable(
        table.path, schema, table.n_rows, table.notes, table, readings,
        header_row=table.header_row, has_lines=table.has_lines,
    )  # fmt: skip
