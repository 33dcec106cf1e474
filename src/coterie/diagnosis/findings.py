"""The result of one check: the measured value and, if there is a problem, a finding with a remedy."""

from dataclasses import dataclass, field, replace
from typing import Any

SEVERITIES = ("serious", "warning", "note")


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
