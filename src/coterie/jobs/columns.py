"""Which columns of a table take part, and why the others do not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from coterie.core.errors import InputError
from coterie.jobs.table import Table
from coterie.report.result import SkippedColumn

LABEL = "cluster"
DISTANCE = "cluster_distance"
EXCLUDED = "excluded"
NOT_ASKED_FOR = "not asked for"
IDENTIFIER = re.compile(r"(.+_)?id|row_?id", re.IGNORECASE)
LISTED_NAMES = 8


@dataclass(frozen=True)
class Choice:
    """The columns used, in the table's order, and the columns skipped."""

    used: tuple[str, ...]
    skipped: tuple[SkippedColumn, ...]


def choose(table: Table, columns: Sequence[str], exclude: Sequence[str]) -> Choice:
    """Take the columns asked for, or every numeric one that says something about its row."""
    for name in (*columns, *exclude):
        _require(name, table.typed.columns)
    if columns:
        reasons = {column.name: _named_reason(column, columns) for column in table.typed}
    else:
        reasons = {column.name: _reason(column) for column in table.typed}
    reasons |= dict.fromkeys(exclude, EXCLUDED)
    used = tuple(name for name, reason in reasons.items() if reason is None)
    if not used:
        raise InputError(_nothing_to_use(table, reasons))
    return Choice(used, tuple(SkippedColumn(name, reason) for name, reason in reasons.items() if reason))


def _require(name: str, known: Sequence[str]) -> None:
    if name in known:
        return
    by_lower_case = {column.lower(): column for column in known}
    close = get_close_matches(name.lower(), by_lower_case, n=1)
    hint = f' Did you mean "{by_lower_case[close[0]]}"?' if close else ""
    raise InputError(f'no column "{name}".{hint} Columns: {_listed(known)}')


def _named_reason(column: pl.Series, wanted: Sequence[str]) -> str | None:
    if column.name not in wanted:
        return NOT_ASKED_FOR
    kind = _kind(column)
    if kind in ("numeric", "true/false"):
        return None
    raise InputError(f'column "{column.name}" is {kind}, not numeric. Leave it out of --columns.')


def _reason(column: pl.Series) -> str | None:
    if column.name in (LABEL, DISTANCE):
        return "an earlier result"
    if _is_identifier(column):
        return "identifier"
    kind = _kind(column)
    return None if kind == "numeric" else kind


def _is_identifier(column: pl.Series) -> bool:
    named_so = IDENTIFIER.fullmatch(column.name) is not None
    return named_so and column.dtype.is_integer() and bool(column.drop_nulls().is_unique().all())


def _kind(column: pl.Series) -> str:
    if column.null_count() == len(column) or (column.dtype.is_float() and column.is_nan().all()):
        return "empty"
    if column.dtype.is_numeric():
        return "numeric"
    names = {pl.String: "text", pl.Boolean: "true/false"}
    return names.get(column.dtype.base_type(), str(column.dtype).lower())


def _nothing_to_use(table: Table, reasons: dict[str, str | None]) -> str:
    listed = _listed([f"{name}: {reason}" for name, reason in reasons.items()])
    return f"no numeric columns to use in {table.path.name} ({listed})."


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join([*names[:LISTED_NAMES], *(["…"] if len(names) > LISTED_NAMES else [])])
