"""Which clusters are near each other."""

from __future__ import annotations

from coterie.plots.display import plain
from coterie.report.html.charts.tree import tree
from coterie.report.html.report import Absent, Report
from coterie.report.html.sections.section import absent, section
from coterie.web import Markup


def hierarchy(report: Report) -> Markup:
    """The tree of merges, of rows or of centers."""
    found = report.tree
    if isinstance(found, Absent):
        return section("hierarchy", "Hierarchy", absent(found))
    drawn = tree(plain(found.display), of_centers=found.of_centers, method=found.method, labels=found.names)
    return section("hierarchy", "Hierarchy", drawn)
