"""The two lines every result over a table begins with."""

from typing import Protocol

from coterie.report.result import SkippedColumn
from coterie.report.text.layout import count, some


class OverTable(Protocol):
    """What a result says of the table it comes from."""

    @property
    def source(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def categories(self) -> tuple[str, ...]: ...
    @property
    def skipped(self) -> tuple[SkippedColumn, ...]: ...
    @property
    def scale(self) -> str: ...
    @property
    def missing(self) -> str: ...
    @property
    def seed(self) -> int: ...


def heading(result: OverTable) -> list[str]:
    """What was read, and how it was treated."""
    names = [column.name for column in result.skipped]
    note = f" (skipped: {some(names)})" if names else ""
    counts = f"{count(result.rows, 'row')} · {count(result.n_columns, 'column')}"
    return [
        f"{result.source}  {counts} → using {_used(result)}{note}",
        f"scaling: {result.scale} · missing: {result.missing} · seed {result.seed}",
    ]


def _used(result: OverTable) -> str:
    parts = {"numeric": len(result.columns), "of categories": len(result.categories)}
    return " and ".join(f"{number:,} {kind}" for kind, number in parts.items() if number)
