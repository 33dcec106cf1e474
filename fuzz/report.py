"""Counts of cases, and findings without repetitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from fuzz.finding import Finding


class Report:
    """What a run did and found."""

    def __init__(self, seed: int, engine: str = "both", laws: str = "fuzz.laws") -> None:
        self.seed, self.engine, self.laws = seed, engine, laws
        self.cases: Counter[tuple[str, str]] = Counter()  # by subject and law
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.findings: dict[tuple[str, str, str, str], Finding] = {}
        self.repetitions: Counter[tuple[str, str, str, str]] = Counter()

    def add(self, result: dict[str, Any], show: Callable[[str], None]) -> None:
        """Count the result of a case; show its finding unless it is known."""
        key = result["subject"], result["law"]
        self.cases[key] += 1
        self.rejected[key] += result["rejected"]
        self.seconds[key] += result["seconds"]
        if result["finding"] is None:
            return
        finding = Finding(**result["finding"])
        self.repetitions[finding.key] += 1
        if finding.key not in self.findings:
            self.findings[finding.key] = finding
            show(self.text_of(finding))

    def repeat_command(self, finding: Finding) -> str:
        engine = "" if self.engine == "both" else f" --engine {self.engine}"
        laws = "" if self.laws == "fuzz.laws" else f" --laws {self.laws}"
        return f"python -m fuzz --seed {self.seed} --case {finding.case}{engine}{laws}"

    def text_of(self, finding: Finding) -> str:
        head = f"FINDING  {finding.subject}: {finding.law}"
        what = f"  {finding.kind} at {finding.place}: {finding.message}"
        return f"{head}\n  repeat: {self.repeat_command(finding)}\n{what}\n{finding.details.rstrip()}\n"

    def summary(self) -> str:
        """A table of cases by subject and law, then the findings, a line each."""
        rows = [["subject", "law", "cases", "rejected", "seconds", "findings"]]
        for key in sorted(self.cases):
            found = sum(many for (law, subject, *_), many in self.repetitions.items() if (subject, law) == key)
            seconds = f"{self.seconds[key]:.1f}"
            rows.append([*key, str(self.cases[key]), str(self.rejected[key]), seconds, str(found)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        total = f"{self.cases.total()} cases, {self.rejected.total()} with rejected input, seed {self.seed}"
        lines += ["", f"{total}: {len(self.findings)} findings"]
        for finding in self.findings.values():
            where = f"{finding.kind} at {finding.place}"
            lines.append(f"  {self.repetitions[finding.key]} x {finding.subject}: {finding.law} ({where})")
            lines.append(f"      {self.repeat_command(finding)}")
        return "\n".join(lines)
