"""The map: where clusters lie."""

from __future__ import annotations

from typing import Any

from coterie.plots.display import plain
from coterie.report.html.charts.bars import bars
from coterie.report.html.report import Report
from coterie.report.html.sections.section import section
from coterie.web import ClusterMap, Markup, tag

KEY = "map"


def place(report: Report) -> Markup:
    """Rows on two axes, or, of one column, as bars."""
    drawn = report.map.figure(KEY) if isinstance(report.map, ClusterMap) else bars(plain(report.map))
    return section("place", "Map", tag("p", report.map_note, cls="muted"), drawn)


def place_data(report: Report) -> dict[str, Any]:
    """What the script draws the map from."""
    return {KEY: report.map.to_dict()} if isinstance(report.map, ClusterMap) else {}
