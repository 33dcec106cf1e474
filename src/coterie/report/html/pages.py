"""Complete pages, composed of sections."""

from functools import singledispatch
from typing import Any

from coterie.plots.display import plain
from coterie.report.formatting import short_name
from coterie.report.html.blocks import absent, section
from coterie.report.html.charts.bars import bars
from coterie.report.html.charts.convergence import convergence, text_without_curve
from coterie.report.html.charts.profiles import boxes, means, shares
from coterie.report.html.charts.series import series
from coterie.report.html.charts.silhouettes import CERTAINTY, SILHOUETTES, areas
from coterie.report.html.charts.trees import condensed_tree, dendrogram, reachability_plot
from coterie.report.html.report import Absent, ChoiceReport, ComparisonReport, NeighbourView, Report, Reproduce
from coterie.report.html.sections import comparison
from coterie.report.html.sections.cards import cards, heading
from coterie.report.html.sections.clusters import clusters
from coterie.report.html.sections.diagnosis import diagnosis
from coterie.report.html.sections.n_clusters import n_clusters
from coterie.report.html.sections.reliability import reliability
from coterie.report.html.styles import stylesheet
from coterie.web import ClusterMap, Markup, page, player, tag

SECTIONS = {
    "clusters": "Clusters",
    "place": "Map",
    "number": "How many clusters?",
    "fitting": "How well does each row fit?",
    "profiles": "Profiles",
    "hierarchy": "Hierarchy",
    "convergence": "Convergence",
    "watch": "What to watch for",
    "reproduce": "Reproduce",
}
MAP, NEIGHBOURS, TRACE = "map", "neighbours", "trace"  # names of the data of the maps and of the player


@singledispatch
def as_html(report: Any, *, static: bool = False) -> str:
    """Render a report as a self-contained HTML page.

    Parameters
    ----------
    report : Report, ChoiceReport or ComparisonReport
        The data of the page.
    static : bool, default=False
        Write the page without JavaScript. The map is then a picture that cannot be moved.

    Returns
    -------
    html : str
        The page, with all styles, scripts and data in it.
    """
    raise TypeError(
        f"report is of type {type(report).__name__}, but a Report, ChoiceReport or ComparisonReport is expected: "
        "pass the report of a job."
    )


@as_html.register
def _(report: Report, *, static: bool = False) -> str:
    result = report.result
    title = report.title or f"Clusters in {short_name(result.source, 80)}"
    origins = {str(result.k): "as requested", "given": "given"}
    facts = [result.title, f"K = {result.k:,} ({origins.get(report.requested_k, f'requested: {report.requested_k}')})"]
    facts += [f"row weights: {short_name(report.weight)}"] if report.weight else []
    data = {MAP: report.map.to_dict()} if isinstance(report.map, ClusterMap) else {}
    data |= {NEIGHBOURS: report.neighbours.map.to_dict()} if isinstance(report.neighbours, NeighbourView) else {}
    data |= {} if report.animation is None else {TRACE: report.animation}
    return _page(
        title,
        heading(title, report, facts),
        cards(report),
        reliability(report),
        tag("nav", [tag("a", text, href=f"#{key}") for key, text in SECTIONS.items()], aria_label="Sections"),
        clusters(report),
        _map(report),
        n_clusters(report.criteria, with_reason=False),
        _row_fit(report),
        _profiles(report),
        _hierarchy(report),
        _convergence(report),
        diagnosis(report),
        _reproduce(report.reproduce),
        static=static,
        data=data,
        has_player=report.animation is not None,
    )


@as_html.register
def _(report: ChoiceReport, *, static: bool = False) -> str:
    title = f"How many clusters are in {short_name(report.result.source, 80)}?"
    facts = [f"algorithm: {report.criteria.choice.clusters_by}", f"K requested: {report.requested_k}"]
    top = heading(title, report, facts)
    return _page(title, top, n_clusters(report.criteria, with_reason=True), _reproduce(report.reproduce), static=static)


@as_html.register
def _(report: ComparisonReport, *, static: bool = False) -> str:
    title = f"Comparison of algorithms on {short_name(report.result.source, 80)}"
    maps = {f"map{i}": each.to_dict() for i, (_, each) in enumerate(report.maps) if isinstance(each, ClusterMap)}
    return _page(
        title,
        heading(title, report, [f"K requested: {report.requested_k}"]),
        comparison.runs(report.result),
        comparison.agreement(report.result),
        comparison.maps(report),
        _reproduce(report.reproduce),
        static=static,
        data=maps,
    )


