"""The result of `diagnose`: all checks, as data and as text."""

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from coterie.core.formatting import count
from coterie.core.repr_html import ReprHTMLMixin
from coterie.diagnosis.findings import SEVERITIES, Check, Finding

WIDTH = 100


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
