"""Results as self-contained HTML files, which need no network, can be printed, and have all numbers in tables."""

from typing import TYPE_CHECKING

from coterie.core.lazy import attach

if TYPE_CHECKING:
    from coterie.report.html.pages import as_html
    from coterie.report.html.report import Absent, ChoiceReport, ComparisonReport, Report

__all__ = ["Absent", "ChoiceReport", "ComparisonReport", "Report", "as_html"]
_DATA = ("Absent", "ChoiceReport", "ComparisonReport", "Report")
__getattr__ = attach(
    __name__, {"as_html": "coterie.report.html.pages", **dict.fromkeys(_DATA, "coterie.report.html.report")}
)
