"""Rows of a table as rows of numbers: what was learned of one table does it to any other with the same columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.errors import InputError
from coterie.data.tables.reader import Table
from coterie.jobs import Progress, Scale, Step, silent
from coterie.preparation import missing_values as gaps
from coterie.preparation.column_selection import require
from coterie.preparation.invalid_cells import check_kinds
from coterie.preparation.missing_values import Gaps
from coterie.preparation.scaling import Matrix, fill_rows, scale_rows

FILLS = {
    "mean": "the mean of the column",
    "median": "the median of the column",
    "most_frequent": "the most frequent value of the column",
}  # what SimpleImputer of scikit-learn puts in place of missing numbers

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Preparation:
    """What was learned from one table, and makes rows of numbers of any other with the same columns.

    A column of categories becomes a column of zeros and ones for each of its values, which is not scaled: rows of
    different categories are then √2 apart, as two rows are in the mean (of squares) in a standardised column.
    """

    numbers: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]  # the values of each
    missing: str  # one of `Missing` or of `FILLS`
    fill: tuple[float, ...]  # in place of missing numbers
    scale: Scale
    shift: tuple[float, ...]
    spread: tuple[float, ...]
    single: bool  # whether numbers are float32
    mixed: bool = False  # whether the algorithm takes the columns as they are
    series: bool = False  # whether a row is a series
    fitted: bool = False  # whether it comes from a model, whose columns are given

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns of the matrix."""
        made = (f"{name}={value}" for name, values in self.categories.items() for value in values)
        return (*self.numbers, *made)

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the table."""
        return (*self.numbers, *self.categories)

    @property
    def units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`shift` and `spread` of every column of the matrix S; ``S * spread + shift`` are the table's own values."""
        made = len(self.names) - len(self.numbers)
        return np.array([*self.shift, *[0.0] * made]), np.array([*self.spread, *[1.0] * made])

    def apply(self, table: Table, progress: Progress = silent) -> "Rows":
        """The rows of `table`, as those were from which this was learned."""
        for name in self.columns:
            require(name, table.columns)
        check_kinds(table, self.numbers, self.categories)
        return self.finish(table, self.gather(table, progress))

    def gather(self, table: Table, progress: Progress = silent) -> "Gathered":
        """The values of all rows, or of those that are complete if others are to be dropped."""
        S = table.room((table.rows, len(self.names)), np.dtype(np.float32 if self.single else np.float64))
        kept = np.ones(table.rows, dtype=bool)
        counts, holes, start, stop = Gaps(0, 0, 0, 0), False, 0, 0
        for frame in table.batches(self.columns):
            values, complete, found = self._values(frame)
            counts = counts + found
            if self.missing == "drop" and not complete.all():
                kept[start : start + frame.height] = complete
                values = values[complete]
            S[stop : stop + len(values)] = values
            holes = holes or bool(np.isnan(values).any())
            start, stop = start + frame.height, stop + len(values)
            progress(Step(f"reading {table.name}", start, table.rows))
        self._refuse(counts)
        return Gathered(S[:stop], kept, counts, holes)

    def finish(self, table: Table, found: "Gathered") -> "Rows":
        """Those rows with what is missing filled in, and scaled: in place."""
        own = found.S[:, : len(self.numbers)]
        if self.fill and found.holes:
            fill_rows(own, np.array(self.fill))
        scale_rows(own, np.array(self.shift), np.array(self.spread))
        given: Any = found.S
        if self.mixed:
            given = table.frame(self.columns).filter(pl.Series(found.kept))
        return Rows(found.S, given, found.kept, self._treatment(found.gaps), found.holes and not self.fill)

    def _values(self, frame: pl.DataFrame) -> tuple[Matrix, Mask, Gaps]:
        """Numbers and categories of some rows as they are, which rows have them all, and how many are missing."""
        X = self._numbers(frame)
        absent = np.isnan(X)
        if self.series:  # the end of a series is not missing, unless it is all of it
            at_the_end = np.logical_and.accumulate(absent[:, ::-1], axis=1)[:, ::-1]
            absent &= ~at_the_end | absent.all(axis=1, keepdims=True)
        if self.categories:
            empty = [frame[name].is_null().to_numpy() for name in self.categories]
            absent = np.column_stack([absent, *empty])
            X = np.hstack([X, self._indicators(frame, X.dtype)])
        incomplete: Mask = np.asarray(absent.any(axis=1))
        infinite = np.isinf(X[:, : len(self.numbers)]).sum(axis=0)
        return X, np.logical_not(incomplete), Gaps(len(X), int(incomplete.sum()), absent.sum(axis=0), infinite)

    def _numbers(self, frame: pl.DataFrame) -> Matrix:
        if not self.numbers:
            return np.empty((frame.height, 0), np.float32 if self.single else np.float64)
        numbers = frame.select(self.numbers).cast(pl.Float32 if self.single else pl.Float64).fill_null(np.nan)
        return numbers.to_numpy(order="c")

    def _indicators(self, frame: pl.DataFrame, dtype: Any) -> Matrix:
        columns = [
            (texts == value).fill_null(False).to_numpy()
            for name, values in self.categories.items()
            for texts in [frame[name].cast(pl.String)]
            for value in values
        ]
        return np.column_stack(columns).astype(dtype)

    def _refuse(self, counts: Gaps) -> None:
        if np.any(counts.infinite):
            raise InputError(gaps.infinite(self.numbers, counts))
        if counts.incomplete and self.missing == "error":
            other = "" if self.series else "--missing ignore" if self.mixed else "--missing median"
            raise InputError(gaps.choices(self.columns, counts, other, self.fitted))
        if counts.incomplete == counts.rows and self.missing == "drop":
            told = gaps.by_column(self.columns, counts.absent)
            raise InputError(f"no row is complete ({told}). Try --missing median.")

    def _treatment(self, counts: Gaps) -> str:
        """What was done about missing values, in words."""
        if not counts.incomplete:
            return "none"
        if self.missing == "drop":
            return f"dropped {gaps.rows(counts.incomplete)}"
        done = "left as they are" if self.missing == "ignore" else f"filled with {FILLS[self.missing]}"
        return f"{counts.values:,} {done}"


@dataclass(frozen=True)
class Gathered:
    """Values as the table has them."""

    S: Matrix  # (n, d)
    kept: Mask  # (rows of the table,)
    gaps: Gaps
    holes: bool  # whether values are missing


@dataclass(frozen=True)
class Rows:
    """The rows that take part."""

    S: Matrix  # (n, d) scaled numbers, and categories as zeros and ones; on disk where they are too many
    given: Any  # what the algorithm takes: S, or a frame
    kept: Mask  # (rows of the table,) which of them these are
    treatment: str  # of missing values, in words
    holes: bool  # whether values of S are missing

    @property
    def n(self) -> int:
        return len(self.S)
