"""The result of `diagnose`, as data and as text: for each check the measured value and, if there is one, a finding."""

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from coterie.core.formatting import count
from coterie.core.repr_html import ReprHTMLMixin

SEVERITIES = ("serious", "warning", "note")
WIDTH = 100  # characters in a line of the text


@dataclass(frozen=True)
class Finding:
    """A problem of the data or of the clusters."""

    check: str  # name of the check
    value: float  # the measured value
    threshold: float  # the value at which the check reports a problem
    severity: str  # 'serious': do not trust the result; 'warning': it may mislead; 'note': good to know
    sentence: str  # what was observed, with the number, and what it means
    remedy: str  # what to do about it, in names of this library
    details: dict[str, Any] = field(default_factory=dict)  # data behind the value, as JSON can hold it


@dataclass(frozen=True)
class Check:
    """The result of a check, with or without a finding."""

    name: str
    value: float | None  # None: the check was not possible
    threshold: float | None
    rows: int  # number of rows used
    finding: Finding | None = None
    reason: str = ""  # why the check was not possible


@dataclass(frozen=True, repr=False)
class Diagnosis(ReprHTMLMixin):
    """The result of `diagnose`, as plain data.

    ``diagnosis["outliers"]`` returns the check of that name. ``print(diagnosis)`` shows all findings with remedies.
    """

    rows: int  # complete rows of positive weight
    columns: int
    sample: int  # size of the sample that most checks use
    clusters: str  # where the checked clusters come from, such as 'KMeans'; '' if there are none
    n_clusters: int | None
    checks: dict[str, Check]  # all checks by name, with or without a finding

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the most severe first."""
        findings = [check.finding for check in self.checks.values() if check.finding is not None]
        return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))

    @property
    def ok(self) -> bool:
        """True if no finding is more severe than a note."""
        return all(finding.severity == "note" for finding in self.findings)

    def __getitem__(self, name: str) -> Check:
        return self.checks[name]

    def table(self) -> list[dict[str, Any]]:
        """One dict for each check: name, value, threshold, severity of the finding, rows used, reason if skipped."""
        return [
            {
                "check": check.name,
                "value": check.value,
                "threshold": check.threshold,
                "severity": None if check.finding is None else check.finding.severity,
                "rows": check.rows,
                "reason": check.reason,
            }
            for check in self.checks.values()
        ]

    def to_dict(self) -> dict[str, Any]:
        """The whole result as numbers, strings, lists and dicts that JSON can hold."""
        names = ("rows", "columns", "sample", "clusters", "n_clusters", "ok")
        findings = [asdict(finding) for finding in self.findings]
        return {name: getattr(self, name) for name in names} | {"findings": findings, "checks": self.table()}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        sample = f" · sample of {self.sample:,}" if self.sample < self.rows else ""
        clusters = f" · {self.clusters}" if self.clusters else ""
        yield f"{count(self.rows, 'row')} · {count(self.columns, 'column')}{sample}{clusters}"
        for finding in self.findings:
            yield ""
            yield from _wrap(f"{finding.severity}: {finding.check}", "", "")
            yield from _wrap(finding.sentence, "  ", "  ")
            yield from _wrap("→ " + finding.remedy, "  ", "  ")
        checks = self.checks.values()
        without_finding = [check.name for check in checks if check.finding is None and check.value is not None]
        not_measured = [check.name for check in checks if check.value is None]
        yield ""
        yield from _wrap(f"no finding: {', '.join(without_finding) or 'none of the checks'}", "", "  ")
        if not_measured:
            yield from _wrap(f"not measured: {', '.join(not_measured)}", "", "  ")


def measured(name: str, value: float, threshold: float, rows: int) -> Check:
    """Return a check without a finding."""
    return Check(name, float(value), float(threshold), int(rows))


def with_finding(check: Check, is_problem: bool, severity: str, sentence: str, remedy: str, **details: Any) -> Check:
    """Return the check, with a finding if `is_problem`."""
    if not is_problem or check.value is None or check.threshold is None:
        return check
    return replace(
        check, finding=Finding(check.name, check.value, check.threshold, severity, sentence, remedy, details)
    )


def not_measured(name: str, reason: str) -> Check:
    return Check(name, None, None, 0, None, reason)


def verb(number: int, singular: str, plural: str) -> str:
    return singular if number == 1 else plural


def join_names(names: list[str], limit: int = 5) -> str:
    """Join up to `limit` names with commas, followed by the number of names that were left out."""
    n_omitted = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {n_omitted:,} more" if n_omitted > 0 else "")


def percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{100 * share:.2g}%"


def _wrap(text: str, first_indent: str, indent: str) -> list[str]:
    """Break `text` at spaces into lines of at most `WIDTH` characters."""
    text = " ".join(text.split())
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first_indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
