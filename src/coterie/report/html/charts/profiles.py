"""What clusters are like, column by column: means, spreads and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.palette import colours
from coterie.report.html.charts.figure import figure, numbers, who
from coterie.report.html.charts.matrix import Cell, Head, Matrix, step_of
from coterie.report.html.charts.svg import picture, reach, tip, words
from coterie.report.html.words import compact, count, number, percent, shown, signed, text_width
from coterie.web import Markup, Plane, tag, tick_texts, ticks

FULL = 2.0  # standard deviations at which a colour is full
MOST_CLUSTERS = 60  # with a row in the map of means
MOST_BOXES = 20  # clusters in a strip
PANEL = 300.0


def means(display: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `ProfilesDisplay`: coloured by standard deviations, with means in their own units."""
    rows, columns = _largest(display["sizes"], MOST_CLUSTERS), display["shown"]
    shades = colours(len(display["names"]))
    heads = [Head(display["names"][i], shades[i]) for i in rows]
    cells = [[_mean(display, i, j) for j in columns] for i in rows]
    label = f"Means of {count(len(rows), 'cluster')} in {count(len(columns), 'column')}"
    grid = Matrix(label, heads, [Head(display["columns"][j]) for j in columns], cells, diverging=True)
    table, note = _mean_table(display, rows), _cut(display, rows, columns)
    slim = grid.slim()
    return figure("Means", [_key(), grid.drawn()], table, note=note, slim=None if slim is None else [_key(), slim])


def _mean(display: Mapping[str, Any], i: int, j: int) -> Cell:
    mean, score = display["means"][i][j], display["scores"][i][j]
    name = f"cluster {shown(display['names'][i])} · {shown(display['columns'][j])}"
    if mean is None:
        return Cell(None, "–", f"{name}: no value")
    told = f"{name}: mean {number(mean)} ({signed(score or 0.0)} s.d.)"
    return Cell(step_of(score or 0.0, FULL), compact(mean), told)


def _cut(display: Mapping[str, Any], rows: Sequence[int], columns: Sequence[int]) -> str:
    told = "Colours are standard deviations from the mean of all rows; numbers are means in the units of the table."
    if len(columns) < len(display["columns"]):
        told += f" Of {len(display['columns'])} columns the {len(columns)} that differ most."
    if len(rows) < len(display["names"]):
        told += f" The {len(rows)} largest of {len(display['names'])} clusters."
    return told


def _key() -> Markup:
    """What the colours mean, in a line of its own."""
    size, steps = 13, range(-10, 11)
    boxes = [
        tag("g", tag("rect", x=20 + i * size, y=2, width=size, height=12), cls=f"cell z{step}")
        for i, step in enumerate(steps)
    ]
    texts = [
        words(20 + (i + 0.5) * size, 28, _deviations(step), cls="tick-text")
        for i, step in enumerate(steps)
        if step % 5 == 0
    ]
    label = "Colours from two standard deviations below the mean to two above"
    return tag("div", picture(334, 34, label, *boxes, *texts), cls="colours")


def _deviations(step: int) -> str:
    if step == 0:
        return "0"
    return signed(step * FULL / 10) + (" s.d." if step == 10 else "")


def _mean_table(display: Mapping[str, Any], rows: Sequence[int]) -> Markup:
    shades = colours(len(display["names"]))
    lines = [
        [who(shades[i], shown(display["names"][i])), f"{display['sizes'][i]:,}",
         *(f"{number(display['means'][i][j])} ({signed(display['scores'][i][j] or 0.0)})" for j in display["shown"])]
        for i in rows
    ]  # fmt: skip
    return numbers(["cluster", "rows", *(shown(display["columns"][j]) for j in display["shown"])], lines)


