"""Heatmaps: grids of coloured cells with numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coterie.palette import as_rgb, luminance
from coterie.report.formatting import short_name, text_width
from coterie.report.html.charts.svg import SLIM, TEXT, WIDE, name_text, picture, scrollable, svg_text, tooltip
from coterie.web import Markup, tag

MAX_WIDTH = 1030.0
STEPS = 10  # of a colour scale, from 0 to full
LETTERS, FEW_LETTERS = 26, 19  # maximum length of a name beside the grid: wide and slim
MANY_CELLS = 300  # with more cells there is no second picture for small screens
# Background, high values, low values, shares. Orange, purple and blue also differ for people with colour blindness.
HUES = {"light": ("#ffffff", "#b35806", "#542788", "#08519c"), "dark": ("#1a2029", "#f1a340", "#a58fd6", "#5aa9e6")}


@dataclass(frozen=True)
class Cell:
    """One cell: its colour step from -10 to 10 (None: no value), its text and its tooltip."""

    step: int | None
    text: str
    tip: str


@dataclass(frozen=True)
class Head:
    """The name of a row or a column, its colour, and a note beside it."""

    name: str
    colour: str | None = None
    note: str = ""


def step_of(value: float, full: float = 1.0) -> int:
    """The colour step of a value; the colour is full at `full` and -`full`."""
    return round(STEPS * max(-1.0, min(1.0, value / full)))


@dataclass(frozen=True)
class Matrix:
    """A heatmap with row names at the left and column names above, which are slanted if they are long."""

    label: str  # for screen readers
    rows: Sequence[Head]
    columns: Sequence[Head]
    cells: Sequence[Sequence[Cell]]
    diverging: bool = False
    marked: int | None = None  # index of a column with a frame around it
    narrow: bool = False  # whether cells are as narrow as their text allows

    def drawn(self) -> Markup:
        """The picture with all texts; it can be scrolled if it is wider than the page."""
        layout = _wide_layout(self)
        drawn = self._picture(layout)
        return scrollable(drawn) if self._is_large or layout.width > WIDE else drawn

    def slim(self) -> Markup | None:
        """The picture for small screens: transposed if it is then narrower, scrollable if it is still too wide.

        None if there are more than `MANY_CELLS` cells: small screens then scroll the wide picture.
        """
        if self._is_large:
            return None
        best = self
        if self.marked is None:
            heads, cells = [replace(head, note="") for head in self.columns], list(zip(*self.cells, strict=True))
            transposed = replace(self, rows=heads, columns=self.rows, cells=cells)
            best = min(self, transposed, key=lambda grid: _slim_layout(grid).width)
        layout = _slim_layout(best)
        drawn = best._picture(layout)
        return drawn if layout.width <= SLIM else scrollable(drawn)

    @property
    def _is_large(self) -> bool:
        return len(self.rows) * len(self.columns) > MANY_CELLS

    def _picture(self, layout: "_Layout") -> Markup:
        top, left, size, tall = layout.top, layout.left, layout.size, layout.tall
        end = left + size * len(self.columns) if layout.notes else None
        frame = None
        if self.marked is not None:
            box = {"x": left + self.marked * size, "y": top - 1, "width": size, "height": tall * len(self.rows) + 2}
            frame = tag("rect", **{name: round(value, 1) for name, value in box.items()}, rx=4, cls="frame")
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
            frame,
            cls="matrix",
        )


@dataclass(frozen=True)
class _Layout:
    """Position of the grid, sizes of its cells, and whether the names of the columns are slanted."""

    left: float
    top: float
    size: float
    tall: float
    slanted: bool
    width: float
    height: float
    letters: int
    notes: bool  # whether the notes of rows are shown at the right


def _wide_layout(grid: Matrix) -> _Layout:
    left, titles, wide = _text_widths(grid, LETTERS)
    right = max(text_width(head.note, 11.0) for head in grid.rows) + 14.0
    available, widest = MAX_WIDTH - left - right, max(titles) + 12.0
    min_size = max(34.0 if grid.narrow else 22.0, 14.0 + wide)
    slanted = max(widest, min_size) * len(grid.columns) > available or widest > (56.0 if grid.narrow else 150.0)
    size = max(min_size, 0.0 if slanted else widest, 0.0 if grid.narrow else min(112.0, available / len(grid.columns)))
    return _layout(grid, left, right, size, slanted, titles, LETTERS, notes=True)


def _slim_layout(grid: Matrix) -> _Layout:
    left, titles, wide = _text_widths(grid, FEW_LETTERS)
    available, min_size = SLIM - left - 6.0, max(17.0, wide + (2.0 if grid.narrow else 10.0))
    size = max(min_size, min(84.0, available / len(grid.columns)))
    slanted = max(titles) + 2.0 > size
    if slanted:  # the last slanted name must end inside the picture
        size = max(min_size, min(size, (available - 4.0 - 0.77 * titles[-1]) / (len(grid.columns) - 0.5)))
    return _layout(grid, left, 6.0, size, slanted, titles, FEW_LETTERS, notes=False)


def _layout(
    grid: Matrix, left: float, right: float, size: float, slanted: bool, titles: Sequence[float], letters: int, *,
    notes: bool,
) -> _Layout:  # fmt: skip
    swatches = 12.0 if any(head.colour for head in grid.columns) else 0.0
    top = (0.64 * max(titles) + 24.0 if slanted else 28.0) + swatches
    over = 0.77 * titles[-1] - size / 2 + 10.0 if slanted else 0.0
    tall = 26.0 if len(grid.rows) <= 30 else 20.0
    width = left + size * len(grid.columns) + max(right, over)
    return _Layout(left, top, size, tall, slanted, width, top + tall * len(grid.rows) + 6.0, letters, notes)


def _text_widths(grid: Matrix, letters: int) -> tuple[float, list[float], float]:
    """The left margin, the widths of the names of the columns, and the width of the widest text of a cell."""
    rows, columns = (
        [text_width(short_name(head.name, letters)) for head in heads] for heads in (grid.rows, grid.columns)
    )
    margin = 26.0 if any(head.colour for head in grid.rows) else 10.0
    widest = max((text_width(cell.text) for line in grid.cells for cell in line), default=0.0)
    return max(rows) + margin, columns, widest


def _title(head: Head, x: float, y: float, layout: _Layout) -> Markup:
    swatch = _swatch(head.colour, x, y - 1.0) if head.colour else None
    y -= 12.0 if head.colour else 0.0
    turn = {"transform": f"rotate(-40 {x:.1f} {y:.1f})"} if layout.slanted else {}
    anchor = "start" if layout.slanted else "middle"
    return tag("g", name_text(x, y, head.name, layout.letters, anchor, **turn), swatch)


def _side(head: Head, left: float, y: float, end: float | None, letters: int) -> Markup:
    swatch = _swatch(head.colour, left - 13.0, y) if head.colour else None
    place = left - (24.0 if head.colour else 8.0)
    note = svg_text(end + 8, y + 4, head.note, "start", cls="small") if end is not None and head.note else None
    return tag("g", name_text(place, y + 0.35 * TEXT, head.name, letters, "end"), swatch, note)


def _swatch(colour: str, x: float, y: float) -> Markup:
    return tag("rect", x=round(x - 5, 1), y=round(y - 5, 1), width=10, height=10, rx=2.5, fill=colour)


def _cell(cell: Cell, x: float, y: float, width: float, height: float, diverging: bool) -> Markup:
    kind = "none" if cell.step is None else f"z{cell.step}" if diverging else f"s{max(cell.step, 0)}"
    box = {"x": round(x + 1), "y": round(y + 1), "width": round(width - 2), "height": round(height - 2)}
    middle = {"x": round(x + width / 2), "y": round(y + height / 2 + 0.35 * TEXT)}
    text = tag("text", cell.text, **middle) if cell.text else None
    return tag("g", tooltip(cell.tip), tag("rect", **box), text, cls=f"cell {kind}", data_tip=True)


def cell_colours_css() -> str:
    """CSS rules for cells .z-10 … .z10 and .s0 … .s10, with a text colour of sufficient contrast."""
    light, dark = ("".join(_colour_rules(*hues)) for hues in HUES.values())
    return f"{light}@media (prefers-color-scheme: dark) {{\n@media screen {{\n{dark}}}\n}}\n"


def _colour_rules(background: str, high: str, low: str, share: str) -> list[str]:
    diverging = [
        _colour_rule(f"z{step}", background, high if step > 0 else low, abs(step)) for step in range(-STEPS, STEPS + 1)
    ]
    return [*diverging, *(_colour_rule(f"s{step}", background, share, step) for step in range(STEPS + 1))]


def _colour_rule(name: str, background: str, hue: str, step: int) -> str:
    a, b = as_rgb([background, hue])
    part = 0.06 + 0.94 * step / STEPS if step else 0.0
    mixed = (1 - part) * a + part * b
    fill = "#" + "".join(f"{round(255 * value):02x}" for value in mixed)
    text = "#000000" if luminance(mixed) > 0.1791 else "#ffffff"  # both have the same contrast there
    heat = f" .heat .{name} {{ background: {fill}; color: {text}; }}" if name[0] == "z" else ""
    return f".chart .{name} rect {{ fill: {fill}; }} .chart .{name} text {{ fill: {text}; }}{heat}\n"
