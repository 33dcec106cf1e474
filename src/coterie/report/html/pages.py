"""Complete pages, composed of sections."""

from functools import cache, singledispatch
from importlib.resources import files
from typing import Any

from coterie.report.html.cell_colours import cell_colours_css
from coterie.report.html.formatting import short_name
from coterie.report.html.report import ChoiceReport, ComparisonReport, Report
from coterie.report.html.sections import comparison
from coterie.report.html.sections.cards import cards
from coterie.report.html.sections.clusters import clusters
from coterie.report.html.sections.convergence import convergence, convergence_data
from coterie.report.html.sections.diagnosis import diagnosis
from coterie.report.html.sections.heading import contents, heading
from coterie.report.html.sections.hierarchy import hierarchy
from coterie.report.html.sections.map import map_data, map_section
from coterie.report.html.sections.n_clusters import n_clusters
from coterie.report.html.sections.profiles import profiles
from coterie.report.html.sections.reliability import reliability
from coterie.report.html.sections.reproduce import reproduce
from coterie.report.html.sections.row_fit import row_fit
from coterie.web import page

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
    title = f"Clusters in {short_name(result.source, 80)}"
    origins = {str(result.k): "as requested", "given": "given"}
    facts = [result.title, f"K = {result.k:,} ({origins.get(report.requested_k, f'requested: {report.requested_k}')})"]
    facts += [f"row weights: {short_name(report.weight)}"] if report.weight else []
    return _page(
        title,
        heading(title, result, facts, report.version),
        cards(report),
        reliability(report),
        contents(SECTIONS),
        clusters(report),
        map_section(report),
        n_clusters(report.criteria, with_reason=False),
        row_fit(report),
        profiles(report),
        hierarchy(report),
        convergence(report),
        diagnosis(report),
        reproduce(report.reproduce),
        static=static,
        data={**map_data(report), **convergence_data(report)},
        player=report.animation is not None,
    )


@as_html.register
def _(report: ChoiceReport, *, static: bool = False) -> str:
    title = f"How many clusters are in {short_name(report.result.source, 80)}?"
    facts = [f"algorithm: {report.criteria.clusters_by}", f"K requested: {report.requested_k}"]
    top = heading(title, report.result, facts, report.version)
    return _page(title, top, n_clusters(report.criteria, with_reason=True), reproduce(report.reproduce), static=static)


@as_html.register
def _(report: ComparisonReport, *, static: bool = False) -> str:
    title = f"Comparison of algorithms on {short_name(report.result.source, 80)}"
    return _page(
        title,
        heading(title, report.result, [f"K requested: {report.requested_k}"], report.version),
        comparison.runs(report.result),
        comparison.agreement(report.result),
        comparison.maps(report),
        reproduce(report.reproduce),
        static=static,
        data=comparison.maps_data(report),
    )


def _page(title: str, *body: Any, static: bool, data: dict[str, Any] | None = None, player: bool = False) -> str:
    css = stylesheet() + cell_colours_css()
    if static:
        return page(title, *body, css=css)
    return page(title, *body, scripts=("report", "player") if player else ("report",), data=data, css=css)


@cache
def stylesheet() -> str:
    """The styles of charts and sections, in addition to the styles of all pages."""
    return files("coterie.report.html").joinpath("report.css").read_text(encoding="utf-8")
