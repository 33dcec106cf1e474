"""Which columns of a table take part, and why the others do not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from coterie.core.errors import InputError, ParameterError
from coterie.data.tables import delimited_text as text
from coterie.data.tables.reader import LABEL, Table
from coterie.families.table import taken_as_categories
from coterie.jobs import TableJob
from coterie.preparation.name_lists import pasted
from coterie.report.table import SkippedColumn

DISTANCE = "cluster_distance"
PROBABILITY = "cluster_probability"
EXCLUDED = "excluded"
NOT_ASKED_FOR = "not asked for"
IDENTIFIER = re.compile(r"(.+_)?id|row_?id", re.IGNORECASE)
LISTED_NAMES = 8
FEW_VALUES = 20  # with no more a column of text is one of categories, however few rows there are
MOST_VALUES = 200  # of which each can become a column
MOSTLY = 0.9  # share of values that are numbers, from which on a column of text looks like a mistake
CATEGORIES = ("text", "true/false", "categories")
KINDS = {
    pl.String: "text",
    pl.Boolean: "true/false",
    pl.Categorical: "categories",
    pl.Enum: "categories",
    pl.Date: "dates",
    pl.Datetime: "dates and times",
    pl.Time: "times",
    pl.Duration: "durations",
    pl.List: "lists",
    pl.Array: "lists",
    pl.Struct: "records",
    pl.Binary: "bytes",
}
NO_NAMES = (pl.List, pl.Array, pl.Struct, pl.Binary, pl.Object, pl.Duration)  # their values have no names


@dataclass(frozen=True)
class Choice:
    """The columns used, in the table's order: numbers, and categories; and the columns skipped."""

    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    skipped: tuple[SkippedColumn, ...]


def choose(table: Table, job: TableJob, *, mixed: bool = False) -> Choice:
    """Take the columns asked for, or every one that says something about its row.

    Columns of categories are among these if they are to become numbers (`job.one_hot`), or all of them if the
    algorithm takes them as they are (`mixed`).
    """
    roles = {job.id: "names the rows", job.weight: "weight of the rows"}
    for name in (*job.columns, *job.exclude, *job.one_hot, *(role for role in roles if role is not None)):
        require(name, table.columns)
    if mixed and job.one_hot:
        raise ParameterError("--one-hot is not for mixture, which takes categories as they are.")
    reasons = {name: _reason(table, name, job, mixed) for name in table.columns}
    reasons |= {name: role for name, role in roles.items() if name is not None}
    reasons |= dict.fromkeys(job.exclude, EXCLUDED)
    used = [name for name, reason in reasons.items() if reason is None]
    if not used:
        raise InputError(_nothing_to_use(table, reasons))
    categories = tuple(name for name in used if name in job.one_hot or (mixed and _are_categories(table, name)))
    return Choice(
        tuple(name for name in used if name not in categories),
        categories,
        tuple(SkippedColumn(name, reason) for name, reason in reasons.items() if reason),
    )


def require(name: str, known: Sequence[str]) -> None:
    """Refuse a column that is not there, naming the one that was probably meant."""
    if name in known:
        return
    by_lower_case = {column.lower(): column for column in known}
    close = get_close_matches(name.lower(), by_lower_case, n=1) or [
        column for column in by_lower_case if name.lower() in column
    ]
    hint = f' Did you mean "{by_lower_case[close[0]]}"?' if close else ""
    raise InputError(f'no column "{name}".{hint} Columns: {_listed(known)}')


def require_names(table: Table, name: str) -> None:
    """Reject a column whose values cannot be names of categories."""
    require(name, table.columns)
    if table.schema[name].base_type() in NO_NAMES:
        held = kind_of(table, name)
        raise InputError(f'column "{name}" of {table.name} holds {held}, which are no categories: convert it to text.')


def kind_of(table: Table, name: str) -> str:
    """What a column holds, in a word or two."""
    kind = table.schema[name]
    if name in table.nothing:
        return "empty"
    if kind.is_numeric():
        return "numeric"
    return KINDS.get(kind.base_type(), "objects")


def reason_to_skip(table: Table, name: str) -> str | None:
    """Why the column takes no part unless asked for; None where it does."""
    if name in (LABEL, DISTANCE, PROBABILITY):
        return "an earlier result"
    if _is_identifier(table, name):
        return "identifier"
    kind = kind_of(table, name)
    return None if kind == "numeric" else kind


