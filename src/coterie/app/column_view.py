"""The columns of a table as the page shows them: what they hold, and what the preparation does with them."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from coterie.app.column_bins import MISSING, number_bins, numbers_of
from coterie.app.preparation_options import default_use, role_of
from coterie.app.state import AUTO, CATEGORY, NUMBER, State
from coterie.data.tables.converted_table import ConvertedTable
from coterie.data.tables.reader import Table
from coterie.data.tables.readings import DESCRIPTIONS, Reading
from coterie.jobs.info import describe_column, value_counts
from coterie.machine import thread_count
from coterie.plots.display import plain
from coterie.preparation.column_selection import EXCLUDED, MAX_ONE_HOT, ROW_NAMES, ROW_WEIGHTS, reason_to_skip
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.transforms import NO_TRANSFORM, TRANSFORMS
from coterie.report.inspection import ColumnInfo

BINS = 24  # of a small histogram
MOST_FREQUENT = 12  # categories of a small histogram
MAX_TEXT = 60  # characters of an example
CATEGORICAL = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
REASONS = {EXCLUDED: "you left it out", ROW_NAMES: "names the rows", ROW_WEIGHTS: "weight of the rows"}


@dataclass(frozen=True)
class Column:
    """A column of the table, without regard to the choices of the user."""

    info: ColumnInfo
    histogram: dict[str, Any] | None
    reading: Reading | None = None  # of a column that the file has as text or dates

    @property
    def is_date(self) -> bool:
        return self.reading is not None and self.reading.kind == "date"

    def shown(self, days: float | None) -> float | str | None:
        """A number as the page shows it: of a column of dates, the date that is so many days after the reference."""
        return self.reading.date_of(-days) if self.reading is not None and self.is_date and days is not None else days

    @property
    def is_number(self) -> bool:
        return default_use(self.info.kind) == NUMBER


def describe_columns(table: Table, original: Table) -> list[Column]:
    """The columns; `table` is `original` with text and dates read as numbers where a fit does so."""
    readings = table.readings if isinstance(table, ConvertedTable) else {}

    def describe(name: str) -> Column:
        readable = table if name in table.schema else original
        column = Column(
            describe_column(readable, name, original, reason_to_skip(readable, name)), None, readings.get(name)
        )
        values = readable.column(name)
        return replace(column, histogram=histogram(-values if column.is_date else values, column.shown))

    with ThreadPoolExecutor(thread_count(None)) as pool:
        return list(pool.map(describe, original.columns))


def histogram(column: pl.Series, shown: Callable[[float], Any]) -> dict[str, Any] | None:
    """Counts in bins, or of the most frequent values."""
    if column.dtype.is_numeric():
        codes, bounds = number_bins(numbers_of(column), BINS)
        if len(bounds) == 0:
            return None
        counts = np.bincount(codes[codes != MISSING], minlength=BINS)
        return {"counts": counts.tolist(), "low": shown(float(bounds[0])), "high": shown(float(bounds[-1]))}
    most = value_counts(column).head(MOST_FREQUENT) if column.dtype.base_type() in CATEGORICAL else pl.DataFrame()
    if most.is_empty():
        return None
    return {"counts": most["count"].to_list(), "labels": [text[:MAX_TEXT] for text in most["value"]]}


def column_views(columns: Iterable[Column], state: State, prepared: PreparedTable | None) -> list[dict[str, Any]]:
    """All columns as JSON; `prepared` is None if the preparation failed, so that only defaults are known."""
    reasons = {} if prepared is None else {each.name: each.reason for each in prepared.skipped}
    sources = () if prepared is None else prepared.preparation.sources
    return [plain(_view(column, state, prepared, reasons, column.info.name in sources)) for column in columns]


def _view(
    column: Column, state: State, prepared: PreparedTable | None, reasons: dict[str, str], is_used: bool
) -> dict[str, Any]:
    info, choice = column.info, state.columns.get(column.info.name, {})
    name = info.name
    reason = reasons.get(name, None if is_used else info.skipped)
    is_used = is_used or (prepared is None and info.skipped is None)
    preparation = None if prepared is None else prepared.preparation
    is_category = preparation is not None and name in preparation.categories
    transform = NO_TRANSFORM if preparation is None else preparation.transforms.get(name, NO_TRANSFORM)
    original, reading = info.kind.partition(" → ")[0], column.reading
    numbers: list[Any] = [info.least, info.mean, info.most]
    if column.is_date and info.mean is not None:  # ages, in days before the reference
        numbers = [column.shown(-age) for age in reversed(numbers)]
    low, mean, high = numbers
    return {
        "name": name, "kind": "number" if original == "numeric" else original, "missing": info.missing,
        "distinct": info.distinct, "min": low, "mean": mean, "max": high,
        "histogram": column.histogram, "examples": [text[:MAX_TEXT] for text in info.examples],
        "role": role_of(name, state, is_used, reason),
        "reason": None if is_used else REASONS.get(reason or "", reason),
        "reading": None if reading is None else f"{original} read as {DESCRIPTIONS[reading.kind]}",
        "as": CATEGORY if is_category or choice.get("as") == CATEGORY else NUMBER if column.is_number else CATEGORY,
        "transform": transform, "transform_auto": choice.get("transform", AUTO) == AUTO,
        "choices": _choices(column),
    }  # fmt: skip


def _choices(column: Column) -> dict[str, list[str]]:
    """The choices of the user for a column."""
    info, least = column.info, column.info.least
    roles = ["ignored"] if info.kind == "empty" else ["feature", "ignored", "id"]
    roles += ["weight"] if info.kind == "numeric" and least is not None and least >= 0 else []
    uses = [NUMBER] if column.is_number else []
    uses += [CATEGORY] if 0 < info.distinct <= MAX_ONE_HOT else []
    valid = TRANSFORMS.items() if column.is_number and least is not None else ()
    transforms = [name for name, each in valid if bool(each.is_valid(np.array(least)))]
    return {"roles": roles, "as": uses, "transforms": [AUTO, NO_TRANSFORM, *transforms]}
