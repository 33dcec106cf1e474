"""A fitted preparation, which converts rows of any table with the same columns to numbers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.formatting import count
from coterie.core.progress import Callback, Progress, silent
from coterie.data.tables.reader import Table
from coterie.data.tables.readings import Reading
from coterie.errors import InputError
from coterie.preparation import Scale, missing_values
from coterie.preparation.column_reader import indicator_names
from coterie.preparation.column_selection import check_column, check_types
from coterie.preparation.missing_values import MissingCounts
from coterie.preparation.one_hot import one_hot, without_marks
from coterie.preparation.scaling import Matrix, fill_rows, scale_rows
from coterie.preparation.transforms import TRANSFORMS, apply_transforms, feature_name, first_invalid

FILL_VALUES = {  # strategies of SimpleImputer in scikit-learn
    "mean": "the mean of the column",
    "median": "the median of the column",
    "most_frequent": "the most frequent value of the column",
}
BLOCK_ROWS = 8192  # prepared rows for which a method of a model is called at a time

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Preparation:
    """Columns, fill values and scales, fitted to one table.

    A categorical column becomes an unscaled column of zeros and ones for each of its values (one-hot encoding). Rows
    of different categories are then √2 apart, the root mean square distance of two rows in a standardised column.
    """

    numbers: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]  # the values of each column
    missing: str  # one of `Missing` or of `FILL_VALUES`
    fill: tuple[float, ...]  # replace missing numbers
    scale: Scale
    shift: tuple[float, ...]
    spread: tuple[float, ...]
    single: bool  # whether numbers are float32
    mixed: bool = False  # whether the algorithm takes the columns as they are
    series: bool = False  # whether a row is a series
    can_ignore: bool = False  # whether the algorithm accepts missing values
    from_model: bool = False  # whether it was loaded with a model, so that its columns are fixed
    readings: dict[str, Reading] = field(default_factory=dict)  # of numbers that the table has as text, dates and so on
    transforms: dict[str, str] = field(default_factory=dict)  # by column; before `fill`, `shift` and `spread`

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the matrix."""
        return (*self.numbers, *indicator_names(self.numbers, self.categories))

    @property
    def indicators(self) -> tuple[tuple[str, str], ...]:
        """Column and value of the one-hot columns of the matrix, which follow the numbers."""
        return tuple((name, value) for name, values in self.categories.items() for value in values)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix with their units: ``log(amount)``, ``age of ordered (days)``."""
        return tuple(feature_name(self.unit_name(name), self.transforms.get(name)) for name in self.names)

    def unit_name(self, name: str) -> str:
        """The name of a column for its values before they were transformed."""
        return name if self.date_of(name, 0.0) is None else f"age of {name} (days)"

    def date_of(self, name: str, age: float) -> str | None:
        """The date of an age in days, of a column of dates that are read as ages; None for other columns."""
        return self.readings[name].date_of(age) if name in self.readings else None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table."""
        return (*self.numbers, *self.categories)

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns of the table in its file."""
        numbers = (self.readings[name].column if name in self.readings else name for name in self.numbers)
        return (*dict.fromkeys(numbers), *self.categories)

    @property
    def units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`shift` and `spread` of every column of the matrix X; ``X * spread + shift`` are the transformed values."""
        n_one_hot = len(self.indicators)
        return np.array([*self.shift, *[0.0] * n_one_hot]), np.array([*self.spread, *[1.0] * n_one_hot])

    @property
    def transformed(self) -> dict[int, str]:
        """Transforms by the index of the column."""
        return {self.numbers.index(name): transform for name, transform in self.transforms.items()}

    @property
    def is_identity(self) -> bool:
        """Whether values that are not missing stay as they are."""
        return not any(self.shift) and set(self.spread) <= {1.0} and not self.transforms

    def transformed_points(self, X: Matrix) -> NDArray[np.float64]:
        """Rows of the table (m, d) transformed, but not scaled."""
        points = np.array(X, dtype=np.float64)
        apply_transforms(points, self.transformed)
        return points

    def apply(self, table: Table, callback: Callback = silent) -> "PreparedRows":
        """The rows of `table`, prepared like those to which this was fitted."""
        for name in self.columns:
            check_column(name, table.columns)
        check_types(table, self.numbers, self.categories)
        raw = self.read_rows(table, callback)
        self.transform(table, raw)
        return self.finish(table, raw)

    def of_numbers(self, X: Matrix) -> Matrix:
        """Numbers (n, d) of the table transformed, filled and scaled, in place; without categories."""
        apply_transforms(X, self.transformed)
        if self.fill:
            fill_rows(X, np.array(self.fill))
        scale_rows(X, np.array(self.shift), np.array(self.spread))
        return X

    def transform(self, table: Table, raw: "RawRows") -> None:
        """Transform columns, in place; a value that cannot be transformed is an error."""
        for j, name in self.transformed.items():
            row = first_invalid(raw.X, j, name)
            if row is not None:
                column, value = self.numbers[j], raw.X[row, j]
                row = int(np.flatnonzero(raw.row_mask)[row])
                title = TRANSFORMS[name].title
                remedy = "Correct the cell" if self.from_model else f"Use --transform none:{column}"
                raise InputError(
                    f'{table.place_of(row)}: column "{column}" has the value {value:g}, which has no {title}. '
                    f"{remedy}; or empty the cell, and use --missing drop."
                )
        apply_transforms(raw.X, self.transformed)

    def read_rows(self, table: Table, callback: Callback = silent) -> "RawRows":
        """The values of all rows, or of the complete ones if others are dropped."""
        X = table.allocate((table.n_rows, len(self.names)), np.dtype(np.float32 if self.single else np.float64))
        row_mask = np.ones(table.n_rows, dtype=bool)
        counts, has_missing, start, stop = MissingCounts(0, 0, 0, 0, 0, 0), False, 0, 0
        for batch in table.batches(self.columns):
            values, is_complete, batch_counts = self._values(batch)
            counts = counts + batch_counts
            if self.missing == "drop" and not is_complete.all():
                row_mask[start : start + batch.height] = is_complete
                values = values[is_complete]
            X[stop : stop + len(values)] = values
            has_missing = has_missing or bool(np.isnan(values[:, : len(self.numbers)]).any())
            start, stop = start + batch.height, stop + len(values)
            callback(Progress(f"reading {table.name}", start, table.n_rows))
        self._check_values(counts)
        return RawRows(X[:stop], row_mask, counts, has_missing)

    def finish(self, table: Table, raw: "RawRows") -> "PreparedRows":
        """Fill missing values and scale, in place; a row without a category has only zeros in its one-hot columns."""
        numbers, one_hot_columns = np.hsplit(raw.X, [len(self.numbers)])
        if self.fill and raw.has_missing:
            fill_rows(numbers, np.array(self.fill))
        fill_rows(one_hot_columns, np.zeros(one_hot_columns.shape[1]))
        scale_rows(numbers, np.array(self.shift), np.array(self.spread))
        model_input: Any = raw.X
        if self.mixed:
            model_input = self._categorical(table.frame(self.columns)).filter(pl.Series(raw.row_mask))
        has_missing = raw.has_missing and not self.fill
        unknown = np.broadcast_to(raw.counts.unknown, len(self.categories)).tolist()
        by_column = dict(zip(self.categories, unknown, strict=True))
        empty, treatment = raw.counts.empty_rows if self.fill else 0, self._treatment(raw.counts)
        counts = zip(self.columns, raw.counts.missing.tolist(), strict=True)
        missing = {name: n for name, n in counts if n}
        return PreparedRows(raw.X, model_input, raw.row_mask, treatment, has_missing, by_column, empty, missing)

    def _values(self, batch: pl.DataFrame) -> tuple[Matrix, Mask, MissingCounts]:
        """Numbers and one-hot columns of a batch, the mask of complete rows, and numbers of missing values."""
        if self.numbers:
            numbers = batch.select(self.numbers).cast(pl.Float32 if self.single else pl.Float64).fill_null(np.nan)
            X = numbers.to_numpy(order="c")
        else:
            X = np.empty((batch.height, 0), np.float32 if self.single else np.float64)
        is_missing, unknown = np.isnan(X), list[int]()
        if self.series:  # missing values at the end of a series are not counted, unless all its values are missing
            at_end = np.logical_and.accumulate(is_missing[:, ::-1], axis=1)[:, ::-1]
            is_missing &= ~at_end | is_missing.all(axis=1, keepdims=True)
        if self.categories:
            cells = self._categorical(batch)
            is_null = [cells[name].is_null().to_numpy() for name in self.categories]
            is_missing = np.column_stack([is_missing, *is_null])
            parts = [one_hot(cells[name], values) for name, values in self.categories.items()]
            unknown = [int((~part.any(axis=1) & ~null).sum()) for part, null in zip(parts, is_null, strict=True)]
            present = [np.where(null[:, None], np.nan, part) for part, null in zip(parts, is_null, strict=True)]
            X = np.hstack([X, np.hstack(present).astype(X.dtype)])
        is_incomplete: Mask = np.asarray(is_missing.any(axis=1))
        infinite = np.isinf(X[:, : len(self.numbers)]).sum(axis=0)
        counts = MissingCounts(
            len(X), int(is_incomplete.sum()), int(is_missing.all(axis=1).sum()), is_missing.sum(axis=0), infinite,
            np.array(unknown, dtype=int),
        )  # fmt: skip
        return X, np.logical_not(is_incomplete), counts

    def _categorical(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with null where a cell of a categorical column means a missing value."""
        return frame.with_columns(without_marks(frame[name], values) for name, values in self.categories.items())

    def _check_values(self, counts: MissingCounts) -> None:
        if np.any(counts.infinite):
            raise InputError(missing_values.infinite_message(self.numbers, counts, self.from_model))
        if counts.incomplete_rows and self.missing == "error":
            others = {"median": not (self.series or self.mixed), "ignore": self.can_ignore}
            other = ", ".join(f"--missing {name}" for name, is_possible in others.items() if is_possible)
            raise InputError(missing_values.missing_message(self.columns, counts, other, self.from_model))
        if counts.incomplete_rows == counts.rows and self.missing == "drop":
            by_column = missing_values.by_column(self.columns, counts.missing)
            raise InputError(f"no row is complete ({by_column}). Try --missing median.")

    def _treatment(self, counts: MissingCounts) -> str:
        """What was done about missing values, in words."""
        if not counts.incomplete_rows:
            return "none"
        if self.missing == "drop":
            return f"dropped {count(counts.incomplete_rows)}"
        if self.missing == "ignore":
            return f"{missing_values.extent(counts.missing)} left as they are"
        numbers, categories = np.split(counts.missing, [len(self.numbers)])
        parts = [f"{missing_values.extent(numbers)} filled with {FILL_VALUES[self.missing]}"] if numbers.any() else []
        parts += [f"{missing_values.extent(categories)} left without a category"] if categories.any() else []
        return "; ".join(parts)


@dataclass(frozen=True)
class RawRows:
    """Values as in the table."""

    X: Matrix  # (n, d) NaN where a value is missing, also in one-hot columns
    row_mask: Mask  # (rows of the table,) rows that are used
    counts: MissingCounts
    has_missing: bool


@dataclass(frozen=True)
class PreparedRows:
    """The rows that are used."""

    X: Matrix  # (n, d) scaled numbers, and one-hot columns; on disk if they are too large for memory
    model_input: Any  # input of the algorithm: X, or a frame
    row_mask: Mask  # (rows of the table,) rows that are used
    treatment: str  # of missing values, in words
    has_missing: bool  # whether X has missing values
    unknown: dict[str, int]  # for each categorical column the number of rows with a value that is no category
    empty: int  # number of rows without any value, all of whose values were filled
    missing: dict[str, int]  # number of missing values of each column that has some, in all rows of the table

    @property
    def n(self) -> int:
        return len(self.X)

    def expand(self, labels: NDArray[np.integer]) -> NDArray[np.integer]:
        """Labels of all rows of the table, -1 for rows that are not used."""
        expanded = np.full(len(self.row_mask), -1, dtype=np.int64)
        expanded[self.row_mask] = labels
        return expanded
