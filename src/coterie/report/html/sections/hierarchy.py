"""The dendrogram, which shows which clusters are near each other."""

from coterie.plots.display import plain
from coterie.report.html.charts.tree import tree
from coterie.report.html.report import Absent, Report
from coterie.report.html.sections.section import absent, section
from coterie.web import Markup


def hierarchy(report: Report) -> Markup:
    """The dendrogram of the rows or of the centers."""
    data = report.tree
    if isinstance(data, Absent):
        return section("hierarchy", "Hierarchy", absent(data))
    drawn = tree(plain(data.display), of_centers=data.of_centers, method=data.method, labels=data.names)
    return section("hierarchy", "Hierarchy", drawn)
