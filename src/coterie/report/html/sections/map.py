"""The map of the rows and clusters."""

from typing import Any

from coterie.plots.display import plain
from coterie.report.html.charts.bars import bars
from coterie.report.html.report import Report
from coterie.report.html.sections.section import section
from coterie.web import ClusterMap, Markup, tag

KEY = "map"


def map_section(report: Report) -> Markup:
    """The rows on two axes, or a histogram of a single column."""
    drawn = report.map.figure(KEY) if isinstance(report.map, ClusterMap) else bars(plain(report.map))
    return section("place", "Map", tag("p", report.map_note, cls="muted"), drawn)


def map_data(report: Report) -> dict[str, Any]:
    """The data from which the script draws the map."""
    return {KEY: report.map.to_dict()} if isinstance(report.map, ClusterMap) else {}
