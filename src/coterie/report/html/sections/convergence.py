"""The convergence of the fit."""

from typing import Any

from coterie.plots.display import plain
from coterie.report.html.charts.convergence import convergence as chart
from coterie.report.html.charts.convergence import text_without_curve
from coterie.report.html.report import Absent, Report
from coterie.report.html.sections.section import absent, section
from coterie.web import Markup, player, tag

KEY = "trace"


def convergence(report: Report) -> Markup:
    """The objective of every restart, and the animation of the fit if there is one."""
    display = report.convergence
    drawn = absent(display) if isinstance(display, Absent) else _drawn(plain(display))
    animation = None if report.animation is None else [tag("h3", "Step by step"), player(report.animation, KEY)]
    return section("convergence", "Convergence", drawn, animation)


def _drawn(display: dict[str, Any]) -> Markup:
    text = text_without_curve(display)
    return chart(display) if text is None else absent(text)


def convergence_data(report: Report) -> dict[str, Any]:
    """The data that the player shows."""
    return {} if report.animation is None else {KEY: report.animation}
