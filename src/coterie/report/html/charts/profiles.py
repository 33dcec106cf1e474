"""Profiles of clusters, column by column: means, quantiles and shares of categories."""

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.core.formatting import count
from coterie.palette import colours
from coterie.report.formatting import compact, number, percent, short_name, signed, text_width
from coterie.report.html.blocks import cluster_name, figure, numbers
from coterie.report.html.charts.matrix import Cell, Head, Matrix, step_of
from coterie.report.html.charts.svg import axis_limits, picture, scrollable, svg_text, tooltip
from coterie.web import Markup, Plane, tag, tick_texts, ticks

COLOURS = "Colours show the difference from the mean of all rows in s.d."
FULL = 2.0  # standard deviations at which the colour scale ends
MISSING = "(missing)"  # stands for missing values
MAX_CLUSTERS = 60  # rows of a heatmap
MAX_BOXES = 20  # clusters in a box plot
MANY_COLUMNS = 30  # from this number, the heatmap is a table that can be sorted and searched
PAGE = 30  # columns on a page of it
PANEL = 300.0  # width of a box plot


def means(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of a `ProfilesDisplay`: means in units of the table, coloured by standard deviations."""
    if len(display["columns"]) >= MANY_COLUMNS:
        return _sortable_means(display)
    rows, columns = _largest(display["sizes"], MAX_CLUSTERS), display["shown"]
    shades = colours(len(display["names"]))
    heads = [Head(display["names"][i], shades[i]) for i in rows]
    cells = [[_mean(display, i, j) for j in columns] for i in rows]
    label = f"Means of {count(len(rows), 'cluster')} in {count(len(columns), 'column')}"
    grid = Matrix(label, heads, [Head(display["columns"][j]) for j in columns], cells, diverging=True)
    table, slim = _mean_table(display, rows), grid.slim()
    note = _units(display) + _left_out(len(columns), len(display["columns"]), len(rows), len(display["names"]))
    return figure("Means", [_key(), grid.drawn()], table, note=note, slim=None if slim is None else [_key(), slim])


def _sortable_means(display: Mapping[str, Any]) -> Markup:
    """A heatmap as a table with a row for each column, which can be sorted by each cluster, and searched."""
    clusters, shades = _largest(display["sizes"], MAX_CLUSTERS), colours(len(display["names"]))
    heads = [tag("th", "column", scope="col"), tag("th", "difference", scope="col", cls="num")]
    heads += [
        tag("th", cluster_name(shades[i], short_name(display["names"][i], 16)), scope="col", cls="num")
        for i in clusters
    ]
    lines = []
    for j in display["shown"]:
        largest = max((abs(scores[j] or 0.0) for scores in display["scores"]), default=0.0)
        cells = [_mean(display, i, j) for i in clusters]
        lines.append(tag(
            "tr",
            tag("th", tag("bdi", short_name(display["columns"][j])), scope="row"),
            tag("td", f"{largest:.1f} s.d.", cls="num", data_value=round(largest, 3)),
            [tag("td", cell.text, cls="num none" if cell.step is None else f"num z{cell.step}",
                 data_value="" if cell.step is None else round(display["scores"][i][j] or 0.0, 3),
                 data_tip=cell.tip.rpartition(" (")[2].rstrip(")") if cell.step is not None else None)
             for i, cell in zip(clusters, cells, strict=True)],
        ))  # fmt: skip
    head, body = tag("thead", tag("tr", heads)), tag("tbody", lines)
    table = tag("table", head, body, cls="sortable heat", data_page=PAGE)
    note = f"{_units(display)} Columns are sorted by the largest difference; "
    note += "a click on the name of a cluster sorts by its own."
    note += _left_out(len(display["shown"]), len(display["columns"]), len(clusters), len(display["names"]))
    return tag("figure", tag("h3", "Means"), _key(), scrollable(table), tag("figcaption", note))


def _units(display: Mapping[str, Any]) -> str:
    """What the numbers and colours of the means are."""
    kind = "means weighted by the row weights" if display["weighted"] else "means"
    missing = f" {count(display['missing'], 'missing value')} left out." if display["missing"] else ""
    return f"Numbers are {kind}, in the units of the table.{missing} {COLOURS}"


def _mean(display: Mapping[str, Any], i: int, j: int) -> Cell:
    mean, score = display["means"][i][j], display["scores"][i][j]
    name = f"cluster {short_name(display['names'][i])} · {short_name(display['columns'][j])}"
    if mean is None:
        return Cell(None, "–", f"{name}: no value")
    tip = f"{name}: mean {number(mean)} ({signed(score or 0.0)} s.d.)"
    return Cell(step_of(score or 0.0, FULL), compact(mean), tip)


def _left_out(n_columns: int, all_columns: int, n_clusters: int, all_clusters: int) -> str:
    """Sentences about columns and clusters that are not shown."""
    note = ""
    if n_columns < all_columns:
        note += f" Only the {n_columns} of {all_columns} columns that differ most are shown."
    if n_clusters < all_clusters:
        note += f" Only the {n_clusters} largest of {all_clusters} clusters are shown."
    return note


def _key() -> Markup:
    """The colour scale, above the heatmap."""
    size, boxes, texts = 13, [], []
    for i, step in enumerate(range(-10, 11)):
        boxes.append(tag("g", tag("rect", x=20 + i * size, y=2, width=size, height=12), cls=f"cell z{step}"))
        if step % 5 == 0:
            text = (signed(step * FULL / 10) if step else "0") + (" s.d." if step == 10 else "")
            texts.append(svg_text(20 + (i + 0.5) * size, 28, text, cls="tick-text"))
    label = "Colour scale from two standard deviations below the mean to two above"
    return tag("div", picture(334, 34, label, *boxes, *texts), cls="colours")


def _mean_table(display: Mapping[str, Any], rows: Sequence[int]) -> Markup:
    shades = colours(len(display["names"]))
    lines = [
        [cluster_name(shades[i], short_name(display["names"][i])), f"{display['sizes'][i]:,}",
         *(f"{number(display['means'][i][j])} ({signed(display['scores'][i][j] or 0.0)})" for j in display["shown"])]
        for i in rows
    ]  # fmt: skip
    return numbers(["cluster", "rows", *(short_name(display["columns"][j]) for j in display["shown"])], lines)


def boxes(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of `Spreads`: a box plot for each column, with a box for each cluster."""
    rows = _largest(display["sizes"], MAX_BOXES)
    panels = [_panel(display, j, rows) for j in range(len(display["columns"]))]
    note = "Boxes show the 25 % and 75 % quantiles, the line is the median; whiskers are at 5 % and 95 %."
    if display["sampled"] is not None:
        note += f" Clusters with more than {display['sampled']:,} rows are represented by a random sample of that size."
    note += _left_out(len(display["columns"]), display["n_columns"], len(rows), len(display["names"]))
    lines = [
        [short_name(column), short_name(display["names"][i]), *map(number, display["quantiles"][i][j])]
        for j, column in enumerate(display["columns"])
        for i in rows
    ]
    table = numbers(["column", "cluster", "5 %", "25 %", "median", "75 %", "95 %"], lines, left=(0, 1))
    return figure("Distributions", tag("div", panels, cls="strips"), table, note=note)


def _panel(display: Mapping[str, Any], j: int, rows: Sequence[int]) -> Markup:
    known = [value for i in rows for value in display["quantiles"][i][j] if value is not None]
    low, high = axis_limits(known)
    marks = ticks(low, high, 4)
    left = max(text_width(short_name(display["names"][i], 10)) for i in rows) + 26.0
    tall = 18.0
    of = Plane(PANEL, 44.0 + tall * len(rows), (low, high, 0, 1), (22.0, 24.0, 22.0, left))
    shades, column = colours(len(display["names"])), short_name(display["columns"][j], 38)
    ends = [tag("line", x1=of.x(v), x2=of.x(v), y1=of.top, y2=of.bottom, cls="grid") for v in marks]
    texts = [
        svg_text(of.x(v), of.bottom + 15, text, cls="tick-text")
        for v, text in zip(marks, tick_texts(marks), strict=True)
    ]
    strips = [
        _box(of, display["quantiles"][i][j], of.top + (at + 0.5) * tall, shades[i], short_name(display["names"][i], 10))
        for at, i in enumerate(rows)
    ]
    return of.svg(f"{column} by cluster", svg_text(2, 13, column, "start", cls="strong"), ends, texts, strips)


def _box(of: Plane, q: Sequence[float | None], y: float, colour: str, name: str) -> Markup:
    label = svg_text(of.left - 22, y + 4, name, "end")
    swatch = tag("rect", x=round(of.left - 17, 1), y=round(y - 5, 1), width=10, height=10, rx=2.5, fill=colour)
    if any(value is None for value in q):
        return tag("g", label, swatch)
    a, b, m, c, d = (of.x(value) for value in q)  # type: ignore[arg-type]
    parts = [f"{at} {number(value)}" for at, value in zip(("5 %", "25 %", "median", "75 %", "95 %"), q, strict=True)]
    tip = f"cluster {name}: {', '.join(parts)}"
    return tag(
        "g",
        tooltip(tip),
        label,
        swatch,
        tag("path", d=f"M{a:g},{y:g}H{b:g}M{c:g},{y:g}H{d:g}", stroke=colour, cls="whisker"),
        tag("rect", x=b, y=round(y - 5, 1), width=round(max(c - b, 1.0), 1), height=10, fill=colour, cls="box"),
        tag("path", d=f"M{m:g},{y - 6:g}v12", cls="median"),
        data_tip=True,
    )


def shares(display: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of `Shares`: shares of the values of a categorical column in each cluster."""
    rows = _largest(display["sizes"], MAX_CLUSTERS)
    shades, column = colours(len(display["names"])), short_name(display["column"])
    values, cells, lines = [short_name(value) for value in display["values"]], [], []
    for i in rows:
        name, row = short_name(display["names"][i]), display["shares"][i]
        cells.append([
            Cell(step_of(share), f"{100 * share:.0f}%", f"{percent(share)} of cluster {name} are {value}")
            for share, value in zip(row, values, strict=True)
        ])  # fmt: skip
        lines.append([cluster_name(shades[i], name), *map(percent, row)])
    label = f"Shares of the values of {column} in {count(len(rows), 'cluster')}"
    heads = [Head(display["names"][i], shades[i]) for i in rows]
    grid = Matrix(label, heads, [Head(value) for value in display["values"]], cells)
    table = numbers(["cluster", *values], lines)
    used = "" if display["used"] else " This column was not used in the fit."
    missing = " (missing) is a share of all rows of the cluster, the others of those with a value."
    note = f"Shares of the values of {column} in each cluster.{missing if MISSING in display['values'] else ''}{used}"
    return figure(column, grid.drawn(), table, note=note, slim=grid.slim())


def _largest(sizes: Sequence[int], n_clusters: int) -> list[int]:
    """Indices of the largest clusters, in ascending order."""
    return sorted(sorted(range(len(sizes)), key=lambda i: -sizes[i])[:n_clusters])
