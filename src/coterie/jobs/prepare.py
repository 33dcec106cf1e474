"""From chosen columns to what an algorithm takes: missing values, constant columns, categories, scale."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.errors import InputError, ParameterError
from coterie.diagnosis.rows import FEW_COPIES
from coterie.jobs import Missing, Scale, TableJob
from coterie.jobs.columns import Choice, choose, require
from coterie.jobs.methods import Method
from coterie.jobs.table import Table
from coterie.report.table import SkippedColumn

CONSTANT = "constant"
FILLS = {
    "mean": "the mean of the column",
    "median": "the median of the column",
    "most_frequent": "the most frequent value of the column",
}  # what SimpleImputer of scikit-learn puts in place of missing numbers
NAMED_TO_EXCLUDE = 3

Matrix = NDArray[np.floating]
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

    def apply(self, table: Table) -> "Rows":
        """The rows of `table`, as those were from which this was learned."""
        for name in (*self.numbers, *self.categories):
            require(name, table.typed.columns)
        X = _matrix(table, self.numbers, self.single)
        _refuse_infinite(X, self.numbers)
        absent, names = _absent(table, X, self)
        X, kept, treatment = self._without_missing(X, absent, names)
        given: Any = self._scaled(X)
        if self.categories:
            shown = self._indicators(table, kept, X.dtype)
            X, given = np.hstack([X, shown]), np.hstack([given, shown])
        if self.mixed:
            given = table.typed.select([*self.numbers, *self.categories]).filter(pl.Series(kept))
        return Rows(X, given, kept, treatment)

    def _scaled(self, X: Matrix) -> Matrix:
        shift, spread = np.array(self.shift), np.array(self.spread)
        if not shift.any() and (spread == 1.0).all():
            return X
        scaled: Matrix = ((X - shift) / spread).astype(X.dtype)
        return scaled

    def _without_missing(self, X: Matrix, absent: Mask, names: tuple[str, ...]) -> tuple[Matrix, Mask, str]:
        everything = np.ones(len(X), dtype=bool)
        complete = np.asarray(~absent.any(axis=1))
        if complete.all():
            return X, everything, "none"
        if self.missing == "error":
            raise InputError(_missing_choices(absent, names, self))
        if self.missing == "drop":
            if not complete.any():
                counts = _by_column(names, absent.sum(axis=0))
                raise InputError(f"no row is complete ({counts}). Try --missing median.")
            return X[complete], complete, f"dropped {_rows(len(X) - int(complete.sum()))}"
        if self.missing == "ignore":
            return X, everything, f"{int(absent.sum()):,} left as they are"
        filled = np.where(np.isnan(X), np.array(self.fill), X).astype(X.dtype)
        return filled, everything, f"{int(absent.sum()):,} filled with {FILLS[self.missing]}"

    def _indicators(self, table: Table, kept: Mask, dtype: Any) -> Matrix:
        columns = [
            (texts == value).fill_null(False).to_numpy()[kept]
            for name, values in self.categories.items()
            for texts in [table.typed[name].cast(pl.String)]
            for value in values
        ]
        return np.column_stack(columns).astype(dtype)


@dataclass(frozen=True)
class Rows:
    """The rows that take part: in the table's own units, and as the algorithm takes them."""

    X: Matrix  # (n, d) numbers, and categories as zeros and ones
    given: Any  # (n, ...) scaled numbers, or a frame
    kept: Mask  # (rows of the table,) which of them these are
    treatment: str  # of missing values, in words


@dataclass(frozen=True)
class Prepared:
    """A table ready for an algorithm, and how it was made so."""

    rows: Rows
    preparation: Preparation
    weight: NDArray[np.float64] | None  # (n,)
    skipped: tuple[SkippedColumn, ...]
    warnings: tuple[str, ...]


def prepare(table: Table, job: TableJob, method: Method) -> Prepared:
    """Choose columns, learn from them how to make numbers of them, and do so."""
    _check_missing(job.missing, method)
    choice = choose(table, job, mixed=method.mixed)
    learned, constant, warnings = _learned(table, choice, job, method)
    rows = learned.apply(table)
    return Prepared(
        rows=rows,
        preparation=learned,
        weight=None if job.weight is None else weights_of(table, job.weight)[rows.kept],
        skipped=(*choice.skipped, *(SkippedColumn(name, CONSTANT) for name in constant)),
        warnings=(
            *(f'column "{name}" is constant and was dropped.' for name in constant),
            *warnings,
            *_about_copies(table, learned, rows.kept),
        ),
    )


