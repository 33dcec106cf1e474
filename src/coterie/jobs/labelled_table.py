"""The table of a job with new columns: labels, distances and probabilities, computed block by block."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.progress import Callback, Progress, silent
from coterie.data.tables.reader import Table
from coterie.data.tables.suffixes import TEXT
from coterie.data.tables.writer import LABELS_ONLY, write
from coterie.errors import ParameterError
from coterie.preparation.column_selection import LABEL
from coterie.preparation.preparation import BLOCK_ROWS, PreparedRows

Columns = Mapping[str, NDArray[Any]]


class NewColumns:
    """Columns for any slice of n rows, from a function that computes them for a block of rows.

    Blocks always start at the same rows, because the number of rows of a matrix product affects its last bits.
    """

    def __init__(self, compute: Callable[[slice], Columns], n: int) -> None:
        self._compute, self._n = compute, n
        self._last: tuple[int, Columns] = (-1, {})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._block(0))

    def __call__(self, rows: slice) -> Columns:
        blocks = range(rows.start // BLOCK_ROWS, -(-rows.stop // BLOCK_ROWS))
        parts = [
            (self._block(i), slice(max(rows.start - i * BLOCK_ROWS, 0), rows.stop - i * BLOCK_ROWS)) for i in blocks
        ]
        return {name: np.concatenate([block[name][inside] for block, inside in parts]) for name in parts[0][0]}

    def _block(self, i: int) -> Columns:
        if self._last[0] != i:
            self._last = i, self._compute(slice(i * BLOCK_ROWS, min(self._n, (i + 1) * BLOCK_ROWS)))
        return self._last[1]


def table_writer(
    table: Table, rows: PreparedRows, columns: NewColumns, path: Path, callback: Callback = silent, *,
    safe_csv: bool = False,
) -> Callable[[Path], object]:  # fmt: skip
    """A function that writes `table` with the new columns in the format of `path`.

    `columns` has the rows that were used; in other rows the new columns are empty, or -1 in a file of labels only.
    """
    suffix = path.suffix.lower()
    if suffix == LABELS_ONLY:
        labels = rows.expand(columns(slice(0, rows.n))[LABEL])
        return lambda temporary: np.save(temporary, labels)

    def report(done: int) -> None:
        callback(Progress(f"writing {path.name}", done, table.n_rows))

    def write_to(temporary: Path) -> None:
        batches = table.raw_batches() if suffix in TEXT else table.batches(table.columns)
        write(_with_columns(batches, rows.row_mask, columns, report), temporary, safe_csv=safe_csv)

    return write_to


def _with_columns(
    batches: Iterator[pl.DataFrame], row_mask: np.ndarray, columns: NewColumns, report: Callable[[int], None]
) -> Iterator[pl.DataFrame]:
    empty = pl.DataFrame(columns(slice(0, 1))).clear()
    start = stop = 0
    for batch in batches:
        mask = row_mask[start : start + batch.height]
        used = slice(stop, stop + int(np.count_nonzero(mask)))
        yield batch.with_columns(_expand(columns(used), mask) if mask.any() else empty.clear(batch.height))
        start, stop = start + batch.height, used.stop
        report(start)


def _expand(columns: Columns, mask: np.ndarray) -> pl.DataFrame:
    """Columns of the rows in `mask` as columns of all rows; null elsewhere."""
    index = np.zeros(len(mask), dtype=np.int64)
    index[mask] = np.arange(np.count_nonzero(mask))
    everywhere = pl.DataFrame({name: values[index] for name, values in columns.items()})
    return everywhere.select(pl.when(pl.Series(mask)).then(pl.all()))


def check_new_columns(table: Table, names: Iterable[str], *, force: bool) -> None:
    """Reject new columns that would replace columns of the table, unless `force`."""
    existing = [name for name in names if name in table.columns]
    if existing and not force:
        raise ParameterError(
            f"{table.name} has {' and '.join(existing)} already. Use --force to replace them in the output."
        )
