"""What to watch for: what data and clusters suffer from, and remedies."""

from __future__ import annotations

from coterie.diagnosis.diagnosis import Diagnosis
from coterie.report.html.charts.figure import numbers
from coterie.report.html.charts.svg import sideways
from coterie.report.html.report import Absent, Report
from coterie.report.html.sections.section import absent, section
from coterie.report.html.words import count, number
from coterie.web import Markup, tag


def watch(report: Report) -> Markup:
    """A sentence and a remedy for each finding, and the warnings of the job."""
    told = [tag("li", f"{text[:1].upper()}{text[1:]}") for text in report.result.warnings]
    warned = tag("ul", told, cls="panel warnings") if told else None
    return section("watch", "What to watch for", warned, _drawn(report), *_findings(report.diagnosis))


def _drawn(report: Report) -> Markup | None:
    n, checked = report.result.rows_used, report.checked
    if isinstance(report.diagnosis, Absent) or checked == n:
        return None
    return tag("p", f"Checked were {checked:,} of {n:,} rows, drawn at random.", cls="muted")


def _findings(found: Diagnosis | Absent) -> list[Markup]:
    if isinstance(found, Absent):
        return [absent(found)]
    drawn = f", on a sample of {found.sample:,}" if found.sample < found.rows else ""
    if not found.findings:
        looked = f"{count(len(found.checks), 'check')} of {count(found.rows, 'row')}{drawn}"
        fine = f"Nothing: {looked} found nothing to tell."
        return [tag("p", fine, cls="panel"), _checks(found)]
    entries = [
        tag(
            "li",
            tag("span", finding.severity, cls=f"severity {finding.severity}"),
            tag("strong", finding.check.replace("_", " ")),
            tag("p", finding.sentence),
            tag("p", "Remedy: ", finding.remedy, cls="remedy"),
        )
        for finding in found.findings
    ]
    return [tag("ul", entries, cls="panel findings"), _checks(found)]


def _checks(found: Diagnosis) -> Markup:
    rows = [
        [
            check.name.replace("_", " "),
            number(check.value),
            number(check.threshold),
            check.finding.severity if check.finding else "–" if check.value is None else "fine",
            check.reason,
        ]
        for check in found.checks.values()
    ]
    table = numbers(["check", "measured", "speaks from", "says", "why"], rows, left=(0, 3, 4))
    return tag("details", tag("summary", "All checks"), tag("div", sideways(table), cls="panel"))