def _about_copies(table: Table, how: Preparation, kept: Mask) -> tuple[str, ...]:
    """That many rows are the same in the columns used, and what that does to clusters."""
    used = table.typed.select([*how.numbers, *how.categories]).filter(pl.Series(kept))
    copies = used.height - used.n_unique()
    share = copies / used.height
    if share <= FEW_COPIES:
        return ()
    return (
        f"{copies:,} of {_rows(used.height)} ({share:.1%}) are the same as an earlier one in the columns used: each "
        "counts, so that centers are drawn to them and they may look like clusters of their own. Drop those that are "
        "copies by mistake.",
    )


def _check_missing(missing: Missing, method: Method) -> None:
    if missing == "ignore" and not method.holes:
        raise ParameterError(f"--missing ignore is not for {method.title}: use drop, mean or median.")
    if missing in ("mean", "median") and (method.mixed or method.series):  # a series may end before others do
        other = "drop or ignore" if method.holes else "drop"
        raise ParameterError(f"--missing {missing} is not for {method.title}: use {other}.")


def _learned(
    table: Table, choice: Choice, job: TableJob, method: Method
) -> tuple[Preparation, list[str], tuple[str, ...]]:
    """The preparation, the columns that it leaves out as constant, and what there is to warn of."""
    kinds = [table.typed.schema[name] for name in choice.numbers]
    single = bool(kinds) and all(kind == pl.Float32 for kind in kinds)
    as_it_is = Preparation(
        choice.numbers,
        {name: _values(table.typed[name]) for name in choice.categories},
        job.missing,
        fill=(),
        scale="none",
        shift=(0.0,) * len(choice.numbers),
        spread=(1.0,) * len(choice.numbers),
        single=single,
        mixed=method.mixed,
        series=method.series,
    )
    X = _matrix(table, choice.numbers, single)
    _refuse_infinite(X, choice.numbers)
    filled = replace(as_it_is, fill=_fill(X, job.missing))
    X = filled.apply(table).X[:, : len(choice.numbers)]
    constant = [] if method.series else [name for name, x in zip(choice.numbers, X.T, strict=True) if _is_constant(x)]
    if len(constant) == len(choice.numbers) and not choice.categories:
        raise InputError(f"every column is constant ({', '.join(constant)}): all rows are alike.")
    varies = [j for j, name in enumerate(choice.numbers) if name not in constant]
    numbers = tuple(choice.numbers[j] for j in varies)
    scale = _resolved(job.scale, table, method)
    shift, spread, warnings = _scaling(X[:, varies], numbers, scale)
    kept_fill = tuple(filled.fill[j] for j in varies) if filled.fill else ()
    learned = replace(filled, numbers=numbers, fill=kept_fill, scale=scale, shift=shift, spread=spread)
    return learned, constant, warnings


def _values(column: pl.Series) -> tuple[str, ...]:
    return tuple(sorted(column.cast(pl.String).drop_nulls().unique().to_list()))


def _matrix(table: Table, columns: tuple[str, ...], single: bool) -> Matrix:
    dtype = np.float32 if single else np.float64
    if not columns:
        return np.empty((table.rows, 0), dtype)
    numbers = table.typed.select(columns).cast(pl.Float32 if single else pl.Float64).fill_null(np.nan)
    return numbers.to_numpy(order="c")


def _absent(table: Table, X: Matrix, how: Preparation) -> tuple[Mask, tuple[str, ...]]:
    """Which values are missing (n, columns), and the names of the columns.

    The end of a series is not missing, unless it is all of it.
    """
    absent = np.isnan(X)
    if how.series:
        at_the_end = np.logical_and.accumulate(absent[:, ::-1], axis=1)[:, ::-1]
        absent &= ~at_the_end | absent.all(axis=1, keepdims=True)
    if how.categories:
        empty = [table.typed[name].is_null().to_numpy() for name in how.categories]
        absent = np.column_stack([absent, *empty])
    return absent, (*how.numbers, *how.categories)


