"""Results as pages: one HTML file that needs no network, prints, and holds its numbers in tables."""

from coterie.report.html.pages import as_html
from coterie.report.html.report import Absent, ChoiceReport, ComparisonReport, Report

__all__ = ["Absent", "ChoiceReport", "ComparisonReport", "Report", "as_html"]
