"""Long tables of series, with one value in each row, as tables with one series in each row."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from coterie.core.formatting import count
from coterie.data.tables.converted_table import converted
from coterie.data.tables.reader import Table, WholeTable
from coterie.errors import InputError, ParameterError
from coterie.preparation import PreparationOptions
from coterie.preparation.column_selection import check_column, column_kind
from coterie.preparation.detect_readings import detect_readings

SERIES, TIME, VALUE, TEXT, ROW = "series", "time", "value", "text", "row"  # columns of a frame of observations
OTHER_OPTIONS = ("columns", "exclude", "include", "one_hot", "weight", "transform")


@dataclass(frozen=True)
class SeriesTable(WholeTable):
    """A series in each row: its name, then its values, which are missing after its end."""


def check_series(series: tuple[str, ...], options: PreparationOptions | None = None) -> None:
    """Reject `series` that are not three columns, and options that name other columns of the long table."""
    if len(series) != 3 or len(set(series)) != 3:
        got = ", ".join(series)
        raise ParameterError(f"--series takes three columns, of names, times and values: id,time,value; got {got!r}.")
    for name in OTHER_OPTIONS if options is not None else ():
        if getattr(options, name):
            raise ParameterError(
                f"--{name.replace('_', '-')} is not for --series, which names its columns: leave it out."
            )
    if options is not None and options.id not in (None, series[0]):
        raise ParameterError(
            f"--id {options.id} and --series {','.join(series)} name different columns: leave out --id."
        )


def wide_series(table: Table, series: tuple[str, ...], options: PreparationOptions) -> SeriesTable:
    """The series of a long table; `series` are the columns of their names, of times and of values.

    Values are in the order of time. Series may have different lengths and other time points.
    """
    name_column, time_column, value_column = series
    for name in series:
        check_column(name, table.columns)
    observations, notes = _observations(table, series, options)
    names = observations[SERIES].unique(maintain_order=True)
    index = observations[SERIES].replace_strict(names, pl.arange(len(names), eager=True), return_dtype=pl.Int64)
    ordered = observations.with_columns(index.alias(ROW)).sort(ROW, TIME)
    _check_duplicates(table, ordered, series)
    position = ordered.select(pl.int_range(pl.len()).over(ROW)).to_series().to_numpy()
    rows = ordered[ROW].to_numpy()
    lengths = np.bincount(rows)
    values = np.full((len(names), int(lengths.max())), np.nan)
    values[rows, position] = ordered[VALUE].to_numpy()
    columns = _column_names(ordered, lengths, name_column)
    frame = pl.DataFrame({name_column: names, **dict(zip(columns, values.T, strict=True))}).with_columns(
        pl.col(columns).fill_nan(None)
    )
    span = f"{lengths.min():,}" if lengths.min() == lengths.max() else f"{lengths.min():,} to {lengths.max():,}"
    notes = (
        f"{count(len(names), 'series', 'series')} of {span} values ({value_column} by {time_column}).",
        *notes,
        *_gap_notes(ordered, lengths),
    )
    notes = (*table.notes, *notes)
    return SeriesTable(table.path, dict(frame.schema), frame.height, notes, frame, frame, has_lines=False)


def _observations(
    table: Table, series: tuple[str, ...], options: PreparationOptions
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Name, time and value of each row that has a value, and notes."""
    name_column, time_column, value_column = series
    if not table.schema[value_column].is_numeric():
        raise InputError(
            f'column "{value_column}" of {table.name} holds {column_kind(table, value_column)}: values of series must '
            "be numbers."
        )
    frame = pl.DataFrame(
        {
            SERIES: table.with_text([name_column]).column(name_column),  # 007 stays 007
            TIME: _times(table, time_column, options),
            TEXT: table.column(time_column).cast(pl.String),
            VALUE: table.column(value_column).cast(pl.Float64).fill_nan(None),
        }
    )
    for column, name in ((SERIES, name_column), (TIME, time_column)):
        if frame[column].null_count():
            where = table.place_of(int(frame[column].is_null().arg_max() or 0))
            raise InputError(f'{where}: column "{name}" is empty, but every value of a series needs a name and a time.')
    missing = frame[VALUE].null_count()
    if missing and options.missing != "drop":
        where = table.place_of(int(frame[VALUE].is_null().arg_max() or 0))
        raise InputError(
            f'{where}: column "{value_column}" is empty, in {count(missing)}. Fill these values; or leave out their '
            "time points with --missing drop."
        )
    used = frame.filter(pl.col(VALUE).is_not_null())
    if used.height == 0:
        raise InputError(f'column "{value_column}" of {table.name} has no values.')
    notes = [f"{count(missing)} without a value {_were(missing)} left out."] if missing else []
    lost = frame[SERIES].n_unique() - used[SERIES].n_unique()
    notes += [f"{count(lost, 'series', 'series')} without values {_were(lost)} left out."] if lost else []
    return used, tuple(notes)


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _times(table: Table, name: str, options: PreparationOptions) -> pl.Series:
    """The times as numbers that increase: numbers, or dates, also in text."""
    detected = detect_readings(table, replace(options, include=(name,)), [name], ("number", "date"))
    reading = detected.readings.get(name)
    column = converted(table, detected.readings).column(name)
    if not column.dtype.is_numeric():
        raise InputError(
            f'column "{name}" of {table.name} holds {column_kind(table, name)}, such as "{column.drop_nulls()[0]}": '
            "times of series must be numbers or dates."
        )
    is_age = reading is not None and reading.kind == "date"  # days before the latest date
    return column.cast(pl.Float64) * (-1.0 if is_age else 1.0)


def _check_duplicates(table: Table, ordered: pl.DataFrame, series: tuple[str, ...]) -> None:
    repeated = ordered.filter(pl.struct(ROW, TIME).is_duplicated())
    if repeated.height == 0:
        return
    first = repeated.row(0, named=True)
    pairs = repeated.select(ROW, TIME).unique().height
    raise InputError(
        f'{table.name}: {series[0]} "{first[SERIES]}" has more than one value at {series[1]} "{first[TEXT]}"'
        f"{f', and {pairs - 1:,} more of such pairs' if pairs > 1 else ''}: aggregate them first, for example by their "
        "mean."
    )


def _column_names(ordered: pl.DataFrame, lengths: np.ndarray, taken: str) -> list[str]:
    """Time points as names if all series have the same ones, otherwise numbers of steps."""
    longest = int(lengths.max())
    if ordered[TIME].n_unique() == longest == int(lengths.min()):
        names = ordered.head(longest)[TEXT].to_list()
        if len({*names, taken}) == longest + 1:
            return names
    return [f"step {i + 1}" for i in range(longest)]


def _gap_notes(ordered: pl.DataFrame, lengths: np.ndarray) -> tuple[str, ...]:
    """A note about series without time points, between their first and last, that most others have."""
    n = len(lengths)
    shared = ordered.group_by(TIME).len().filter(pl.col("len") > n / 2)[TIME].sort().to_numpy()
    spans = ordered.group_by(ROW, maintain_order=True).agg(
        pl.col(TIME).min().alias("first"), pl.col(TIME).max().alias("last"),
        pl.col(TIME).is_in(shared.tolist()).sum().alias("known"),
    )  # fmt: skip
    expected = np.searchsorted(shared, spans["last"].to_numpy(), "right")
    expected -= np.searchsorted(shared, spans["first"].to_numpy(), "left")
    gaps = int((spans["known"].to_numpy() < expected).sum())
    if not gaps:
        return ()
    return (
        f"{gaps:,} of {count(n, 'series', 'series')} lack time points that most others have: their values are joined.",
    )