def _fill(X: Matrix, missing: Missing) -> tuple[float, ...]:
    if missing not in ("mean", "median"):
        return ()
    middle = np.nanmean(X, axis=0) if missing == "mean" else np.nanmedian(X, axis=0)
    return tuple(middle.tolist())


def _is_constant(column: NDArray[np.floating]) -> bool:
    return bool(np.nanmax(column) == np.nanmin(column))


def _refuse_infinite(X: Matrix, columns: tuple[str, ...]) -> None:
    counts = np.isinf(X).sum(axis=0)
    if counts.any():
        raise InputError(
            f"some values are infinite ({_by_column(columns, counts)}).\n"
            f"  Correct them, or --exclude {_to_exclude(columns, counts)}."
        )


def weights_of(table: Table, name: str) -> NDArray[np.float64]:
    """How much each row of the table counts."""
    column = table.typed[name]
    if not column.dtype.is_numeric():
        raise InputError(f'column "{name}" is not numeric: a weight is a number of at least 0.')
    weights = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    wrong = int((~(weights >= 0) | np.isinf(weights)).sum())
    if wrong:
        raise InputError(f'{_rows(wrong)} have no weight in column "{name}": a weight is a number of at least 0.')
    return weights


def _missing_choices(absent: Mask, columns: tuple[str, ...], how: Preparation) -> str:
    n = len(absent)
    incomplete = int(absent.any(axis=1).sum())
    counts = absent.sum(axis=0)
    first = f"{incomplete:,} of {_rows(n)} have missing values ({_by_column(columns, counts)})."
    drop = f"--missing drop (keeps {_rows(n - incomplete)})"
    other = "" if how.series else "--missing ignore" if how.mixed else "--missing median"
    if how.fitted:
        return f"{first}\n  Use {drop}{other and f', or a model that was fitted with {other}'}."
    return f"{first}\n  Choose one: {drop}, {other and f'{other}, '}or --exclude {_to_exclude(columns, counts)}."


def _by_column(columns: tuple[str, ...], counts: NDArray[np.integer]) -> str:
    return ", ".join(f"{columns[j]}: {counts[j]:,}" for j in _worst_first(counts))


def _to_exclude(columns: tuple[str, ...], counts: NDArray[np.integer]) -> str:
    worst = [columns[j] for j in _worst_first(counts)]
    return ",".join(worst[:NAMED_TO_EXCLUDE]) + (",…" if len(worst) > NAMED_TO_EXCLUDE else "")


def _worst_first(counts: NDArray[np.integer]) -> list[int]:
    return [j for j in np.argsort(-counts, kind="stable").tolist() if counts[j]]


def _rows(n: int) -> str:
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _resolved(scale: Scale, table: Table, method: Method) -> Scale:
    if scale == "auto":
        return "none" if table.is_array or method.mixed or method.series else "standard"
    if (method.mixed or method.series) and scale != "none":
        raise ParameterError(f"--scale {scale} is not for {method.title}: use none.")
    return scale


def _scaling(
    X: Matrix, columns: tuple[str, ...], scale: Scale
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[str, ...]]:
    """What is taken from each column, by what it is divided, and what there is to warn of."""
    count = len(columns)
    if scale == "none" or count == 0:
        return (0.0,) * count, (1.0,) * count, ()
    X = np.ascontiguousarray(X, dtype=np.float64)  # sums of columns depend, in their last bits, on how they lie
    if scale == "minmax":
        low = np.nanmin(X, axis=0)
        return tuple(low.tolist()), tuple((np.nanmax(X, axis=0) - low).tolist()), ()
    deviation = np.nanstd(X, axis=0)
    if scale == "standard":
        return tuple(np.nanmean(X, axis=0).tolist()), tuple(deviation.tolist()), ()
    low, middle, high = np.nanquantile(X, [0.25, 0.5, 0.75], axis=0)
    spread = np.where(high > low, high - low, deviation)
    warnings = tuple(
        f'half of column "{name}" is one value: it was scaled by its standard deviation.'
        for name, width in zip(columns, high - low, strict=True)
        if width == 0
    )
    return tuple(middle.tolist()), tuple(spread.tolist()), warnings
