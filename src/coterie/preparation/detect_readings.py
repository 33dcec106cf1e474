"""Which columns of text, dates and truth values are read as numbers, and how: decided for each column as a whole."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from typing import cast

import polars as pl

from coterie.core.formatting import count, first_names, truncate
from coterie.data.tables import delimited_text
from coterie.data.tables.reader import Table
from coterie.data.tables.readings import CYCLES, TEMPORAL, Reading, codes_of, parse_dates, present
from coterie.data.tables.written_numbers import (
    CURRENCY,
    DIGITS,
    MISSING_MARKS,
    MISSING_WORDS,
    Decimal,
    WrittenNumbers,
    is_missing_mark,
    split_numbers,
)
from coterie.errors import InputError
from coterie.preparation import PreparationOptions

HEAD = 1000  # cells that are tested before the whole column is
FIXED = 50  # cells with exactly three digits after a separator, none with fewer: these are groups of thousands
ONE_SEPARATOR = r"^-?\d+[.,](?:\d{1,2}|\d{4,})$"  # a number whose separator cannot be that of groups of thousands
LONGEST = 30  # characters of a cell that a note quotes
MARKS_NAMED = 3
SEVERAL_UNITS = "amounts in several units"
LEADING_ZEROS = "codes with leading zeros"
TRUE = ("true", "yes", "y", "t", "on", "ja", "oui", "sí", "si", "sim", "да", "是")
FALSE = ("false", "no", "n", "f", "off", "nein", "non", "não", "нет", "否")
DAY_FIRST = {"%d/%m/%Y": "%m/%d/%Y", "%d-%m-%Y": "%m-%d-%Y", "%d/%m/%y": "%m/%d/%y", "%d-%m-%y": "%m-%d-%y"}
DATE_FORMATS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", *DAY_FIRST, *DAY_FIRST.values(), "%d.%m.%y", "%d %b %Y", "%d-%b-%Y",
    "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d. %B %Y",
)  # fmt: skip
TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p")
DECIMALS: dict[str, Decimal] = {"point": ".", "comma": ","}


@dataclass
class DetectedReadings:
    """Readings by the name of the new column, and what to tell about them."""

    readings: dict[str, Reading] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)  # why columns that look like numbers are not read so


@dataclass(frozen=True)
class _NumberColumn:
    """A column of text in which every cell is a number."""

    text: pl.Series
    parts: WrittenNumbers
    decimals: tuple[Decimal, ...]  # separators that all cells fit
    reader: Decimal | None = None  # how the column was read without looking at it as a whole; None: as text

    @property
    def is_ambiguous(self) -> bool:
        return len(self.decimals) == 2 and self.parts.is_ambiguous

    @property
    def looks_grouped(self) -> bool:
        """Whether so many cells have exactly three digits after a separator that these are groups of thousands."""
        digits = self.parts.digits.drop_nulls()
        has_separator = digits.str.contains("[.,]")
        return int(has_separator.sum()) >= FIXED and not bool(has_separator.all())


def detect_readings(
    table: Table, options: PreparationOptions, candidates: Iterable[str], kinds: Iterable[str]
) -> DetectedReadings:
    """Find readings of the columns `candidates` as one of `kinds`; numbers of the table stay as they are."""
    names, kinds = [name for name in candidates if name not in table.empty_columns], tuple(kinds)
    codes = codes_of(options.na_values)
    numeric = [name for name in names if codes and table.schema[name].is_numeric()]
    coded = [name for name in numeric if table.column(name).cast(pl.Float64).is_in(codes).any()]
    table = table.with_text(coded) if coded else table
    texts = [name for name in names if table.schema[name].base_type() in delimited_text.TEXT_TYPES]
    result = DetectedReadings()
    for name in coded:
        result.readings[name] = Reading(column=name, kind="number", missing=options.na_values)
    numbers = _number_columns(table, texts, options, result.reasons) if "number" in kinds else {}
    floats = [name for name in names if table.schema[name] == pl.Float64]
    heads = _raw_heads(table, floats)
    grouped = [name for name, head in heads.items() if _is_ambiguous(head)]
    evidence = _decimal_evidence([head for name, head in heads.items() if name not in grouped], numbers.values())
    numbers |= _grouped_columns(table, grouped)
    notes = _read_numbers(numbers, options, evidence, result.readings)
    others = [name for name in texts if name not in numbers and name not in result.reasons]
    if "boolean" in kinds:
        notes += _read_booleans(table, names, others, options, result.readings)
    if "date" in kinds and options.dates != "skip":
        notes += _read_dates(table, names, others, options, evidence, result.readings)
    order = {name: j for j, name in enumerate(table.columns)}
    result.readings = dict(sorted(result.readings.items(), key=lambda item: order[item[1].column]))
    result.notes = tuple(notes)
    return result


def _survivors(table: Table, names: list[str], fits: Callable[[pl.Series], bool]) -> list[str]:
    """Columns whose first cells fit, so that the whole column is worth a pass."""
    return [name for name in names if fits(table.head[name].head(HEAD))]


def _number_columns(
    table: Table, names: list[str], options: PreparationOptions, reasons: dict[str, str]
) -> dict[str, _NumberColumn]:
    """The columns of text in which every cell that is not missing is a number."""
    columns = {}
    for name in _survivors(table, names, lambda head: bool(_decimals(present(head, options.na_values)))):
        text = present(table.column(name), options.na_values)
        decimals = _decimals(text)
        if not decimals or text.null_count() == len(text):
            continue
        parts = split_numbers(text)
        is_code = delimited_text.has_codes(text) and text.str.contains("^[0-9]+$").all()
        if is_code and name not in (*options.columns, *options.include):
            reasons[name] = LEADING_ZEROS
        elif _units(parts) is None:
            reasons[name] = SEVERAL_UNITS
        else:
            columns[name] = _NumberColumn(text, parts, decimals)
    return columns


def _decimals(text: pl.Series) -> tuple[Decimal, ...]:
    """Decimal separators with which all cells are numbers."""
    cells = text.drop_nulls()
    parts = split_numbers(cells)
    return tuple(decimal for decimal in DIGITS if parts.fits(decimal).all())


def _units(parts: WrittenNumbers) -> str | None:
    """The unit of the column; None if cells have different units, or some have none that is not a currency."""
    units = [unit for unit in parts.unit.unique().drop_nulls().to_list() if unit]
    if len(units) > 1:
        return None
    has_none = (parts.unit == "") & (parts.digits != "0")
    if units and not CURRENCY.fullmatch(units[0]) and has_none.any():
        return None
    return units[0] if units else ""


def _is_ambiguous(text: pl.Series) -> bool:
    """Whether every cell fits both decimal separators; a cell such as 1.5 decides it alone."""
    return not text.str.contains(ONE_SEPARATOR).any() and split_numbers(text).is_ambiguous


def _decimal_evidence(heads: Iterable[pl.Series], columns: Iterable[_NumberColumn]) -> Decimal | None:
    """The decimal separator of the columns that leave no doubt; None if there are none, or they disagree."""
    decimals = {column.decimals[0] for column in columns if len(column.decimals) == 1}
    for text in heads:
        if text.str.contains("[.,]").any():
            decimals.add("," if text.str.contains(",", literal=True).any() else ".")
    return decimals.pop() if len(decimals) == 1 else None


def _raw_heads(table: Table, names: list[str]) -> dict[str, pl.Series]:
    """The first cells of columns as text, of text files."""
    head = next(table.raw_batches(names), None) if names else None
    if head is None:
        return {}
    return {column.name: present(column).drop_nulls() for column in head.head(HEAD) if column.dtype == pl.String}


def _grouped_columns(table: Table, names: list[str]) -> dict[str, _NumberColumn]:
    """Columns that were read as decimal numbers, but whose cells may have groups of thousands: ``1.234``."""
    columns = {}
    for name in names:
        text = present(table.with_text([name]).column(name))
        parts = split_numbers(text)
        if parts.is_ambiguous:
            reader: Decimal = "," if text.str.contains(",", literal=True).any() else "."
            columns[name] = _NumberColumn(text, parts, (".", ","), reader)
    return columns


def _read_numbers(
    columns: dict[str, _NumberColumn], options: PreparationOptions, evidence: Decimal | None,
    readings: dict[str, Reading],
) -> list[str]:  # fmt: skip
    """Add readings of numbers, and return notes about them."""
    examples: list[str] = []
    doubts: dict[str, dict[str, str]] = {}  # by the other separator: columns, each with an example
    for name, column in columns.items():
        decimal = column.decimals[0]
        if options.decimal != "auto":
            decimal = DECIMALS[options.decimal]
            if decimal not in column.decimals:
                row = int((~column.parts.fits(decimal) & column.text.is_not_null()).arg_max() or 0)
                raise InputError(
                    f'column "{name}" has the value "{column.text[row]}", which has no decimal {options.decimal}: '
                    "leave out --decimal."
                )
        elif column.is_ambiguous:
            symbol: Decimal = "," if column.parts.digits.str.contains(",", literal=True).any() else "."
            default = column.reader or "."
            grouped: Decimal = "," if symbol == "." else "."
            decimal = evidence or (grouped if column.looks_grouped else default)
        example, value = _example(column, decimal)
        if column.is_ambiguous and options.decimal == "auto" and (evidence is None or decimal != evidence):
            other = "comma" if decimal == "." else "point"
            doubts.setdefault(other, {})[name] = f'"{example}" is read as {value}'
        if decimal == column.reader:
            continue
        unit = _units(column.parts) or ""
        readings[name] = Reading(
            column=name, kind="number", decimal=decimal, unit=unit, missing=options.na_values, example=example
        )
        if column.text.cast(pl.Float64, strict=False).null_count() > column.text.null_count():
            examples.append(f'{name} ("{example}" is {value})')
    return [
        *([f"read as numbers: {', '.join(examples)}."] if examples else []),
        *(_separator_note(other, columns) for other, columns in doubts.items()),
    ]


def _separator_note(other: str, columns: dict[str, str]) -> str:
    """The note about columns whose decimal separator is not certain, with an example of the first."""
    (first, example), *more = columns.items()
    if not more:
        return f'column "{first}": {example}; --decimal {other} reads it otherwise.'
    return f"columns {', '.join(columns)}: {example} in {first}; --decimal {other} reads them otherwise."


def _example(column: _NumberColumn, decimal: Decimal) -> tuple[str, str]:
    """A cell that is a number, if possible not a plain one, and its value."""
    is_number = column.text.is_not_null()
    not_plain = is_number & column.text.cast(pl.Float64, strict=False).is_null()
    separated = column.parts.digits.str.contains("[.,]").fill_null(False)
    row = int(next(mask for mask in (not_plain, separated, is_number) if mask.any()).arg_max() or 0)
    return truncate(str(column.text[row]), LONGEST), f"{column.parts.values(decimal)[row]:.15g}"


def _read_booleans(
    table: Table, names: list[str], texts: list[str], options: PreparationOptions, readings: dict[str, Reading]
) -> list[str]:
    examples = []
    for name in [each for each in names if table.schema[each] == pl.Boolean]:
        readings[name] = Reading(
            column=name, kind="boolean", true=TRUE, false=FALSE, missing=options.na_values, example="true"
        )
        examples.append(name)

    def words(column: pl.Series) -> set[str]:
        return set(present(column, options.na_values).str.to_lowercase().unique().drop_nulls().to_list())

    for name in _survivors(table, texts, lambda head: words(head) <= {*TRUE, *FALSE}):
        column = table.column(name)
        seen = words(column)
        if seen <= {*TRUE, *FALSE} and seen & set(TRUE) and seen & set(FALSE):
            is_true = column.str.strip_chars().str.to_lowercase().is_in(list(TRUE)).fill_null(False)
            example = str(column[int(is_true.arg_max() or 0)]).strip()
            readings[name] = Reading(
                column=name, kind="boolean", true=TRUE, false=FALSE, missing=options.na_values, example=example
            )
            examples.append(f'{name} ("{example}" is 1)')
    return [f"read as 0 and 1: {', '.join(examples)}."] if examples else []


def _read_dates(
    table: Table, names: list[str], texts: list[str], options: PreparationOptions, evidence: Decimal | None,
    readings: dict[str, Reading],
) -> list[str]:  # fmt: skip
    examples, doubts = [], []
    dates = [name for name in names if table.schema[name].base_type() in TEMPORAL]
    survivors = _survivors(table, texts, lambda head: bool(_date_formats(present(head, options.na_values))))
    for name in sorted([*dates, *survivors], key=table.columns.index):
        column, date_format, example = table.column(name), None, ""
        if name in survivors:
            text = present(column, options.na_values)
            formats = _date_formats(text)
            if not formats:
                continue
            day_first = next((each for each in formats if _without_time(each) in DAY_FIRST), None)
            is_ambiguous = day_first is not None and len(formats) > 1
            date_format = day_first if is_ambiguous and evidence == "," else formats[-1] if is_ambiguous else formats[0]
            example = str(text.drop_nulls()[0])
            if is_ambiguous:
                order = "day" if date_format == day_first else "month"
                doubts.append(f'column "{name}": "{example}" is read with the {order} first, the other order fits too.')
            moments = parse_dates(text, str(date_format))
        else:
            moments = column.cast(pl.Datetime("us")).dt.replace_time_zone(None)
        latest = cast(datetime | None, moments.max())
        if latest is None:
            continue
        reference = latest.replace(hour=0, minute=0, second=0, microsecond=0)
        reading = Reading(
            column=name, kind="date", format=date_format, reference=reference.isoformat(), missing=options.na_values,
            example=example,
        )  # fmt: skip
        readings |= _date_columns(reading, moments, options.dates)
        examples.append(f"{name} (before {reference:%Y-%m-%d})")
    if not examples:
        return []
    more = {"age": "; --dates cyclic adds the time of year, --dates skip leaves them out"}.get(options.dates, "")
    what = "age in days, and time of year, week and day" if options.dates == "cyclic" else "age in days"
    return [f"dates are read as {what}: {', '.join(examples)}{more}.", *doubts]


def _date_columns(reading: Reading, moments: pl.Series, dates: str) -> dict[str, Reading]:
    """The age, and with ``cyclic`` sine and cosine of each cycle in which the dates vary."""
    columns = {reading.column: reading}
    if dates == "cyclic":
        has_time = bool((moments.dt.time() != moments.dt.time().min()).any())
        for cycle, wave in product(CYCLES, ("sin", "cos")):
            if cycle != "day" or has_time:
                columns[f"{reading.column}_{cycle}_{wave}"] = replace(reading, part=f"{cycle}_{wave}")
    return columns


def _date_formats(text: pl.Series) -> tuple[str, ...]:
    """The formats that all cells fit; more than one if day and month cannot be told apart."""
    cells = text.drop_nulls().unique(maintain_order=True)
    formats: list[str] = []
    if len(cells) == 0 or not cells.head(HEAD).str.contains(r"\d").all():
        return ()
    for date_format in map("".join, product(DATE_FORMATS, TIME_FORMATS)):
        is_first = not formats or DAY_FIRST.get(_without_time(formats[0])) == _without_time(date_format)
        if is_first and all(parse_dates(part, date_format).null_count() == 0 for part in (cells.head(5), cells)):
            formats.append(date_format)
    return tuple(formats)


def _without_time(date_format: str) -> str:
    for time_format in TIME_FORMATS[1:]:
        date_format = date_format.removesuffix(time_format)
    return date_format


def mark_notes(
    table: Table, numbers: Iterable[str], categories: Iterable[str], na_values: tuple[str, ...]
) -> list[str]:
    """A note about cells of text that are read as missing values, besides empty cells and the usual words."""
    names = dict.fromkeys(numbers, MISSING_MARKS) | dict.fromkeys(categories, MISSING_WORDS)
    cells: dict[tuple[str, ...], dict[str, int]] = {}  # by marks: columns, each with its number of cells
    for name, marks in names.items():
        if table.schema[name].base_type() not in delimited_text.TEXT_TYPES:
            continue
        text = table.column(name).cast(pl.String).str.strip_chars()
        is_mark = is_missing_mark(text, na_values * (marks == MISSING_MARKS), marks) & ~text.is_in(
            delimited_text.MISSING_MARKS
        ).fill_null(True)
        if is_mark.any():
            seen = text.filter(is_mark).unique(maintain_order=True).to_list()[:MARKS_NAMED]
            cells.setdefault(tuple(seen), {})[name] = int(is_mark.sum())
    examples = []
    for marks, counts in cells.items():
        shown = " and ".join(f'"{mark}"' for mark in marks)
        examples.append(f"{shown} in {first_names([*counts])} ({count(sum(counts.values()), 'cell')})")
    return [f"read as missing values: {', '.join(examples)}."] if examples else []
