"""Which columns of a table are used, and why the others are not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import polars as pl

from coterie.core.formatting import count, first_names, truncate
from coterie.data.tables import delimited_text
from coterie.data.tables.converted_table import ConvertedTable
from coterie.data.tables.reader import Table
from coterie.data.tables.written_numbers import is_missing_mark, split_numbers
from coterie.errors import InputError, ParameterError
from coterie.families.frame_columns import is_categorical
from coterie.preparation import PreparationOptions, SkippedColumn, column_names
from coterie.preparation.column_names import IDENTIFIER, PHONE_NUMBER, POSTAL_CODE, ROW_NUMBERS
from coterie.preparation.detect_readings import LEADING_ZEROS
from coterie.preparation.name_lists import shell_names

# Columns that a job adds to the output.
LABEL = "cluster"
DISTANCE = "cluster_distance"
PROBABILITY = "cluster_probability"
NAME = "cluster_name"
NOISE = "noise"  # name of the rows in no cluster
UNUSUAL = "unusual"

EXCLUDED = "excluded"
NOT_SELECTED = "not asked for"
ROW_NAMES = "names the rows"
ROW_WEIGHTS = "weight of the rows"
FREE_TEXT = "text that hardly repeats"
MOSTLY_MISSING = "mostly missing"
FEW_VALUES = 20  # a text column with at most this many distinct values is categorical, however few rows there are
MAX_ONE_HOT = 200  # distinct values of a column that --one-hot accepts
MOSTLY = 0.9  # share of numbers above which a text column looks like a mistake
FEW_TEXTS = 2  # different texts that look like codes if there are more numbers
EXAMPLES = 5  # different values that are not numbers, of a column of text in which nearly all are
PHONE_DIGITS = 6  # of a telephone number, at least
LONGEST = 40  # characters of a value that a message quotes
MIN_NUMBERED, MAX_GAPS = 20, 0.2  # rows that may be numbered, and share of numbers between them that may be missing
CATEGORIES = ("text", "true/false", "categories")
INCLUDE, ONE_HOT = "--include", "--one-hot"
OPTIONS = {  # options that use columns that are skipped for these reasons
    **dict.fromkeys((IDENTIFIER, ROW_NUMBERS, PHONE_NUMBER), INCLUDE),
    **dict.fromkeys((POSTAL_CODE, LEADING_ZEROS, *CATEGORIES), ONE_HOT),
}  # fmt: skip
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


def check_options(table: Table, options: PreparationOptions, *, mixed: bool = False) -> None:
    """Reject names of columns that do not exist, and options that contradict each other."""
    roles = tuple(role for role in (options.id, options.weight) if role is not None)
    for name in (*options.columns, *options.exclude, *options.include, *options.one_hot, *roles):
        check_column(name, table.columns)
    if mixed and options.one_hot:
        raise ParameterError("--one-hot is not for mixture, which takes categories as they are.")


def reading_candidates(table: Table, options: PreparationOptions) -> list[str]:
    """Columns that may be read as numbers: those that could be used, unless they are categories or named like codes."""
    roles = (options.id, options.weight, *options.exclude, LABEL, DISTANCE, PROBABILITY, NAME)
    selected = (*options.columns, *options.include)
    return [
        name
        for name in table.columns
        if name not in options.one_hot
        and (name in selected or not (options.columns or name in roles or _has_name_of_code(name)))
    ]


def select_columns(
    table: Table, options: PreparationOptions, *, mixed: bool = False, series: bool = False,
    known: Mapping[str, str] | None = None,
) -> ColumnSelection:  # fmt: skip
    """Select the columns named in the options; without names every numeric column that is not an identifier.

    A column that is missing in more than half of the rows is used only if an option names it, or in a series.
    Categorical columns are used if they are one-hot encoded, or if the algorithm accepts categories (`mixed`).
    `known` are reasons that have been found already.
    """
    roles = {options.id: ROW_NAMES, options.weight: ROW_WEIGHTS}
    reasons = {name: _reason(table, name, options, mixed) for name in table.columns}
    reasons |= {name: reason for name, reason in (known or {}).items() if reasons[name] is not None}
    reasons |= {name: role for name, role in roles.items() if name is not None}
    reasons |= dict.fromkeys(options.exclude, EXCLUDED)
    used = [name for name, reason in reasons.items() if reason is None]
    if not series:
        named = (*options.columns, *options.include, *options.one_hot)
        reasons |= _mostly_missing(table, [name for name in used if name not in named])
        used = [name for name in used if reasons[name] is None]
    if not used:
        raise InputError(_nothing_to_use(table, reasons))
    categories = tuple(name for name in used if name in options.one_hot or (mixed and _is_categorical(table, name)))
    return ColumnSelection(
        tuple(name for name in used if name not in categories),
        categories,
        tuple(SkippedColumn(name, reason, _option(reason)) for name, reason in reasons.items() if reason),
    )


def mostly_missing_reason(missing: int, rows: int) -> str | None:
    """The reason to skip a column with so many missing values; None if at least half of the values are there."""
    return f"{MOSTLY_MISSING} ({missing:,} of {count(rows)})" if 2 * missing > rows else None


def _mostly_missing(table: Table, names: Sequence[str]) -> dict[str, str | None]:
    """Reasons to skip some of these columns."""
    missing = dict.fromkeys(names, 0)
    for batch in table.batches(names) if names else ():
        for column in batch:
            missing[column.name] += column.null_count()
            missing[column.name] += int(column.is_nan().sum()) if column.dtype.is_float() else 0
    return {name: mostly_missing_reason(n, table.n_rows) for name, n in missing.items()}


def _option(reason: str) -> str:
    return INCLUDE if reason.startswith(MOSTLY_MISSING) else OPTIONS.get(reason, "")


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
            value = truncate(str(batch[name][row]), LONGEST)
            raise InputError(
                f'{table.place_of(start + row)}: column "{name}" has the value "{value}", but the model needs numbers '
                "there. Correct the cell; or empty it, and use --missing drop."
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
    if name in (LABEL, DISTANCE, PROBABILITY, NAME) or (name == UNUSUAL and LABEL in table.columns):
        return "an earlier result"
    kind = column_kind(table, name)
    if kind == "empty":
        return kind
    code = _code_reason(table, name, kind)
    if code is not None:
        return code
    if kind in ("text", "categories"):
        return FREE_TEXT if _hardly_repeats(table, name) else kind
    return None if kind == "numeric" else kind


def _has_name_of_code(name: str) -> bool:
    """Whether a column of that name contains codes, which are not quantities, even if they are digits."""
    return any(
        test(name)
        for test in (column_names.is_identifier_name, column_names.is_postal_name, column_names.is_phone_name)
    )


def _code_reason(table: Table, name: str, kind: str) -> str | None:
    """Whether a column is an identifier, a postal code or a telephone number; None if it is neither."""
    if kind not in ("numeric", "text", "categories") or table.is_array:
        return None
    if isinstance(table, ConvertedTable) and name in table.readings and table.readings[name].kind != "number":
        return None
    may_be_unique = column_names.is_identifier_name_if_unique(name)
    has_name = may_be_unique or _has_name_of_code(name)
    if not has_name and not (kind == "numeric" and _are_distinct_integers(table.head[name])):
        return None
    column = table.column(name).drop_nulls()
    if not has_name:
        return ROW_NUMBERS if _is_numbering(column) else None
    if kind == "numeric" and column.dtype.is_float() and not (column == column.round()).all():
        return None
    if column_names.is_phone_name(name):
        digits = column.cast(pl.Int64, strict=False).cast(pl.String) if kind == "numeric" else column.cast(pl.String)
        has_digits = digits.str.count_matches(r"\d") >= PHONE_DIGITS
        return PHONE_NUMBER if 2 * int(has_digits.sum()) > len(digits) else None
    if column_names.is_postal_name(name):
        return POSTAL_CODE
    if column_names.is_identifier_name(name):
        return IDENTIFIER
    return IDENTIFIER if column.is_unique().all() else None


def _are_distinct_integers(column: pl.Series) -> bool:
    numbers = column.cast(pl.Float64).fill_nan(None).drop_nulls()
    return bool((numbers == numbers.round()).all() and numbers.is_unique().all())


def _is_numbering(column: pl.Series) -> bool:
    """Whether the numbers are distinct and consecutive with few gaps, in any order: those of rows, whatever the name.

    Quantities repeat by chance long before so many values of a range are taken.
    """
    if len(column) < MIN_NUMBERED or not _are_distinct_integers(column):
        return False
    span = float(column.max()) - float(column.min()) + 1  # type: ignore[arg-type]
    return len(column) >= (1 - MAX_GAPS) * span


def _hardly_repeats(table: Table, name: str) -> bool:
    """Whether a column of text has too many different values for categories."""
    return table.column(name).drop_nulls().n_unique() > max(FEW_VALUES, table.n_rows // 2)


def nearly_numeric_warnings(table: Table, skipped: Sequence[SkippedColumn]) -> tuple[str, ...]:
    """Warnings about text columns in which nearly all values are numbers."""
    counts = {column.name: _FieldCounts() for column in skipped if column.reason in ("text", FREE_TEXT)}
    start = 0
    for batch in table.batches(list(counts)) if counts else ():
        for name, fields in counts.items():
            fields.add(batch[name], start)
        start += batch.height
    by_texts: dict[tuple[str, ...], list[str]] = {}
    for name, fields in counts.items():
        if fields.is_nearly_numeric:
            by_texts.setdefault(tuple(fields.examples), []).append(name)
    return tuple(_nearly_numeric_warning(names, [counts[name] for name in names]) for names in by_texts.values())


def _nearly_numeric_warning(names: Sequence[str], counts: "Sequence[_FieldCounts]") -> str:
    """The warning about columns with the same texts, with an example of the first."""
    several, first = len(names) > 1, counts[0]
    texts, numbers = (sum(values) for values in zip(*((each.texts, each.numbers) for each in counts), strict=True))
    subject, owner = (f"columns {first_names(names)} were", "their") if several else (f'column "{names[0]}" was', "its")
    values = f"{texts:,} of {owner} {texts + numbers:,} values"
    are_not = f"{values} is not a number," if texts == 1 else f"{values} are not numbers, such as"
    where = f"{f' of {names[0]}' if several else ''} in row {first.row:,} (from 0)"
    return (
        f"{subject} skipped as text because {are_not} "
        f'"{first.examples[0]}"{where}: correct or empty {"it" if texts == 1 else "them"} to use the '
        f"column{'s' * several}, or add --na-values {shell_names(*first.examples)}."
    )


@dataclass
class _FieldCounts:
    """How many values of a text column are numbers, and how many are not."""

    numbers: int = 0
    texts: int = 0
    row: int = 0  # of the first value that is not a number
    examples: list[str] = field(default_factory=list)  # different values that are not numbers

    def add(self, column: pl.Series, start: int) -> None:
        """Count the values of a batch; its first row is row `start` of the table."""
        is_text = _is_not_number(column)
        if self.texts == 0 and is_text.any():
            row = int(is_text.arg_max() or 0)
            self.row = start + row
        if is_text.any() and len(self.examples) < EXAMPLES:
            values = column.filter(is_text).cast(pl.String).str.strip_chars().unique(maintain_order=True).to_list()
            self.examples = list(dict.fromkeys([*self.examples, *values]))[:EXAMPLES]
        texts, missing = int(is_text.sum()), int(is_missing_mark(column.str.strip_chars()).sum())
        self.texts, self.numbers = self.texts + texts, self.numbers + len(column) - missing - texts

    @property
    def is_nearly_numeric(self) -> bool:
        """Whether nearly all values are numbers; or most are, and the others are one or two texts."""
        share = 0.5 if len(self.examples) <= FEW_TEXTS else 1 - MOSTLY
        return 0 < self.texts <= share * (self.texts + self.numbers)


def _is_not_number(column: pl.Series) -> pl.Series:
    """Mask of fields that are neither missing nor numbers, as people write them."""
    text = column.cast(pl.String).str.strip_chars()
    parts = split_numbers(text)
    return ~parts.fits(".") & ~parts.fits(",") & ~is_missing_mark(text)


def _reason(table: Table, name: str, options: PreparationOptions, mixed: bool) -> str | None:
    if name in options.one_hot:
        check_categories(table, name)
        _check_one_hot(table.column(name))
        return None
    if name in options.include:
        return _selected_reason(table, name, options.include, mixed, INCLUDE)
    if options.columns:
        return _selected_reason(table, name, options.columns, mixed, "--columns")
    reason = reason_to_skip(table, name)
    return None if mixed and reason in CATEGORIES else reason


def _check_one_hot(column: pl.Series) -> None:
    """Reject a column with no values, or with too many distinct ones."""
    distinct = column.drop_nulls().n_unique()
    if distinct == 0:
        raise InputError(f'column "{column.name}" is empty. Leave it out of --one-hot.')
    if distinct > MAX_ONE_HOT:
        raise InputError(
            f'column "{column.name}" has {distinct:,} different values, and --one-hot takes {MAX_ONE_HOT} at most.'
        )


def _selected_reason(table: Table, name: str, selected: Sequence[str], mixed: bool, option: str) -> str | None:
    if name not in selected:
        return NOT_SELECTED
    kind = column_kind(table, name)
    if kind in ("numeric", "true/false") or (mixed and kind in CATEGORIES):
        return None
    remedy = f"Use --one-hot {shell_names(name)}, or leave it" if kind in CATEGORIES else "Leave it"
    content = "nothing" if kind == "empty" else kind
    raise InputError(f'column "{name}" holds {content}, not numbers. {remedy} out of {option}.')


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
    skipped = [SkippedColumn(name, reason) for name, reason in reasons.items() if reason]
    if nearly := nearly_numeric_warnings(table, skipped):
        return f"no numeric columns in {table.name}. {nearly[0][0].upper()}{nearly[0][1:]}"
    texts = [name for name, reason in reasons.items() if reason in (*CATEGORIES, FREE_TEXT)]
    fewest = min(texts, key=lambda name: table.column(name).n_unique(), default=None)
    numbered = [name for name, reason in reasons.items() if reason == ROW_NUMBERS]
    remedy = f" Use --one-hot {shell_names(fewest)}, or pass embeddings." if fewest is not None else ""
    if sparse := [name for name, reason in reasons.items() if reason and reason.startswith(MOSTLY_MISSING)]:
        return f"no column of {table.name} can be used ({listed}). Use {INCLUDE} {shell_names(*sparse)}."
    remedy = f" Use {INCLUDE} {shell_names(*numbered)} if they are quantities." if numbered else remedy
    return f"no numeric columns in {table.name} ({listed}).{remedy}"