def boxes(display: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `SpreadsDisplay`: for each column a strip, in it a box for each cluster."""
    rows = _largest(display["sizes"], MOST_BOXES)
    panels = [_panel(display, j, rows) for j in range(len(display["columns"]))]
    note = "Boxes hold the middle half of a cluster's rows, the line in them is the median; whiskers are at 5 and 95 %."
    if display["drawn"] is not None:
        note += f" Clusters of more than {display['drawn']:,} rows are judged by as many of them, drawn at random."
    if len(display["columns"]) < display["n_columns"]:
        note += f" Of {display['n_columns']} columns the {len(display['columns'])} that differ most."
    if len(rows) < len(display["names"]):
        note += f" The {len(rows)} largest of {len(display['names'])} clusters."
    return figure("Spreads", tag("div", panels, cls="strips"), _quantiles(display, rows), note=note)


def _panel(display: Mapping[str, Any], j: int, rows: Sequence[int]) -> Markup:
    known = [value for i in rows for value in display["quantiles"][i][j] if value is not None]
    low, high = reach(known)
    marks = ticks(low, high, 4)
    left = max(text_width(shown(display["names"][i], 10)) for i in rows) + 26.0
    tall = 18.0
    of = Plane(PANEL, 44.0 + tall * len(rows), (low, high, 0, 1), (22.0, 24.0, 22.0, left))
    shades, column = colours(len(display["names"])), shown(display["columns"][j], 38)
    ends = [tag("line", x1=of.x(v), x2=of.x(v), y1=of.top, y2=of.bottom, cls="grid") for v in marks]
    texts = [
        words(of.x(v), of.bottom + 15, text, cls="tick-text") for v, text in zip(marks, tick_texts(marks), strict=True)
    ]
    strips = [
        _box(of, display["quantiles"][i][j], of.top + (at + 0.5) * tall, shades[i], shown(display["names"][i], 10))
        for at, i in enumerate(rows)
    ]
    return of.svg(f"{column} by cluster", words(2, 13, column, "start", cls="strong"), ends, texts, strips)


def _box(of: Plane, q: Sequence[float | None], y: float, colour: str, name: str) -> Markup:
    label = words(of.left - 22, y + 4, name, "end")
    swatch = tag("rect", x=round(of.left - 17, 1), y=round(y - 5, 1), width=10, height=10, rx=2.5, fill=colour)
    if any(value is None for value in q):
        return tag("g", label, swatch)
    a, b, m, c, d = (of.x(value) for value in q)  # type: ignore[arg-type]
    parts = [f"{at} {number(value)}" for at, value in zip(("5 %", "25 %", "median", "75 %", "95 %"), q, strict=True)]
    told = f"cluster {name}: {', '.join(parts)}"
    return tag(
        "g",
        tip(told),
        label,
        swatch,
        tag("path", d=f"M{a:g},{y:g}H{b:g}M{c:g},{y:g}H{d:g}", stroke=colour, cls="whisker"),
        tag("rect", x=b, y=round(y - 5, 1), width=round(max(c - b, 1.0), 1), height=10, fill=colour, cls="box"),
        tag("path", d=f"M{m:g},{y - 6:g}v12", cls="median"),
        data_tip=True,
    )


def _quantiles(display: Mapping[str, Any], rows: Sequence[int]) -> Markup:
    lines = [
        [shown(column), shown(display["names"][i]), *map(number, display["quantiles"][i][j])]
        for j, column in enumerate(display["columns"])
        for i in rows
    ]
    return numbers(["column", "cluster", "5 %", "25 %", "median", "75 %", "95 %"], lines, left=(0, 1))


def shares(display: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `SharesDisplay`: how the values of a column of categories are shared out, by cluster."""
    rows = _largest(display["sizes"], MOST_CLUSTERS)
    shades, column = colours(len(display["names"])), shown(display["column"])
    cells = [
        [
            Cell(
                step_of(share), f"{100 * share:.0f}%",
                f"{percent(share)} of cluster {shown(display['names'][i])} are {shown(value)}",
            )
            for share, value in zip(display["shares"][i], display["values"], strict=True)
        ]
        for i in rows
    ]  # fmt: skip
    grid = Matrix(
        f"Shares of the values of {column} in {count(len(rows), 'cluster')}",
        [Head(display["names"][i], shades[i]) for i in rows],
        [Head(value) for value in display["values"]],
        cells,
    )
    table = numbers(
        ["cluster", *(shown(value) for value in display["values"])],
        [
            [who(shades[i], shown(display["names"][i])), *(percent(share) for share in display["shares"][i])]
            for i in rows
        ],
    )
    used = "" if display["used"] else " It took no part in the fit."
    note = f"Share of each cluster's rows, by the value of {column}.{used}"
    return figure(column, grid.drawn(), table, note=note, slim=grid.slim())


def _largest(sizes: Sequence[int], most: int) -> list[int]:
    """The clusters with most rows, in their own order."""
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])[:most]
    return sorted(order)