def almost_numbers(table: Table, skipped: Sequence[SkippedColumn]) -> tuple[str, ...]:
    """That a column is text for the sake of a few of its values only."""
    found = {column.name: _Fields() for column in skipped if column.reason == "text"}
    start = 0
    for frame in table.batches(list(found)) if found else ():
        for name, fields in found.items():
            fields.add(frame[name], start)
        start += frame.height
    return tuple(
        f'column "{name}" was skipped as text because {fields.told} in row {fields.row:,} (from 0): correct or empty '
        f"{'it' if fields.words == 1 else 'them'} to use the column."
        for name, fields in found.items()
        if 0 < fields.words <= (1 - MOSTLY) * (fields.words + fields.numbers)
    )


@dataclass
class _Fields:
    """How many values of a column of text are numbers, and how many are not."""

    numbers: int = 0
    words: int = 0
    row: int = 0  # of the first word
    word: str = ""

    def add(self, column: pl.Series, start: int) -> None:
        """Count some more values, the first of which is in row `start`."""
        is_word = text.not_numbers(column)
        if self.words == 0 and is_word.any():
            at = int(is_word.arg_max() or 0)
            self.row, self.word = start + at, str(column[at])
        words = int(is_word.sum())
        self.words, self.numbers = self.words + words, self.numbers + len(column) - column.null_count() - words

    @property
    def told(self) -> str:
        """The words, in words."""
        if self.words == 1:
            return f'1 of its {self.words + self.numbers:,} values is no number, "{self.word}"'
        return f'{self.words:,} of its {self.words + self.numbers:,} values are no numbers, such as "{self.word}"'


def _reason(table: Table, name: str, job: TableJob, mixed: bool) -> str | None:
    if name in job.one_hot:
        require_names(table, name)
        _check_categories(table.column(name))
        return None
    if job.columns:
        return _named_reason(table, name, job.columns, mixed)
    reason = reason_to_skip(table, name)
    if mixed and reason in CATEGORIES:
        return None if _has_groups(table.column(name)) else "text that hardly repeats"
    return reason


def _check_categories(column: pl.Series) -> None:
    """Refuse a column that would become no column at all, or far too many."""
    distinct = column.drop_nulls().n_unique()
    if distinct == 0:
        raise InputError(f'column "{column.name}" is empty. Leave it out of --one-hot.')
    if distinct > MOST_VALUES:
        raise InputError(
            f'column "{column.name}" has {distinct:,} different values, and --one-hot takes {MOST_VALUES} at most.'
        )


def _named_reason(table: Table, name: str, wanted: Sequence[str], mixed: bool) -> str | None:
    if name not in wanted:
        return NOT_ASKED_FOR
    kind = kind_of(table, name)
    if kind in ("numeric", "true/false") or (mixed and kind in CATEGORIES):
        return None
    remedy = f"Use --one-hot {pasted(name)}, or leave it" if kind in CATEGORIES else "Leave it"
    held = "nothing" if kind == "empty" else kind
    raise InputError(f'column "{name}" holds {held}, not numbers. {remedy} out of --columns.')


def _are_categories(table: Table, name: str) -> bool:
    """Whether a mixture takes the values of a column as categories: of numbers, it does so with few whole ones."""
    if kind_of(table, name) in CATEGORIES:
        return True
    if not table.schema[name].is_integer():
        return False
    column = table.column(name)
    return column.drop_nulls().n_unique() > 1 and taken_as_categories(column)


def _has_groups(column: pl.Series) -> bool:
    distinct = column.drop_nulls().n_unique()
    return distinct <= FEW_VALUES or distinct <= len(column) // 2


def _is_identifier(table: Table, name: str) -> bool:
    if IDENTIFIER.fullmatch(name) is None or not table.schema[name].is_integer():
        return False
    return bool(table.column(name).drop_nulls().is_unique().all())


def _nothing_to_use(table: Table, reasons: dict[str, str | None]) -> str:
    listed = _listed([f"{name}: {reason}" for name, reason in reasons.items()])
    texts = [name for name, reason in reasons.items() if reason in CATEGORIES]
    fewest = min(texts, key=lambda name: table.column(name).n_unique(), default=None)
    remedy = f" Use --one-hot {pasted(fewest)}, or pass embeddings." if fewest is not None else ""
    return f"no numeric columns in {table.name} ({listed}).{remedy}"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join([*names[:LISTED_NAMES], *(["…"] if len(names) > LISTED_NAMES else [])])
