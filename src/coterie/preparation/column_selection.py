"""Which columns of a table are used, and why the others are not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from coterie.core.formatting import first_names, truncate
from coterie.data.tables import delimited_text, malformed_lines
from coterie.data.tables.reader import Table
from coterie.errors import InputError, ParameterError
from coterie.families.frame_columns import is_categorical
from coterie.preparation import PreparationOptions, SkippedColumn
from coterie.preparation.name_lists import shell_names

# Columns that a job adds to the output.
LABEL = "cluster"
DISTANCE = "cluster_distance"
PROBABILITY = "cluster_probability"
NAME = "cluster_name"

EXCLUDED = "excluded"
NOT_SELECTED = "not asked for"
ROW_NAMES = "names the rows"
ROW_WEIGHTS = "weight of the rows"
IDENTIFIER = re.compile(r"(.+_)?id|row_?id", re.IGNORECASE)
FEW_VALUES = 20  # a text column with at most this many distinct values is categorical, however few rows there are
MAX_ONE_HOT = 200  # distinct values of a column that --one-hot accepts
MOSTLY = 0.9  # share of numbers above which a text column looks like a mistake
LONGEST = 40  # characters of a value that a message quotes
CATEGORIES = ("text", "true/false", "categories")
KINDS = {
    pl.String: "text", pl.Boolean: "true/false", pl.Categorical: "categories", pl.Enum: "categories", pl.Date: "dates",
    pl.Datetime: "dates and times", pl.Time: "times", pl.Duration: "durations", pl.List: "lists", pl.Array: "lists",
    pl.Struct: "records", pl.Binary: "bytes",
}  # fmt: skip
NOT_CATEGORIES = (pl.List, pl.Array, pl.Struct, pl.Binary, pl.Object, pl.Duration)


@dataclass(frozen=True)
class ColumnSelection:
    """Numeric and categorical columns that are used, in the order of the table; and the columns skipped."""

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    skipped: tuple[SkippedColumn, ...]


def select_columns(table: Table, options: PreparationOptions, *, mixed: bool = False) -> ColumnSelection:
    """Select the columns named in the options; without names every numeric column that is not an identifier.

    Categorical columns are used if they are one-hot encoded, or if the algorithm accepts categories (`mixed`).
    """
    roles = {options.id: ROW_NAMES, options.weight: ROW_WEIGHTS}
    for name in (*options.columns, *options.exclude, *options.one_hot, *(role for role in roles if role is not None)):
        check_column(name, table.columns)
    if mixed and options.one_hot:
        raise ParameterError("--one-hot is not for mixture, which takes categories as they are.")
    reasons = {name: _reason(table, name, options, mixed) for name in table.columns}
    reasons |= {name: role for name, role in roles.items() if name is not None}
    reasons |= dict.fromkeys(options.exclude, EXCLUDED)
    used = [name for name, reason in reasons.items() if reason is None]
    if not used:
        raise InputError(_nothing_to_use(table, reasons))
    categories = tuple(name for name in used if name in options.one_hot or (mixed and _is_categorical(table, name)))
    return ColumnSelection(
        tuple(name for name in used if name not in categories),
        categories,
        tuple(SkippedColumn(name, reason) for name, reason in reasons.items() if reason),
    )


def check_column(name: str, columns: Sequence[str]) -> None:
    """Reject a column that does not exist; suggest one with a similar name."""
    if name in columns:
        return
    by_lower_case = {column.lower(): column for column in columns}
    similar = get_close_matches(name.lower(), by_lower_case, n=1) or [
        column for column in by_lower_case if name.lower() in column
    ]
    hint = f' Did you mean "{by_lower_case[similar[0]]}"?' if similar else ""
    raise InputError(f'no column "{name}".{hint} Columns: {first_names(columns)}')


def check_categories(table: Table, name: str) -> None:
    """Reject a column whose values cannot be categories."""
    check_column(name, table.columns)
    if table.schema[name].base_type() in NOT_CATEGORIES:
        kind = column_kind(table, name)
        raise InputError(
            f'column "{name}" of {table.name} holds {kind}, which cannot be categories: convert it to text.'
        )


def check_types(table: Table, numbers: Iterable[str], categories: Iterable[str]) -> None:
    """Reject columns of other types than those that the model was fitted to; name the first invalid cell."""
    for name in numbers:
        dtype = table.schema[name]
        if dtype.base_type() in delimited_text.TEXT_TYPES:
            _check_cells(table, name)
        elif not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise InputError(
                f'column "{name}" of {table.name} holds {column_kind(table, name)}; the model needs numbers.'
            )
    for name in categories:
        check_categories(table, name)


def _check_cells(table: Table, name: str) -> None:
    start = 0
    for batch in table.batches([name]):
        is_invalid = delimited_text.is_not_number(batch[name].cast(pl.String))
        if is_invalid.any():
            row = int(is_invalid.arg_max() or 0)
            line = malformed_lines.line_number(table.path, start + row)
            where = f"row {start + row:,} (from 0)" if line is None else f"line {line:,}"
            value = truncate(str(batch[name][row]), LONGEST)
            raise InputError(
                f'{table.name}, {where}: column "{name}" has the value "{value}", but the model needs numbers there. '
                "Correct the cell; or empty it, and use --missing drop."
            )
        start += batch.height


def column_kind(table: Table, name: str) -> str:
    """What a column contains, in a word or two."""
    dtype = table.schema[name]
    if name in table.empty_columns:
        return "empty"
    if dtype.is_numeric():
        return "numeric"
    return KINDS.get(dtype.base_type(), "objects")


def reason_to_skip(table: Table, name: str) -> str | None:
    """Why the column is not used by default; None if it is used."""
    if name in (LABEL, DISTANCE, PROBABILITY, NAME):
        return "an earlier result"
    has_id_name = IDENTIFIER.fullmatch(name) is not None and table.schema[name].is_integer()
    if has_id_name and table.column(name).drop_nulls().is_unique().all():
        return "identifier"
    kind = column_kind(table, name)
    return None if kind == "numeric" else kind


def nearly_numeric_warnings(table: Table, skipped: Sequence[SkippedColumn]) -> tuple[str, ...]:
    """Warnings about text columns in which nearly all values are numbers."""
    counts = {column.name: _FieldCounts() for column in skipped if column.reason == "text"}
    start = 0
    for batch in table.batches(list(counts)) if counts else ():
        for name, fields in counts.items():
            fields.add(batch[name], start)
        start += batch.height
    return tuple(
        f'column "{name}" was skipped as text because {fields.description} in row {fields.row:,} (from 0): correct or '
        f"empty {'it' if fields.texts == 1 else 'them'} to use the column."
        for name, fields in counts.items()
        if 0 < fields.texts <= (1 - MOSTLY) * (fields.texts + fields.numbers)
    )


@dataclass
class _FieldCounts:
    """How many values of a text column are numbers, and how many are not."""

    numbers: int = 0
    texts: int = 0
    row: int = 0  # of the first value that is not a number
    example: str = ""

    def add(self, column: pl.Series, start: int) -> None:
        """Count the values of a batch; its first row is row `start` of the table."""
        is_text = delimited_text.is_not_number(column)
        if self.texts == 0 and is_text.any():
            row = int(is_text.arg_max() or 0)
            self.row, self.example = start + row, str(column[row])
        texts = int(is_text.sum())
        self.texts, self.numbers = self.texts + texts, self.numbers + len(column) - column.null_count() - texts

    @property
    def description(self) -> str:
        total = self.texts + self.numbers
        if self.texts == 1:
            return f'1 of its {total:,} values is not a number, "{self.example}"'
        return f'{self.texts:,} of its {total:,} values are not numbers, such as "{self.example}"'


def _reason(table: Table, name: str, options: PreparationOptions, mixed: bool) -> str | None:
    if name in options.one_hot:
        check_categories(table, name)
        _check_one_hot(table.column(name))
        return None
    if options.columns:
        return _selected_reason(table, name, options.columns, mixed)
    reason = reason_to_skip(table, name)
    if mixed and reason in CATEGORIES:
        distinct = table.column(name).drop_nulls().n_unique()
        return None if distinct <= max(FEW_VALUES, table.n_rows // 2) else "text that hardly repeats"
    return reason


def _check_one_hot(column: pl.Series) -> None:
    """Reject a column with no values, or with too many distinct ones."""
    distinct = column.drop_nulls().n_unique()
    if distinct == 0:
        raise InputError(f'column "{column.name}" is empty. Leave it out of --one-hot.')
    if distinct > MAX_ONE_HOT:
        raise InputError(
            f'column "{column.name}" has {distinct:,} different values, and --one-hot takes {MAX_ONE_HOT} at most.'
        )


def _selected_reason(table: Table, name: str, selected: Sequence[str], mixed: bool) -> str | None:
    if name not in selected:
        return NOT_SELECTED
    kind = column_kind(table, name)
    if kind in ("numeric", "true/false") or (mixed and kind in CATEGORIES):
        return None
    remedy = f"Use --one-hot {shell_names(name)}, or leave it" if kind in CATEGORIES else "Leave it"
    content = "nothing" if kind == "empty" else kind
    raise InputError(f'column "{name}" holds {content}, not numbers. {remedy} out of --columns.')


def _is_categorical(table: Table, name: str) -> bool:
    """Whether a mixture models a column as categorical; so it does with integers of few distinct values."""
    if column_kind(table, name) in CATEGORIES:
        return True
    if not table.schema[name].is_integer():
        return False
    column = table.column(name)
    return column.drop_nulls().n_unique() > 1 and is_categorical(column)


def _nothing_to_use(table: Table, reasons: dict[str, str | None]) -> str:
    listed = first_names([f"{name}: {reason}" for name, reason in reasons.items()])
    texts = [name for name, reason in reasons.items() if reason in CATEGORIES]
    fewest = min(texts, key=lambda name: table.column(name).n_unique(), default=None)
    remedy = f" Use --one-hot {shell_names(fewest)}, or pass embeddings." if fewest is not None else ""
    return f"no numeric columns in {table.name} ({listed}).{remedy}"
