"""Hints about what a table holds: codes for missing values, stuck sensors, logs of events, and places."""

import re
from collections.abc import Iterator, Sequence
from math import pi

import numpy as np
from numpy.typing import NDArray

from coterie.core.formatting import count, first_names
from coterie.data.row_sample import sample_rows
from coterie.data.tables.converted_table import ConvertedTable
from coterie.data.tables.reader import Table
from coterie.data.tables.readings import TEMPORAL
from coterie.preparation import SkippedColumn
from coterie.preparation.column_names import IDENTIFIER, is_owner_name, words
from coterie.preparation.column_selection import FEW_VALUES
from coterie.preparation.preparation import RawRows

ROWS = 100_000
CODE = re.compile(r"-?(77+|88+|99+)|-[789]")  # numbers that stand for missing values, as -9999
LOW_CODE = -77  # this code and lower ones are proposed also if they are near the others, if these are not negative
MIN_RUN, MIN_SHARE = 20, 0.05  # rows of equal values one after the other, of a sensor that was stuck
LATITUDES = frozenset({"lat", "latitude", "breitengrad"})
LONGITUDES = frozenset({"lon", "lng", "long", "longitude", "längengrad"})
PAGE = 'See the page "Tables as they are" of the documentation.'


def table_hints(table: Table, names: Sequence[str], raw: RawRows, skipped: Sequence[SkippedColumn]) -> tuple[str, ...]:
    """Notes about the columns `names` of numbers, which are the first of `raw`; values are not changed."""
    rows = sample_rows(len(raw.X), ROWS)
    X = np.asarray(raw.X[rows, : len(names)], dtype=np.float64)
    columns = dict(zip(names, X.T, strict=True))
    row_numbers = np.flatnonzero(raw.row_mask)[rows]
    return (
        *_missing_codes(columns),
        *_stuck_sensors(columns, row_numbers),
        *_log(table, names, skipped),
        *_places(columns),
    )


def _missing_codes(columns: dict[str, NDArray[np.float64]]) -> Iterator[str]:
    """Numbers like -9999 that are repeated, and far from all other values or the only negative ones.

    They are far if their distance from the others is at least the range of these.
    """
    found: dict[str, list[str]] = {}
    are_far = True
    for name, column in columns.items():
        if not any(map(_is_code, (np.nanmin(column, initial=0.0), np.nanmax(column, initial=0.0)))):
            continue
        values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        is_code = np.zeros(len(values), dtype=bool)
        for j in (*range(min(3, len(values))), *range(-min(3, len(values)), 0)):
            is_code[j] = counts[j] > 1 and _is_code(values[j])
        others = values[~is_code]
        for code in values[is_code] if len(others) > 2 else ():
            is_far = np.abs(others - code).min() >= others[-1] - others[0]
            if is_far or (code <= LOW_CODE and others[0] >= 0):
                are_far &= bool(is_far)
                found.setdefault(f"{code:.15g}", []).append(name)
    if found:
        described = ", ".join(f"{code} in {first_names(names)}" for code, names in found.items())
        yield (
            f"numbers {'far ' if are_far else ''}outside of all others may be codes for missing values: {described}. "
            f"If so, add --na-values {','.join(found)} and use --missing. {PAGE}"
        )


def _is_code(value: float) -> bool:
    return CODE.fullmatch(f"{value:.15g}") is not None


def _stuck_sensors(columns: dict[str, NDArray[np.float64]], row_numbers: NDArray[np.integer]) -> Iterator[str]:
    """Columns in which one value is in many rows one after the other, and others hardly repeat."""
    found = []
    for name, column in columns.items():
        starts = np.flatnonzero(np.r_[True, column[1:] != column[:-1], True])
        lengths = np.diff(starts)
        first, length = int(starts[lengths.argmax()]), int(lengths.max())
        if length < max(MIN_RUN, MIN_SHARE * len(column)):
            continue
        rest = column[np.isfinite(column) & (column != column[first])]
        is_sorted = np.all(np.diff(rest) >= 0) or np.all(np.diff(rest) <= 0)
        n_equal = int((column == column[first]).sum())
        if len(rest) >= MIN_RUN and 2 * len(np.unique(rest)) > len(rest) and n_equal < 1.1 * length and not is_sorted:
            stop = row_numbers[first + length - 1]
            found.append(f"{name} ({column[first]:.6g} in rows {row_numbers[first]:,} to {stop:,}, from 0)")
    if found:
        yield (
            f"one value stays over many rows in {', '.join(found)}, and others hardly repeat: a sensor that was stuck? "
            f"If so, empty these cells and use --missing. {PAGE}"
        )


def _log(table: Table, names: Sequence[str], skipped: Sequence[SkippedColumn]) -> Iterator[str]:
    """A table with several rows of each identifier, or of each of many things, and with dates and other numbers."""
    readings = table.readings if isinstance(table, ConvertedTable) else {}
    dates = [name for name, dtype in table.schema.items() if dtype.base_type() in TEMPORAL]
    dates += [name for name, reading in readings.items() if reading.kind == "date"]
    if not dates or not set(names).difference(dates):
        return
    identifiers = [column.name for column in skipped if column.reason == IDENTIFIER]
    things = [name for name in table.columns if name not in identifiers and is_owner_name(name)]
    for name in identifiers + [name for name in things if not table.schema[name].is_float()]:
        n = table.column(name).drop_nulls().n_unique()
        if (FEW_VALUES if name in things else 0) < n <= table.n_rows / 2:
            yield (
                f"{name} has {table.n_rows / n:.1f} rows per value, with {dates[0]}: the rows of a log, not "
                f"{count(n, 'thing')} to compare. Aggregate first, with a row for each {name}. {PAGE}"
            )
            return


def _places(columns: dict[str, NDArray[np.float64]]) -> Iterator[str]:
    """Columns of latitudes and longitudes in degrees."""
    largest = {name: np.nanmax(np.abs(column), initial=0.0) for name, column in columns.items()}
    latitudes, longitudes = (
        [name for name in columns if all_names.intersection(words(name)) and pi < largest[name] <= limit]
        for all_names, limit in ((LATITUDES, 90.0), (LONGITUDES, 180.0))
    )
    if latitudes and longitudes:
        yield (
            f"{latitudes[0]} and {longitudes[0]} are degrees: away from the equator, one of longitude is shorter. The "
            f"metric haversine measures distances on the globe. {PAGE}"
        )
