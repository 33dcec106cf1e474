"""How the fit came about."""

from __future__ import annotations

from typing import Any

from coterie.plots.display import plain
from coterie.report.html.charts.convergence import convergence as chart
from coterie.report.html.charts.convergence import without_curve
from coterie.report.html.report import Absent, Report
from coterie.report.html.sections.section import absent, section
from coterie.web import Markup, player, tag

KEY = "trace"


def convergence(report: Report) -> Markup:
    """The objective of every start, and the player of the fit where there is one."""
    found = report.convergence
    drawn = absent(found) if isinstance(found, Absent) else _drawn(plain(found))
    played = None if report.animation is None else [tag("h3", "Step by step"), player(report.animation, KEY)]
    return section("convergence", "Convergence", drawn, played)


def _drawn(display: dict[str, Any]) -> Markup:
    told = without_curve(display)
    return chart(display) if told is None else absent(told)


def convergence_data(report: Report) -> dict[str, Any]:
    """What the player plays."""
    return {} if report.animation is None else {KEY: report.animation}
