"""Numbers in a grid of coloured cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coterie.report.html.charts.svg import SLIM, TEXT, WIDE, name, picture, sideways, tip, words
from coterie.report.html.words import shown, text_width
from coterie.web import Markup, tag

MOST_WIDTH = 1030.0
STEPS = 10  # of a colour, from none to all
LETTERS, FEW_LETTERS = 26, 19  # of a name beside the grid
MANY_CELLS = 300  # too many to be drawn twice


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


@dataclass(frozen=True)
class Matrix:
    """A grid of cells with the names of rows at the left, those of columns above, slanted where they are long."""

    label: str  # what is read out instead of it
    rows: Sequence[Head]
    columns: Sequence[Head]
    cells: Sequence[Sequence[Cell]]
    diverging: bool = False
    marked: int | None = None  # a column with a frame around it
    narrow: bool = False  # cells are no wider than they need be

    def drawn(self) -> Markup:
        """With room for all that there is to say, and to be scrolled where the screen has not as much."""
        layout = _roomy(self)
        drawn = self._picture(layout)
        return sideways(drawn) if self._large or layout.width > WIDE else drawn

    def slim(self) -> Markup | None:
        """For small screens: turned if that makes it narrower, and to be scrolled where it is too wide all the same.

        None if there are so many cells that the other picture is scrolled there, too.
        """
        if self._large:
            return None
        best = self
        if self.marked is None:
            best = min(self, self._turned(), key=lambda grid: _slim(grid).width)
        layout = _slim(best)
        drawn = best._picture(layout)
        return drawn if layout.width <= SLIM else sideways(drawn)

    @property
    def _large(self) -> bool:
        return len(self.rows) * len(self.columns) > MANY_CELLS

    def _turned(self) -> Matrix:
        cells = list(zip(*self.cells, strict=True))
        return replace(self, rows=[replace(head, note="") for head in self.columns], columns=self.rows, cells=cells)

    def _picture(self, layout: _Layout) -> Markup:
        top, left, size, tall = layout.top, layout.left, layout.size, layout.tall
        end = left + size * len(self.columns) if layout.notes else None
        return picture(
            layout.width,
            layout.height,
            self.label,
            [_title(head, left + (j + 0.5) * size, top - 8.0, layout) for j, head in enumerate(self.columns)],
            [_side(head, left, top + (i + 0.5) * tall, end, layout.letters) for i, head in enumerate(self.rows)],
            [
                _cell(cell, left + j * size, top + i * tall, size, tall, self.diverging)
                for i, line in enumerate(self.cells)
                for j, cell in enumerate(line)
            ],
            _frame(self.marked, left, top, size, tall * len(self.rows)),
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
    letters: int
    notes: bool  # whether those of rows are at their ends


def _roomy(grid: Matrix) -> _Layout:
    left, titles, wide = _sides(grid, LETTERS), _titles(grid, LETTERS), _widest_cell(grid)
    right = max(text_width(head.note, 11.0) for head in grid.rows) + 14.0
    room, widest = MOST_WIDTH - left - right, max(titles) + 12.0
    least = max(34.0 if grid.narrow else 22.0, 14.0 + wide)
    slanted = max(widest, least) * len(grid.columns) > room or widest > (56.0 if grid.narrow else 150.0)
    size = max(least, 0.0 if slanted else widest, 0.0 if grid.narrow else min(112.0, room / len(grid.columns)))
    return _laid(grid, left, right, size, slanted, titles, LETTERS, notes=True)


def _slim(grid: Matrix) -> _Layout:
    left, titles, wide = _sides(grid, FEW_LETTERS), _titles(grid, FEW_LETTERS), _widest_cell(grid)
    room, least = SLIM - left - 6.0, max(17.0, wide + (2.0 if grid.narrow else 10.0))
    size = max(least, min(84.0, room / len(grid.columns)))
    slanted = max(titles) + 2.0 > size
    if slanted:  # the last name ends at the right of its column
        size = max(least, min(size, (room - 4.0 - 0.77 * titles[-1]) / (len(grid.columns) - 0.5)))
    return _laid(grid, left, 6.0, size, slanted, titles, FEW_LETTERS, notes=False)


def _laid(
    grid: Matrix,
    left: float,
    right: float,
    size: float,
    slanted: bool,
    titles: Sequence[float],
    letters: int,
    *,
    notes: bool,
) -> _Layout:
    swatches = 12.0 if any(head.colour for head in grid.columns) else 0.0
    top = (0.64 * max(titles) + 24.0 if slanted else 28.0) + swatches
    over = 0.77 * titles[-1] - size / 2 + 10.0 if slanted else 0.0
    tall = 26.0 if len(grid.rows) <= 30 else 20.0
    width = left + size * len(grid.columns) + max(right, over)
    return _Layout(left, top, size, tall, slanted, width, top + tall * len(grid.rows) + 6.0, letters, notes)


def _sides(grid: Matrix, letters: int) -> float:
    widest = max(text_width(shown(head.name, letters)) for head in grid.rows)
    return widest + (26.0 if any(head.colour for head in grid.rows) else 10.0)


def _titles(grid: Matrix, letters: int) -> list[float]:
    return [text_width(shown(head.name, letters)) for head in grid.columns]


def _widest_cell(grid: Matrix) -> float:
    return max((text_width(cell.text) for line in grid.cells for cell in line), default=0.0)


def _title(head: Head, x: float, y: float, layout: _Layout) -> Markup:
    swatch = None
    if head.colour:
        swatch, y = _swatch(head.colour, x, y - 1.0), y - 12.0
    if not layout.slanted:
        return tag("g", name(x, y, head.name, layout.letters, "middle"), swatch)
    turn = f"rotate(-40 {x:.1f} {y:.1f})"
    return tag("g", name(x, y, head.name, layout.letters, "start", transform=turn), swatch)


def _side(head: Head, left: float, y: float, end: float | None, letters: int) -> Markup:
    swatch = _swatch(head.colour, left - 13.0, y) if head.colour else None
    place = left - (24.0 if head.colour else 8.0)
    note = words(end + 8, y + 4, head.note, "start", cls="small") if end is not None and head.note else None
    return tag("g", name(place, y + 0.35 * TEXT, head.name, letters, "end"), swatch, note)


def _swatch(colour: str, x: float, y: float) -> Markup:
    return tag("rect", x=round(x - 5, 1), y=round(y - 5, 1), width=10, height=10, rx=2.5, fill=colour)


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
