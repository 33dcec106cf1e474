"""Algorithms side by side: scores, agreement, maps."""

from __future__ import annotations

from typing import Any

from coterie.plots.display import plain
from coterie.report.comparison import ComparisonResult, Contestant
from coterie.report.html.charts.bars import bars
from coterie.report.html.charts.figure import figure, numbers
from coterie.report.html.charts.matrix import Cell, Head, Matrix, step_of
from coterie.report.html.report import ComparisonReport
from coterie.report.html.sections.section import absent, boxed, section
from coterie.report.html.words import number, two_places
from coterie.web import ClusterMap, Markup, tag

HEADER = ("algorithm", "K", "inertia", "silhouette", "Davies–Bouldin", "Calinski–Harabasz", "smallest")
PAGE = 60  # runs on a page of the table


def runs(result: ComparisonResult) -> Markup:
    """A line for each run, the best of each algorithm marked."""
    head = [tag("th", name, scope="col", cls="num" if i else None) for i, name in enumerate(HEADER)]
    lines = [_run(run) for run in result.runs]
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", lines), cls="sortable", data_page=PAGE)
    told = (
        "◀ is the best run of its algorithm by the silhouette. Inertia and Davies–Bouldin are better the lower, "
        "silhouette and Calinski–Harabasz the higher they are."
    )
    return section("runs", "Scores", boxed(table, told))


def _run(run: Contestant) -> Markup:
    cells = [
        (str(run.k), run.k),
        (number(run.inertia), run.inertia),
        (two_places(run.silhouette), run.silhouette),
        (two_places(run.davies_bouldin), run.davies_bouldin),
        (number(run.calinski_harabasz), run.calinski_harabasz),
        (f"{run.smallest:,}", run.smallest),
    ]
    return tag(
        "tr",
        tag("td", f"{run.method}{' ◀' if run.best else ''}"),
        [tag("td", text, cls="num", data_value=value) for text, value in cells],
        cls="best" if run.best else None,
    )


def agreement(result: ComparisonResult) -> Markup:
    """How far the best runs agree, as a grid."""
    best = [f"{run.method}, K = {run.k}" for run in result.runs if run.best]
    if len(best) < 2:
        return section("agreement", "Agreement", absent("One algorithm has nothing to agree with: add -a for another."))
    lines = list(zip(best, result.agreement, strict=True))
    cells = [[_agreed(one, other, value) for other, value in zip(best, row, strict=True)] for one, row in lines]
    heads = [Head(name) for name in best]
    grid = Matrix("Adjusted Rand index of every two best runs", heads, heads, cells)
    table = numbers(["", *best], [[name, *map(two_places, row)] for name, row in lines])
    note = "Adjusted Rand index of the best runs of every two algorithms: 1 is the same clusters, 0 is chance."
    return section("agreement", "Agreement", figure("", grid.drawn(), table, note=note, slim=grid.slim()))


def _agreed(one: str, other: str, value: float) -> Cell:
    return Cell(step_of(value), two_places(value), f"{one} and {other}: {two_places(value)}")


def maps(report: ComparisonReport) -> Markup:
    """The two best runs, seen from the same side."""
    drawn = [
        tag("div", tag("h3", title), shown.figure(f"map{i}") if isinstance(shown, ClusterMap) else bars(plain(shown)))
        for i, (title, shown) in enumerate(report.maps)
    ]
    return section("maps", "Maps", tag("div", drawn, cls="grid"))


def maps_data(report: ComparisonReport) -> dict[str, Any]:
    """What the script draws the maps from."""
    return {f"map{i}": shown.to_dict() for i, (_, shown) in enumerate(report.maps) if isinstance(shown, ClusterMap)}
