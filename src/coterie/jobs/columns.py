"""Which columns of a table take part, and why the others do not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from coterie.core.errors import InputError, ParameterError
from coterie.jobs import TableJob
from coterie.jobs.table import LABEL, Table
from coterie.report.table import SkippedColumn

DISTANCE = "cluster_distance"
PROBABILITY = "cluster_probability"
EXCLUDED = "excluded"
NOT_ASKED_FOR = "not asked for"
IDENTIFIER = re.compile(r"(.+_)?id|row_?id", re.IGNORECASE)
LISTED_NAMES = 8
FEW_VALUES = 20  # with no more a column of text is one of categories, however few rows there are
MOST_VALUES = 200  # of which each can become a column
CATEGORIES = ("text", "true/false", "categories")


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
        require(name, table.typed.columns)
    if mixed and job.one_hot:
        raise ParameterError("--one-hot is not for mixture, which takes categories as they are.")
    reasons = {column.name: _reason(column, job, mixed) for column in table.typed}
    reasons |= {name: role for name, role in roles.items() if name is not None}
    reasons |= dict.fromkeys(job.exclude, EXCLUDED)
    used = [name for name, reason in reasons.items() if reason is None]
    if not used:
        raise InputError(_nothing_to_use(table, reasons))
    categories = tuple(name for name in used if name in job.one_hot or (mixed and _is_category(table.typed[name])))
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


def kind_of(column: pl.Series) -> str:
    """What a column holds, in a word or two."""
    if column.null_count() == len(column) or (column.dtype.is_float() and column.is_nan().all()):
        return "empty"
    if column.dtype.is_numeric():
        return "numeric"
    names = {pl.String: "text", pl.Boolean: "true/false", pl.Categorical: "categories", pl.Enum: "categories"}
    return names.get(column.dtype.base_type(), str(column.dtype).lower())


def reason_to_skip(column: pl.Series) -> str | None:
    """Why the column takes no part unless asked for; None where it does."""
    if column.name in (LABEL, DISTANCE, PROBABILITY):
        return "an earlier result"
    if _is_identifier(column):
        return "identifier"
    kind = kind_of(column)
    return None if kind == "numeric" else kind


def _reason(column: pl.Series, job: TableJob, mixed: bool) -> str | None:
    if column.name in job.one_hot:
        _check_categories(column)
        return None
    if job.columns:
        return _named_reason(column, job.columns, mixed)
    reason = reason_to_skip(column)
    if mixed and reason in CATEGORIES:
        return None if _has_groups(column) else "text that hardly repeats"
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


def _named_reason(column: pl.Series, wanted: Sequence[str], mixed: bool) -> str | None:
    if column.name not in wanted:
        return NOT_ASKED_FOR
    kind = kind_of(column)
    if kind in ("numeric", "true/false") or (mixed and kind in CATEGORIES):
        return None
    remedy = f"Use --one-hot {column.name}, or leave it" if kind in CATEGORIES else "Leave it"
    raise InputError(f'column "{column.name}" is {kind}, not numeric. {remedy} out of --columns.')


def _is_category(column: pl.Series) -> bool:
    return kind_of(column) in CATEGORIES


def _has_groups(column: pl.Series) -> bool:
    distinct = column.drop_nulls().n_unique()
    return distinct <= FEW_VALUES or distinct <= len(column) // 2


def _is_identifier(column: pl.Series) -> bool:
    named_so = IDENTIFIER.fullmatch(column.name) is not None
    return named_so and column.dtype.is_integer() and bool(column.drop_nulls().is_unique().all())


def _nothing_to_use(table: Table, reasons: dict[str, str | None]) -> str:
    listed = _listed([f"{name}: {reason}" for name, reason in reasons.items()])
    texts = [name for name, reason in reasons.items() if reason in CATEGORIES]
    fewest = min(texts, key=lambda name: table.typed[name].n_unique(), default=None)
    remedy = f" Use --one-hot {fewest}, or pass embeddings." if fewest is not None else ""
    return f"no numeric columns in {table.name} ({listed}).{remedy}"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join([*names[:LISTED_NAMES], *(["…"] if len(names) > LISTED_NAMES else [])])
