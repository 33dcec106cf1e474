"""Whole pages: sections in order."""

from __future__ import annotations

from functools import cache, singledispatch
from importlib.resources import files
from typing import Any

from coterie.report.html.report import ChoiceReport, ComparisonReport, Report
from coterie.report.html.sections import comparison as compared
from coterie.report.html.sections.cards import cards
from coterie.report.html.sections.clusters import clusters
from coterie.report.html.sections.convergence import convergence, convergence_data
from coterie.report.html.sections.fitting import fitting
from coterie.report.html.sections.heading import contents, heading
from coterie.report.html.sections.hierarchy import hierarchy
from coterie.report.html.sections.number import number
from coterie.report.html.sections.place import place, place_data
from coterie.report.html.sections.profiles import profiles
from coterie.report.html.sections.reproduce import reproduce
from coterie.report.html.sections.sureness import sureness
from coterie.report.html.sections.watch import watch
from coterie.report.html.shades import shades_css
from coterie.report.html.words import shown
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
    """The report as one HTML page that asks for nothing outside itself.

    Parameters
    ----------
    report : Report, ChoiceReport or ComparisonReport
    static : bool, default=False
        Leave the scripts out: the same page, with a picture instead of a map that moves.
    """
    raise TypeError(f"there is no page for {type(report).__name__}")


@as_html.register
def _(report: Report, *, static: bool = False) -> str:
    result = report.result
    title = f"Clusters in {shown(result.source, 80)}"
    chosen = {str(result.k): "asked for", "given": "given"}.get(report.asked, f"asked: {report.asked}")
    facts = [result.title, f"K = {result.k:,} ({chosen})"]
    facts += [f"weighted by {shown(report.weighted)}"] if report.weighted else []
    return _page(
        title,
        heading(title, result, facts, report.version),
        cards(report),
        sureness(report),
        contents(SECTIONS),
        clusters(report),
        place(report),
        number(report.criteria, reason=False),
        fitting(report),
        profiles(report),
        hierarchy(report),
        convergence(report),
        watch(report),
        reproduce(report.reproduce),
        static=static,
        data={**place_data(report), **convergence_data(report)},
        player=report.animation is not None,
    )


@as_html.register
def _(report: ChoiceReport, *, static: bool = False) -> str:
    title = f"How many clusters are in {shown(report.result.source, 80)}?"
    facts = [f"clusters of {report.criteria.clusters_by}", f"K asked: {report.asked}"]
    top = heading(title, report.result, facts, report.version)
    return _page(title, top, number(report.criteria, reason=True), reproduce(report.reproduce), static=static)


@as_html.register
def _(report: ComparisonReport, *, static: bool = False) -> str:
    title = f"Algorithms compared on {shown(report.result.source, 80)}"
    return _page(
        title,
        heading(title, report.result, [f"K asked: {report.asked}"], report.version),
        compared.runs(report.result),
        compared.agreement(report.result),
        compared.maps(report),
        reproduce(report.reproduce),
        static=static,
        data=compared.maps_data(report),
    )


def _page(title: str, *body: Any, static: bool, data: dict[str, Any] | None = None, player: bool = False) -> str:
    css = stylesheet() + shades_css()
    if static:
        return page(title, *body, css=css)
    return page(title, *body, scripts=("report", "player") if player else ("report",), data=data, css=css)


@cache
def stylesheet() -> str:
    """What charts and sections look like, beyond the style of all pages."""
    return files("coterie.report.html").joinpath("report.css").read_text(encoding="utf-8")
