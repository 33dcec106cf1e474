"""What a check says: the number it measured, and, where something is wrong, a sentence and a remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SEVERITIES = ("serious", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """Something that clusters, or a fit of them, suffer from."""

    check: str  # which check found it
    value: float  # what was measured
    threshold: float  # where the check begins to speak
    severity: str  # 'serious': the result is not to be trusted; 'warning': it may mislead; 'note': good to know
    sentence: str  # what was found, with its number
    remedy: str  # what to do about it, by its name in this library
    details: dict[str, Any] = field(default_factory=dict)  # plain data behind the number


@dataclass(frozen=True)
class Check:
    """What was measured, whether or not it was worth a word."""

    name: str
    value: float | None  # None: it could not be measured
    threshold: float | None
    rows: int  # rows it was measured on
    finding: Finding | None = None
    reason: str = ""  # why it was not measured, or why nothing was said


def judge(
    name: str,
    value: float,
    threshold: float,
    rows: int,
    fires: bool,
    severity: str,
    sentence: str,
    remedy: str,
    **details: Any,
) -> Check:
    """The check, with a finding if it `fires`."""
    value, threshold = float(value), float(threshold)
    found = Finding(name, value, threshold, severity, sentence, remedy, details) if fires else None
    return Check(name, value, threshold, int(rows), found)


def not_measured(name: str, reason: str) -> Check:
    return Check(name, None, None, 0, None, reason)


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def verb(number: int, one: str, many: str) -> str:
    return one if number == 1 else many


def listed(names: list[str], at_most: int = 5) -> str:
    """Some names, and how many more there are."""
    more = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {more:,} more" if more > 0 else "")


def percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{100 * share:.2g}%"
