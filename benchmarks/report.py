"""What a benchmark found, as plain data, and its rendering as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

NONE = "-"


@dataclass(frozen=True)
class Table:
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Ratio:
    """Ours beside the fastest peer, in the same unit; above 1 we win."""

    what: str
    ours: float
    peer: str
    theirs: float
    disturbed: bool = False  # others used the machine meanwhile

    @property
    def value(self) -> float:
        return self.theirs / self.ours


@dataclass(frozen=True)
class Result:
    tables: Sequence[Table]
    ratios: Sequence[Ratio] = ()
    raw: dict[str, Any] = field(default_factory=dict)


def markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", _line(table.header), _line(["---"] * len(table.header))]
    lines += [_line(row) for row in table.rows]
    if table.notes:
        lines += ["", *(f"- {note}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def summary(ratios: Sequence[Ratio]) -> Table:
    rows = [[r.what, r.peer, times(r), "disturbed: not valid" if r.disturbed else ""] for r in ratios]
    return Table("Ratio to the fastest peer", ["work", "fastest peer", "peer / coterie", "machine"], rows)


def times(ratio: Ratio | None) -> str:
    return NONE if ratio is None else f"{ratio.value:.2f}"


def count(n: int) -> str:
    """1000000 -> 1M, 50000 -> 50k."""
    for unit, suffix in ((1_000_000, "M"), (1000, "k")):
        if n >= unit and n % unit == 0:
            return f"{n // unit}{suffix}"
    return str(n)


def shape(n: int, d: int, k: int) -> str:
    return f"{count(n)}, {d}, {k}"
