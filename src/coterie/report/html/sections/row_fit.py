"""How well does each row fit?"""

from coterie.plots.display import plain
from coterie.report.html.charts.silhouettes import certainty, silhouettes
from coterie.report.html.report import Absent, Report
from coterie.report.html.sections.section import absent, section
from coterie.web import Markup


def row_fit(report: Report) -> Markup:
    """Silhouettes of the rows by cluster; for mixtures also probabilities."""
    display = report.silhouettes
    return section(
        "fitting",
        "How well does each row fit?",
        absent(f"No silhouettes: {display.reason}") if isinstance(display, Absent) else silhouettes(plain(display)),
        None if report.certainty is None else certainty(plain(report.certainty)),
    )