def _map(report: Report) -> Markup:
    """The rows on two axes, or a histogram of a single column; where it helps, also a neighbour map."""
    drawn = report.map.figure(MAP) if isinstance(report.map, ClusterMap) else bars(plain(report.map))
    note, neighbours = tag("p", report.map_note, cls="muted"), report.neighbours
    if not isinstance(neighbours, NeighbourView):
        reason = None if neighbours is None else absent(f"No neighbour map: {neighbours.reason}")
        return section("place", SECTIONS["place"], note, drawn, reason)
    about = tag("p", neighbours.note, cls="muted")
    parts = [
        tag("div", tag("h3", "Principal axes"), note, drawn, id="by-axes"),
        tag("div", tag("h3", "Neighbour map (t-SNE)"), about, neighbours.map.figure(NEIGHBOURS), id="by-neighbours"),
    ]
    ordered = parts[::-1] if report.starts_with_neighbours else parts
    return section("place", SECTIONS["place"], tag("div", ordered, data_tabs="Maps"))


def _row_fit(report: Report) -> Markup:
    """Silhouettes of the rows by cluster; for mixtures also probabilities."""
    display, certainty = report.silhouettes, report.certainty
    reason = f"No silhouettes: {display.reason}" if isinstance(display, Absent) else None
    drawn = absent(reason) if reason else areas(plain(display), SILHOUETTES)
    return section("fitting", SECTIONS["fitting"], drawn, certainty and areas(plain(certainty), CERTAINTY))


def _profiles(report: Report) -> Markup:
    """Means, quantiles, and shares of categories; the lines of time series in place of means and quantiles."""
    categories = [shares(plain(each)) for each in report.shares]
    lines = None if report.series is None else series(plain(report.series), report.profiles.columns)
    return section(
        "profiles",
        SECTIONS["profiles"],
        lines,
        means(plain(report.profiles)) if report.profiles.columns and lines is None else None,
        boxes(plain(report.spreads)) if report.spreads.columns and lines is None else None,
        tag("div", categories, cls="grid") if categories else None,
    )


def _hierarchy(report: Report) -> Markup:
    """The dendrogram of the rows or of the centers; the trees of density-based clusters."""
    data = report.tree
    if isinstance(data, Absent):
        drawn = absent(data)
    else:
        drawn = dendrogram(plain(data.display), of_centers=data.of_centers, method=data.method, labels=data.names)
    figures = []
    if report.density is not None:
        reachability, tree = map(plain, report.density)
        figures = [reachability_plot(reachability, report.names), condensed_tree(tree, report.names)]
    return section("hierarchy", SECTIONS["hierarchy"], figures, drawn)


def _convergence(report: Report) -> Markup:
    """The objective of every restart, and the animation of the fit if there is one."""
    display = report.convergence
    text = display.reason if isinstance(display, Absent) else text_without_curve(plain(display))
    drawn = convergence(plain(display)) if text is None else absent(text)
    animation = None if report.animation is None else [tag("h3", "Step by step"), player(report.animation, TRACE)]
    return section("convergence", SECTIONS["convergence"], drawn, animation)


def _reproduce(data: Reproduce) -> Markup:
    """Python code, a command line, the fingerprint of the data, and the versions of the packages."""
    versions = ", ".join(f"{name} {version}" for name, version in data.versions.items())
    return section(
        "reproduce",
        SECTIONS["reproduce"],
        tag("h3", "In Python"),
        _code(data.python, "Python code"),
        tag("h3", "On the command line"),
        _code(data.command, "Command line"),
        tag("dl", tag("dt", "data"), tag("dd", data.fingerprint), tag("dt", "versions"), tag("dd", versions)),
    )


def _code(text: str | Absent, label: str) -> Markup:
    if isinstance(text, Absent):
        return absent(text)
    return tag("pre", tag("code", text), tabindex=0, aria_label=label)


def _page(title: str, *body: Any, static: bool, data: dict[str, Any] | None = None, has_player: bool = False) -> str:
    if static:
        return page(title, *body, css=stylesheet())
    scripts = ("report", "player") if has_player else ("report",)
    return page(title, *body, scripts=scripts, data=data, css=stylesheet())
