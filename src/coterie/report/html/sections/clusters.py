"""The table of clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.palette import colours
from coterie.report.html.charts.figure import who
from coterie.report.html.report import Report
from coterie.report.html.sections.section import boxed, section
from coterie.report.html.words import compact, percent, shown, signed, two_places
from coterie.report.result import ClusterSummary, Trait
from coterie.web import Markup, tag

PAGE = 30  # clusters on a page of the table


def clusters(report: Report) -> Markup:
    """A line for each cluster: its colour and name, its size, how well rows fit, what sets it apart, examples.

    On small screens it is a card for each, with what sets it apart right below the name.
    """
    shades = colours(len(report.names))
    lines = zip(report.result.clusters, report.names, shades, report.examples, strict=True)
    judged = any(cluster.silhouette is not None for cluster in report.result.clusters)
    header = [_head("cluster"), _head("rows", True), _head("share", True)]
    header += [_head("silhouette", True)] if judged else []
    typical = f"typical rows ({shown(report.called)})"
    header += [_head("what sets it apart"), _head(typical)]
    most = max(cluster.share for cluster in report.result.clusters)
    rows = [
        _row(cluster, name, shade, (typical, ids), judged, most, report.result.columns)
        for cluster, name, shade, ids in lines
    ]
    table = tag("table", tag("thead", tag("tr", header)), tag("tbody", rows), cls="sortable clusters", data_page=PAGE)
    told = "s.d. is one standard deviation of all rows; typical rows lie nearest to the center of their cluster."
    return section("clusters", "Clusters", boxed(table, told))


def _head(text: str, number: bool = False) -> Markup:
    return tag("th", text, scope="col", cls="num" if number else None)


def _row(
    cluster: ClusterSummary,
    name: str,
    shade: str,
    examples: tuple[str, Sequence[str]],
    judged: bool,
    most: float,
    columns: Sequence[str],
) -> Markup:
    typical, ids = examples
    own = cluster.silhouette
    return tag(
        "tr",
        tag("td", who(shade, shown(name)), cls="name", data_value=cluster.label),
        tag("td", f"{cluster.rows:,}", cls="num rows", data_value=cluster.rows, data_label="rows"),
        tag("td", _bar(cluster.share / most, shade), percent(cluster.share), cls="num share", data_value=cluster.share),
        tag("td", two_places(own), cls="num fits", data_value=_or(own), data_label="silhouette") if judged else None,
        tag("td", _apart(cluster.stands_out_by, cluster.means, columns), cls="apart"),
        tag("td", ", ".join(shown(each, 24) for each in ids), cls="ids", data_label=typical),
    )


def _bar(share: float, shade: str) -> Markup:
    box = tag("rect", width=round(60 * share, 1), height=8, rx=2, fill=shade, cls="area")
    return tag("svg", box, viewBox="0 0 60 8", width=60, height=8, cls="portion", aria_hidden="true")


def _apart(traits: Sequence[Trait], means: Mapping[str, float], columns: Sequence[str]) -> Markup:
    """The columns in which a cluster is farthest from the mean; of categories, shares of rows."""
    if not traits:
        return tag("span", "nothing: close to the average", cls="muted")
    parts: list[Any] = []
    for i, trait in enumerate(traits):
        mean = means.get(trait.column)
        value = compact(mean) if trait.column in columns else percent(mean, 0)
        parts += [", " if i else "", tag("bdi", shown(trait.column)), f" {value} ({signed(trait.deviation)} s.d.)"]
    return tag("span", parts)


def _or(value: float | None) -> float:
    return -2.0 if value is None else value
