"""The table of clusters."""

from typing import Any

from coterie.core.formatting import is_year
from coterie.palette import colours
from coterie.report.formatting import compact, percent, short_name, signed, two_places, without_traits
from coterie.report.html.blocks import boxed, cluster_name, section
from coterie.report.html.report import Report
from coterie.report.results import ClusterSummary, Trait
from coterie.web import Markup, tag

PAGE = 30  # clusters on a page of the table


def clusters(report: Report) -> Markup:
    """A row for each cluster: colour and name, size, mean silhouette, rule and distinctive columns, typical rows.

    On small screens each cluster is a card, with the distinctive columns directly below its name.
    """
    clusters = report.result.clusters
    has_silhouettes = any(cluster.silhouette is not None for cluster in clusters)
    typical = f"typical rows ({short_name(report.id_name)})"
    share = "share" if report.weight is None else "share of weight"
    numeric = ["rows", share, *(["silhouette"] if has_silhouettes else [])]
    header = [
        tag("th", text, scope="col", cls="num" if text in numeric else None)
        for text in ("cluster", *numeric, "stands out by", typical)
    ]
    max_share = max(cluster.share for cluster in clusters)
    rows = []
    for cluster, name, shade, ids in zip(clusters, report.names, colours(len(clusters)), report.examples, strict=True):
        bar = tag("rect", width=round(60 * (cluster.share / max_share), 1), height=8, rx=2, fill=shade, cls="area")
        bar = tag("svg", bar, viewBox="0 0 60 8", width=60, height=8, cls="portion", aria_hidden="true")
        silhouette = None
        if has_silhouettes:
            sort_value = -2.0 if cluster.silhouette is None else cluster.silhouette  # none is sorted first
            text = two_places(cluster.silhouette)
            silhouette = tag("td", text, cls="num fits", data_value=sort_value, data_label="silhouette")
        cells = (
            tag("td", cluster_name(shade, short_name(name)), cls="name", data_value=cluster.label),
            tag("td", f"{cluster.rows:,}", cls="num rows", data_value=cluster.rows, data_label="rows"),
            tag("td", bar, percent(cluster.share), cls="num share", data_value=cluster.share),
            silhouette,
            tag("td", _rule(cluster), _traits(cluster), cls="apart"),
            tag("td", ", ".join(short_name(each, 24) for each in ids), cls="ids", data_label=typical),
        )
        rows.append(tag("tr", cells))
    table = tag("table", tag("thead", tag("tr", header)), tag("tbody", rows), cls="sortable clusters", data_page=PAGE)
    note = "s.d.: standard deviations of all rows. Typical rows are nearest to the center of their cluster."
    if any(cluster.rule is not None for cluster in clusters):
        note = f"Rules are conditions that describe a cluster; they are approximate. {note}"
    return section("clusters", "Clusters", boxed(table, note))


def _rule(cluster: ClusterSummary) -> Markup | None:
    """The conditions that describe a cluster, and how well; or that there is no short rule."""
    rule = cluster.rule
    if rule is None:
        return None
    if not rule.describes:
        return tag("div", "no short rule", cls="rule muted")
    conditions: list[Any] = []
    for i, condition in enumerate(rule.conditions):
        conditions += [" and " if i else "", tag("bdi", short_name(condition, 80))]
    return tag("div", tag("strong", conditions, ": "), tag("span", rule.evidence, cls="muted"), cls="rule")


def _traits(cluster: ClusterSummary) -> Markup:
    """The columns in which a cluster deviates most from the mean of all rows; for categories, shares of rows."""
    if not cluster.stands_out_by:
        return tag("span", without_traits(cluster), cls="muted")
    parts: list[Any] = []
    for i, trait in enumerate(cluster.stands_out_by):
        parts += ["; " if i else "", *_trait(trait, cluster.means.get(trait.column))]
    return tag("span", parts)


def _trait(trait: Trait, mean: float | None) -> tuple[Markup, str]:
    if trait.value is not None:
        return tag("span", trait.column), f": {trait.value} ({signed(trait.deviation)} s.d.)"
    if trait.share is None:
        text = f"{mean:.0f}" if mean is not None and is_year(trait.column, mean) else trait.date or compact(mean)
        return tag("bdi", short_name(trait.column)), f" {text} ({signed(trait.deviation)} s.d.)"
    column, value = trait.category or (trait.column, "")
    name = [tag("bdi", short_name(column)), ": ", tag("bdi", short_name(value)) if value else None]
    return tag("span", name), f" {percent(trait.share, 0)}, overall {percent(trait.overall, 0)}"
