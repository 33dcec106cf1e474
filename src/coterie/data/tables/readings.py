"""How a column of a table is read as numbers: a rule that is found by a fit, stored in the model, and used by predict.

A reading is stored as a dictionary of plain values (`Reading.as_dict`):

- ``kind``: ``number``, ``boolean`` or ``date``; ``column``: name of the column of the table;
- of numbers: ``decimal``, the decimal separator, ``.`` or ``,``; ``unit``, such as ``$`` or ``%``: cells have
  this unit or none;
- of booleans: ``true`` and ``false``, the words for 1 and 0, in lower case;
- of dates: ``format`` (of strptime; None for dates that are not text), ``reference`` (ISO 8601), and ``part``: ``age``
  (days before the reference), or sine or cosine of the position in a ``year``, ``week`` or ``day``; rules use ``date``,
  which is the date itself;
- of all kinds: ``missing``, words that mean a missing value, besides the usual ones; ``example``, a cell.
"""

import math
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

import polars as pl

from coterie.data.tables.written_numbers import Decimal, is_missing_mark, split_numbers

Kind: TypeAlias = Literal["number", "boolean", "date"]
DESCRIPTIONS: dict[str, str] = {"number": "numbers", "boolean": "0 and 1", "date": "dates"}
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # days
PARTS = ("age", *(f"{cycle}_{wave}" for cycle in CYCLES for wave in ("sin", "cos")))
EPOCH = datetime(2001, 1, 1)  # a Monday at the beginning of a year
DAY = 86_400_000_000  # microseconds
TEMPORAL = (pl.Date, pl.Datetime)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a column is read as numbers; see the module for the fields."""

    column: str
    kind: Kind
    decimal: Decimal = "."
    unit: str = ""
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    format: str | None = None
    reference: str | None = None
    part: str = "age"
    missing: tuple[str, ...] = ()
    example: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The fields that matter, as texts and lists."""
        values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        by_kind = {"number": ("decimal", "unit"), "boolean": ("true", "false"), "date": ("format", "reference", "part")}
        return {name: values[name] for name in ("column", "kind", *by_kind[self.kind], "missing", "example")}

    def date_of(self, age: float) -> str | None:
        """The day that is `age` days before the reference (ISO 8601); None if the numbers are no ages, and for NaN."""
        if self.kind != "date" or self.part != "age" or math.isnan(age):
            return None
        return (datetime.fromisoformat(str(self.reference)) - timedelta(days=age)).date().isoformat()

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Reading":
        """The reading of a dictionary, as in a model file."""
        known = {field.name for field in fields(cls)}
        plain: dict[str, Any] = {key: value for key, value in values.items() if key in known}
        plain |= {key: tuple(value) for key, value in plain.items() if isinstance(value, list)}
        return cls(**plain)


def present(column: pl.Series, missing: tuple[str, ...] = ()) -> pl.Series:
    """Cells as text without surrounding blanks; null where they mean a missing value."""
    text = column.cast(pl.String).str.strip_chars()
    return text.set(is_missing_mark(text, missing), None)


def convert(column: pl.Series, reading: Reading) -> tuple[pl.Series, pl.Series]:
    """The column as numbers, null where a value is missing; and the mask of cells that the reading does not fit."""
    dtype = column.dtype
    if dtype.is_numeric() or dtype == pl.Null:
        if reading.kind != "date":
            return _without_codes(column.cast(pl.Float64), reading), pl.repeat(False, len(column), eager=True)
    elif dtype == pl.Boolean and reading.kind == "boolean":
        return column.cast(pl.Float64), pl.repeat(False, len(column), eager=True)
    elif dtype.base_type() in TEMPORAL and reading.kind == "date":
        return _date_part(column.cast(pl.Datetime("us")), reading), pl.repeat(False, len(column), eager=True)
    text = present(column, reading.missing)
    if reading.kind == "number":
        parts = split_numbers(text)
        has_other_unit = (parts.unit != "") & (parts.unit != reading.unit)
        values = parts.values(reading.decimal)
        values = values.set(has_other_unit.fill_null(False), None) if reading.unit else values
    elif reading.kind == "boolean":
        words = dict.fromkeys(reading.true, 1.0) | dict.fromkeys(reading.false, 0.0) | {"1": 1.0, "0": 0.0}
        values = text.str.to_lowercase().replace_strict(
            list(words), list(words.values()), default=None, return_dtype=pl.Float64
        )
    else:
        values = _date_part(parse_dates(text, reading.format or ""), reading)
    is_invalid = values.is_null() & text.is_not_null()
    values = _without_codes(values, reading) if reading.kind == "number" else values
    return values.alias(column.name), is_invalid


def codes_of(words: tuple[str, ...]) -> list[float]:
    """The numbers among words that mean a missing value, such as -9999."""
    parsed = pl.Series(words, dtype=pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    return parsed.filter(parsed.is_finite().fill_null(False)).to_list()


def _without_codes(values: pl.Series, reading: Reading) -> pl.Series:
    return values.set(values.is_in(codes_of(reading.missing)).fill_null(False), None)


def parse_dates(text: pl.Series, date_format: str) -> pl.Series:
    """Dates and times of a format, null where the text does not fit; ``T`` and a final ``Z`` are ignored."""
    plain = text.str.replace(r"(\d)T(\d)", "$1 $2").str.replace(r"\s*(?:Z|\+00:?00)$", "")
    if "%H" in date_format or "%I" in date_format:
        parsed = plain.str.to_datetime(date_format, strict=False, time_unit="us")
    else:
        parsed = plain.str.to_date(date_format, strict=False).cast(pl.Datetime("us"))
    return parsed.set((parsed.dt.year() < 1000) | (parsed.dt.year() > 2999), None)


def _date_part(dates: pl.Series, reading: Reading) -> pl.Series:
    zone_free = dates.dt.replace_time_zone(None)
    if reading.part == "date":
        return zone_free
    if reading.part == "age":
        reference = datetime.fromisoformat(str(reading.reference))
        return (pl.Series([reference], dtype=pl.Datetime("us")) - zone_free).dt.total_microseconds() / DAY
    cycle, _, wave = reading.part.partition("_")
    if cycle == "year":
        time_of_day = zone_free.dt.hour().cast(pl.Float64) / 24 + zone_free.dt.minute().cast(pl.Float64) / 1440
        days = zone_free.dt.ordinal_day() - 1 + time_of_day
    else:
        days = (zone_free - pl.Series([EPOCH], dtype=pl.Datetime("us"))).dt.total_microseconds() / DAY
    angle = days * (2 * math.pi / CYCLES[cycle])
    return angle.sin() if wave == "sin" else angle.cos()
