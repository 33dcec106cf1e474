"""Comparison of algorithms: scores, agreement, maps."""

from coterie.plots.display import plain
from coterie.report.formatting import number, two_places
from coterie.report.html.blocks import absent, boxed, figure, numbers, section
from coterie.report.html.charts.bars import bars
from coterie.report.html.charts.matrix import Cell, Head, Matrix, step_of
from coterie.report.html.report import ComparisonReport
from coterie.report.results import ComparisonResult
from coterie.web import ClusterMap, Markup, tag

HEADER = ("algorithm", "K", "inertia", "silhouette", "Davies–Bouldin", "Calinski–Harabasz", "stability", "smallest")
PAGE = 60  # runs on a page of the table


def runs(result: ComparisonResult) -> Markup:
    """A table with a row for each run; the best run of each algorithm is marked."""
    head = [tag("th", name, scope="col", cls="num" if i else None) for i, name in enumerate(HEADER)]
    lines = []
    for run in result.runs:
        scores = [(number(run.inertia), run.inertia), (two_places(run.silhouette), run.silhouette)]
        scores += [(two_places(run.davies_bouldin), run.davies_bouldin)]
        scores += [(number(run.calinski_harabasz), run.calinski_harabasz), (two_places(run.stability), run.stability)]
        scores += [(f"{run.smallest:,}", run.smallest)]
        cells = [tag("td", text, cls="num", data_value=value) for text, value in [(str(run.k), run.k), *scores]]
        name = tag("td", f"{run.method}{' ◀' if run.best else ''}")
        lines.append(tag("tr", name, cells, cls="best" if run.best else None))
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", lines), cls="sortable", data_page=PAGE)
    note = (
        "◀ marks the run of each algorithm with the highest silhouette. "
        "Lower is better for inertia and Davies–Bouldin, higher for silhouette, Calinski–Harabasz and stability (mean "
        "adjusted Rand index of resamples, of the best runs)."
    )
    return section("runs", "Scores", _recommendation(result), boxed(table, note))


def _recommendation(result: ComparisonResult) -> Markup | str:
    """The recommended algorithm, and why."""
    recommendation = result.recommendation
    if recommendation is None:
        return ""
    heading = recommendation.heading[:1].upper() + recommendation.heading[1:]
    return tag("p", tag("strong", f"{heading}."), f" {recommendation.reason}")


def agreement(result: ComparisonResult) -> Markup:
    """A heatmap of the agreement of the best runs."""
    best = [f"{run.method}, K = {run.k}" for run in result.runs if run.best]
    if len(best) < 2:
        return section("agreement", "Agreement", absent("There is only one algorithm: add another with -a."))
    lines = list(zip(best, result.agreement, strict=True))
    cells = [
        [
            Cell(step_of(value), two_places(value), f"{one} and {other}: {two_places(value)}")
            for other, value in zip(best, row, strict=True)
        ]
        for one, row in lines
    ]
    heads = [Head(name) for name in best]
    grid = Matrix("Adjusted Rand index of each pair of best runs", heads, heads, cells)
    table = numbers(["", *best], [[name, *map(two_places, row)] for name, row in lines])
    note = "Adjusted Rand index of the best runs: 1 means equal clusters, 0 is expected for random labels."
    return section("agreement", "Agreement", figure("", grid.drawn(), table, note=note, slim=grid.slim()))


def maps(report: ComparisonReport) -> Markup:
    """A map of the best run of each algorithm, on the same axes."""
    drawn = [
        tag("div", tag("h3", title), each.figure(f"map{i}") if isinstance(each, ClusterMap) else bars(plain(each)))
        for i, (title, each) in enumerate(report.maps)
    ]
    return section("maps", "Maps", tag("div", drawn, cls="grid"))
