"""Results as self-contained HTML files, which need no network, can be printed, and have all numbers in tables."""

from coterie.report.html.pages import as_html
from coterie.report.html.report import Absent, ChoiceReport, ComparisonReport, Report

__all__ = ["Absent", "ChoiceReport", "ComparisonReport", "Report", "as_html"]
