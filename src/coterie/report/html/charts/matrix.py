"""Numbers in a grid of coloured cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coterie.report.html.charts.svg import TEXT, name, picture, tip, words
from coterie.report.html.words import shown, text_width
from coterie.web import Markup, tag

MOST_WIDTH = 1030.0
STEPS = 10  # of a colour, from none to all
LETTERS = 26  # of a name beside the grid


@dataclass(frozen=True)
class Cell:
    """What is in one cell: its step from -10 to 10 (None: nothing is known), its text, and what is told of it."""

    step: int | None
    text: str
    tell: str


@dataclass(frozen=True)
class Head:
    """The name of a row or a column, and the colour that goes with it."""

    name: str
    colour: str | None = None
    note: str = ""


def step_of(value: float, full: float = 1.0) -> int:
    """A number from -full to full as a step of a colour."""
    return round(STEPS * max(-1.0, min(1.0, value / full)))


def matrix(
    label: str,
    rows: Sequence[Head],
    columns: Sequence[Head],
    cells: Sequence[Sequence[Cell]],
    *,
    diverging: bool = False,
    marked: int | None = None,
    narrow: bool = False,
) -> Markup:
    """A grid of cells with the names of rows at the left, those of columns above, slanted where they are long."""
    layout = _Layout.of(rows, columns, cells, narrow)
    top, left, size, tall = layout.top, layout.left, layout.size, layout.tall
    return picture(
        layout.width,
        layout.height,
        label,
        [_title(head, left + (j + 0.5) * size, top - 8.0, layout.slanted) for j, head in enumerate(columns)],
        [_side(head, left, top + (i + 0.5) * tall, left + size * len(columns)) for i, head in enumerate(rows)],
        [
            _cell(cell, left + j * size, top + i * tall, size, tall, diverging)
            for i, line in enumerate(cells)
            for j, cell in enumerate(line)
        ],
        _frame(marked, left, top, size, tall * len(rows)),
        cls="matrix",
    )


@dataclass(frozen=True)
class _Layout:
    """Where the grid begins, how large its cells are, and whether the names above it are slanted."""

    left: float
    top: float
    size: float
    tall: float
    slanted: bool
    width: float
    height: float

    @classmethod
    def of(
        cls, rows: Sequence[Head], columns: Sequence[Head], cells: Sequence[Sequence[Cell]], narrow: bool
    ) -> _Layout:
        sides = [text_width(shown(head.name, LETTERS)) for head in rows]
        titles = [text_width(shown(head.name, LETTERS)) for head in columns]
        left = max(sides) + (26.0 if any(head.colour for head in rows) else 10.0)
        right = max(text_width(head.note, 11.0) for head in rows) + 14.0
        room, widest = MOST_WIDTH - left - right, max(titles) + 12.0
        least = max(22.0, 14.0 + max((text_width(cell.text) for line in cells for cell in line), default=0.0))
        most = 56.0 if narrow else 150.0
        slanted = max(widest, least) * len(columns) > room or widest > most
        size = max(least, 0.0 if slanted else widest, min(112.0, room / len(columns)) if not narrow else 0.0)
        top = 0.64 * max(titles) + 24.0 if slanted else 28.0
        over = 0.77 * titles[-1] - size / 2 if slanted else 0.0
        tall = 26.0 if len(rows) <= 30 else 20.0
        width = left + size * len(columns) + max(right, over + 10.0)
        return cls(left, top, size, tall, slanted, width, top + tall * len(rows) + 6.0)


def _title(head: Head, x: float, y: float, slanted: bool) -> Markup:
    if not slanted:
        return name(x, y, head.name, LETTERS, "middle")
    return name(x, y, head.name, LETTERS, "start", transform=f"rotate(-40 {x:.1f} {y:.1f})")


def _side(head: Head, left: float, y: float, end: float) -> Markup:
    swatch = None
    if head.colour:
        swatch = tag("rect", x=round(left - 18, 1), y=round(y - 5, 1), width=10, height=10, rx=2.5, fill=head.colour)
    place = left - (24.0 if head.colour else 8.0)
    note = words(end + 8, y + 4, head.note, "start", cls="small") if head.note else None
    return tag("g", name(place, y + 0.35 * TEXT, head.name, LETTERS, "end"), swatch, note)


def _cell(cell: Cell, x: float, y: float, width: float, height: float, diverging: bool) -> Markup:
    kind = "none" if cell.step is None else f"z{cell.step}" if diverging else f"s{max(cell.step, 0)}"
    box = {"x": round(x + 1), "y": round(y + 1), "width": round(width - 2), "height": round(height - 2)}
    middle = {"x": round(x + width / 2), "y": round(y + height / 2 + 0.35 * TEXT)}
    text = tag("text", cell.text, **middle) if cell.text else None
    return tag("g", tip(cell.tell), tag("rect", **box), text, cls=f"cell {kind}", data_tip=True)


def _frame(column: int | None, left: float, top: float, size: float, height: float) -> Markup | None:
    if column is None:
        return None
    box = {"x": left + column * size, "y": top - 1, "width": size, "height": height + 2}
    return tag("rect", **{name: round(value, 1) for name, value in box.items()}, rx=4, cls="frame")
