"""How well does each row fit?"""

from __future__ import annotations

from coterie.plots.display import plain
from coterie.report.html.charts.silhouettes import certainty, silhouettes
from coterie.report.html.report import Absent, Report
from coterie.report.html.sections.section import absent, section
from coterie.web import Markup


def fitting(report: Report) -> Markup:
    """Silhouettes of rows, cluster by cluster; of mixtures, probabilities, too."""
    found = report.silhouettes
    return section(
        "fitting",
        "How well does each row fit?",
        absent(f"No silhouettes: {found.why}") if isinstance(found, Absent) else silhouettes(plain(found)),
        None if report.certainty is None else certainty(plain(report.certainty)),
    )
