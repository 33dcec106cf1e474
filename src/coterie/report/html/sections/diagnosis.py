"""What to watch for: warnings of the job, and findings of the diagnosis with remedies."""

from coterie.core.formatting import count
from coterie.diagnosis.findings import Diagnosis
from coterie.report.formatting import number
from coterie.report.html.blocks import absent, numbers, section
from coterie.report.html.charts.svg import scrollable
from coterie.report.html.report import Absent, Report
from coterie.web import Markup, tag

TINY = 1e-6


def diagnosis(report: Report) -> Markup:
    """The warnings of the job, a sentence and a remedy for each finding, and a table of all checks."""
    warnings = [tag("li", f"{text[:1].upper()}{text[1:]}") for text in report.result.warnings]
    n, checked = report.result.rows_used, report.checked_rows
    sample = None
    if not isinstance(report.diagnosis, Absent) and checked != n:
        sample = tag("p", f"Checked on a random sample of {checked:,} of {n:,} rows.", cls="muted")
    warning_list = tag("ul", warnings, cls="panel warnings") if warnings else None
    return section("watch", "What to watch for", warning_list, sample, *findings(report.diagnosis))


def findings(diagnosis: Diagnosis | Absent) -> list[Markup]:
    """A sentence and a remedy for each finding, and a table of all checks."""
    if isinstance(diagnosis, Absent):
        return [absent(diagnosis)]
    if not diagnosis.findings:
        sample = f" (most on a sample of {diagnosis.sample:,} rows)" if diagnosis.sample < diagnosis.rows else ""
        checks = f"{count(len(diagnosis.checks), 'check')} of {count(diagnosis.rows, 'row')}"
        return [tag("p", f"No problems found in {checks}{sample}.", cls="panel"), _checks(diagnosis)]
    entries = [
        tag(
            "li",
            tag("span", finding.severity, cls=f"severity {finding.severity}"),
            tag("strong", finding.check.replace("_", " ")),
            tag("p", finding.sentence),
            tag("p", "Remedy: ", finding.remedy, cls="remedy"),
        )
        for finding in diagnosis.findings
    ]
    return [tag("ul", entries, cls="panel findings"), _checks(diagnosis)]


def _checks(diagnosis: Diagnosis) -> Markup:
    rows = []
    for check in diagnosis.checks.values():
        result = check.finding.severity if check.finding else "–" if check.value is None else "passed"
        rows.append([check.name.replace("_", " "), _value(check.value), number(check.threshold), result, check.reason])
    table = numbers(["check", "value", "threshold", "result", "reason"], rows, left=(0, 3, 4))
    return tag("details", tag("summary", "All checks"), tag("div", scrollable(table), cls="panel"))


def _value(value: float | None) -> str:
    """A measured value; the digits of tiny ones, such as probabilities, mean nothing."""
    return f"< {number(TINY)}" if value is not None and 0.0 < value < TINY else number(value)
