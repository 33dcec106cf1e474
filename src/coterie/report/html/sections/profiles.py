"""Profiles of the clusters, column by column."""

from coterie.plots.display import plain
from coterie.report.html.charts.profiles import boxes, means, shares
from coterie.report.html.report import Report
from coterie.report.html.sections.section import section
from coterie.web import Markup, tag


def profiles(report: Report) -> Markup:
    """Means, quantiles, and shares of categories."""
    categories = [shares(plain(each)) for each in report.shares]
    return section(
        "profiles",
        "Profiles",
        means(plain(report.profiles)) if report.profiles.columns else None,
        boxes(plain(report.spreads)) if report.spreads.columns else None,
        tag("div", categories, cls="grid") if categories else None,
    )
