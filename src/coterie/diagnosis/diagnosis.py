"""The result of a diagnosis: what was measured, what was found, and both as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from coterie.diagnosis.findings import SEVERITIES, Check, Finding, count

WIDTH = 100


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` measured and found; plain data, for a report or a plot too.

    ``diagnosis["outliers"]`` is the check of that name, ``print(diagnosis)`` all findings with their remedies.
    """

    rows: int  # that count and are complete
    columns: int
    sample: int  # rows that most checks looked at
    clusters: str  # whose clusters were looked at; '' if none were
    n_clusters: int | None
    checks: dict[str, Check]  # by name, whether or not they found something

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, the gravest first."""
        found = [check.finding for check in self.checks.values() if check.finding is not None]
        return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))

    @property
    def ok(self) -> bool:
        """Whether there is nothing but notes."""
        return all(finding.severity == "note" for finding in self.findings)

    def __getitem__(self, name: str) -> Check:
        return self.checks[name]

    def table(self) -> list[dict[str, Any]]:
        """A row for each check: its name, number and threshold, the severity of what it found, and on how many rows."""
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
        """All of it as numbers, text, lists and dicts, as JSON has them."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "sample": self.sample,
            "clusters": self.clusters,
            "n_clusters": self.n_clusters,
            "ok": self.ok,
            "findings": [asdict(finding) for finding in self.findings],
            "checks": self.table(),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        looked = f" · {self.clusters}" if self.clusters else ""
        drawn = f" · sample of {self.sample:,}" if self.sample < self.rows else ""
        yield f"{count(self.rows, 'row')} · {count(self.columns, 'column')}{drawn}{looked}"
        for finding in self.findings:
            yield ""
            yield from _wrapped(f"{finding.severity}: {finding.check}", "")
            yield from _wrapped(finding.sentence, "  ")
            yield from _wrapped("→ " + finding.remedy, "  ")
        fine = [check.name for check in self.checks.values() if check.finding is None and check.value is not None]
        left = [check.name for check in self.checks.values() if check.value is None]
        yield ""
        yield from _wrapped(f"nothing found by: {', '.join(fine) or 'none of the checks'}", "  ", first="")
        if left:
            yield from _wrapped(f"not measured: {', '.join(left)}", "  ", first="")


def _wrapped(text: str, indent: str, first: str | None = None) -> Iterator[str]:
    """Lines of at most `WIDTH`, cut at spaces."""
    line = indent if first is None else first
    empty = True
    for word in text.split():
        if not empty and len(line) + 1 + len(word) > WIDTH:
            yield line
            line, empty = indent, True
        line, empty = (line if empty else line + " ") + word, False
    yield line
