"""The table of clusters."""

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.palette import colours
from coterie.report.html.charts.figure import cluster_name
from coterie.report.html.formatting import compact, percent, short_name, signed, two_places
from coterie.report.html.report import Report
from coterie.report.html.sections.section import boxed, section
from coterie.report.result import ClusterSummary, Trait
from coterie.web import Markup, tag

PAGE = 30  # clusters on a page of the table


def clusters(report: Report) -> Markup:
    """A row for each cluster: colour and name, size, mean silhouette, distinctive columns, typical rows.

    On small screens each cluster is a card, with the distinctive columns directly below its name.
    """
    shades = colours(len(report.names))
    lines = zip(report.result.clusters, report.names, shades, report.examples, strict=True)
    has_silhouettes = any(cluster.silhouette is not None for cluster in report.result.clusters)
    header = [_head("cluster"), _head("rows", True), _head("share", True)]
    header += [_head("silhouette", True)] if has_silhouettes else []
    typical = f"typical rows ({short_name(report.id_name)})"
    header += [_head("stands out by"), _head(typical)]
    max_share = max(cluster.share for cluster in report.result.clusters)
    rows = [
        _row(cluster, name, shade, (typical, ids), has_silhouettes, max_share, report.result.columns)
        for cluster, name, shade, ids in lines
    ]
    table = tag("table", tag("thead", tag("tr", header)), tag("tbody", rows), cls="sortable clusters", data_page=PAGE)
    note = "s.d.: standard deviations of all rows. Typical rows are nearest to the center of their cluster."
    return section("clusters", "Clusters", boxed(table, note))


def _head(text: str, number: bool = False) -> Markup:
    return tag("th", text, scope="col", cls="num" if number else None)


def _row(
    cluster: ClusterSummary,
    name: str,
    shade: str,
    examples: tuple[str, Sequence[str]],
    has_silhouettes: bool,
    max_share: float,
    columns: Sequence[str],
) -> Markup:
    typical, ids = examples
    return tag(
        "tr",
        tag("td", cluster_name(shade, short_name(name)), cls="name", data_value=cluster.label),
        tag("td", f"{cluster.rows:,}", cls="num rows", data_value=cluster.rows, data_label="rows"),
        tag(
            "td",
            _bar(cluster.share / max_share, shade),
            percent(cluster.share),
            cls="num share",
            data_value=cluster.share,
        ),
        _silhouette(cluster.silhouette) if has_silhouettes else None,
        tag("td", _traits(cluster.stands_out_by, cluster.means, columns), cls="apart"),
        tag("td", ", ".join(short_name(each, 24) for each in ids), cls="ids", data_label=typical),
    )


def _silhouette(value: float | None) -> Markup:
    sort_value = -2.0 if value is None else value  # clusters without a silhouette are sorted first
    return tag("td", two_places(value), cls="num fits", data_value=sort_value, data_label="silhouette")


def _bar(share: float, shade: str) -> Markup:
    box = tag("rect", width=round(60 * share, 1), height=8, rx=2, fill=shade, cls="area")
    return tag("svg", box, viewBox="0 0 60 8", width=60, height=8, cls="portion", aria_hidden="true")


def _traits(traits: Sequence[Trait], means: Mapping[str, float], columns: Sequence[str]) -> Markup:
    """The columns in which a cluster deviates most from the mean of all rows; for categories, shares of rows."""
    if not traits:
        return tag("span", "nothing: close to the average", cls="muted")
    parts: list[Any] = []
    for i, trait in enumerate(traits):
        mean = means.get(trait.column)
        value = compact(mean) if trait.column in columns else percent(mean, 0)
        parts += [", " if i else "", tag("bdi", short_name(trait.column)), f" {value} ({signed(trait.deviation)} s.d.)"]
    return tag("span", parts)
