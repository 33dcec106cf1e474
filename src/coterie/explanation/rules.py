"""Conditions, rules and explanations: plain data, and their text."""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.formatting import count, is_year, join_words, truncate
from coterie.core.repr_html import ReprHTMLMixin

MIN_PHI, MIN_COVERAGE, MIN_PRECISION = 0.5, 0.5, 0.5
LONGEST_VALUE = 40  # characters of a category in a text


@dataclass(frozen=True)
class Condition:
    """A condition on one column: ``lower < x``, ``x <= upper``, both, or ``x`` is one of `values`.

    Missing values satisfy no condition. Numbers are compared in the precision of the column. Bounds of dates are dates,
    or dates with times if the column has times.
    """

    column: str
    lower: float | date | None = None
    upper: float | date | None = None
    values: tuple[str, ...] | tuple[float | date, ...] = ()  # categories, or one number or date

    def __str__(self) -> str:
        if self.values:
            return f"{self.column} = {join_words([self.value_text(value) for value in self.values], 'or')}"
        if self.lower is None:
            return f"{self.column} ≤ {self.value_text(self.upper)}"
        if self.upper is None:
            return f"{self.column} > {self.value_text(self.lower)}"
        return f"{self.value_text(self.lower)} < {self.column} ≤ {self.value_text(self.upper)}"

    def value_text(self, value: Any) -> str:
        """A bound or a value of the column; a number has all its digits, so that the text converts back to it."""
        if isinstance(value, date):
            return date_text(value)
        if not isinstance(value, float):
            return truncate(str(value), LONGEST_VALUE)
        return number_text(value).replace(",", "") if is_year(self.column, value) else number_text(value)

    def to_dict(self) -> dict[str, Any]:
        """The condition as JSON can hold it."""
        plain = [value.isoformat() if isinstance(value, date) else value for value in (self.lower, self.upper)]
        values = [value.isoformat() if isinstance(value, date) else value for value in self.values]
        return {"column": self.column, "lower": plain[0], "upper": plain[1], "values": values}


@dataclass(frozen=True)
class Rule:
    """All conditions together, and how well they describe one cluster."""

    label: str  # of the cluster
    conditions: tuple[Condition, ...]
    rows: int  # in the cluster
    fitting: int  # rows that satisfy all conditions
    correct: int  # rows that satisfy all conditions and are in the cluster
    coverage: float  # share of the cluster that satisfies the conditions; weighted if rows have weights
    precision: float  # share of the rows that satisfy the conditions that is in the cluster; weighted
    phi: float  # correlation of "satisfies the conditions" and "is in the cluster", from -1 to 1
    is_weighted: bool = False  # whether rows have weights

    @property
    def describes(self) -> bool:
        """Whether the rule is good enough to stand for the cluster."""
        return (
            bool(self.conditions)
            and self.phi >= MIN_PHI
            and self.coverage >= MIN_COVERAGE
            and self.precision >= MIN_PRECISION
        )

    @property
    def text(self) -> str:
        """The conditions in words: ``Cylinders = 6 and Weight > 3,200``."""
        return " and ".join(map(str, self.conditions))

    @property
    def evidence(self) -> str:
        """How well the conditions describe the cluster, in words."""
        precision = f"{self.precision:.0%}" if self.precision == 1 or self.precision < 0.995 else "over 99%"
        whole = "the weight of rows" if self.is_weighted else "rows"
        return f"{self.correct:,} of {count(self.rows)}, {precision} of {whole} that fit the rule"

    def __str__(self) -> str:
        if self.describes:
            return f"{self.text}: {self.evidence}"
        return f"no short rule (best: {self.text}: {self.evidence})" if self.conditions else "no short rule"

    def to_dict(self) -> dict[str, Any]:
        """The rule as JSON can hold it."""
        names = ("label", "describes", "text", "rows", "fitting", "correct", "coverage", "precision", "phi")
        return {name: getattr(self, name) for name in names} | {
            "conditions": [condition.to_dict() for condition in self.conditions]
        }


@dataclass(frozen=True, repr=False)
class Explanation(ReprHTMLMixin):
    """The result of `explain`.

    ``explanation["2"]`` is the rule of the cluster with this label. ``print(explanation)`` shows all rules.
    """

    rules: tuple[Rule, ...]  # one for each cluster, in the order of the labels
    cost_ratio: float | None  # K-means cost of a threshold tree with a leaf for each cluster, over that of the clusters
    tree: str  # the cuts of this tree; empty if there is none
    rows: int
    searched_rows: int  # rows of the sample in which rules were searched; they are counted in all rows
    noise: int  # rows in no cluster

    def __getitem__(self, label: object) -> Rule:
        for rule in self.rules:
            if rule.label == str(label):
                return rule
        raise KeyError(f"no cluster {label!r}; clusters: {', '.join(rule.label for rule in self.rules)}")

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        names = ("cost_ratio", "tree", "rows", "searched_rows", "noise")
        return {"rules": [rule.to_dict() for rule in self.rules]} | {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        width = max((len(rule.label) for rule in self.rules), default=0)
        lines = [f"{rule.label:>{width}}  {rule}" for rule in self.rules]
        if self.cost_ratio is not None:
            lines.append(f"A tree of thresholds with {count(len(self), 'leaf', 'leaves')} has {self.cost_text}.")
        return "\n".join(lines)

    @property
    def cost_text(self) -> str:
        """The cost ratio in words."""
        return f"{self.cost_ratio:.2f} times the K-means cost of the clusters"


def number_text(value: float) -> str:
    """A number with all its digits, so that the text converts back to it: ``3,200``, ``0.25``, ``1e-07``."""
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else f"{value:,}"


# Dates in rules: as numbers for the search, and as dates in conditions.

EPOCH = datetime(1970, 1, 1)
DAY = 86_400_000_000  # microseconds
STEPS = (DAY // 24, 60_000_000, 1_000_000)  # an hour, a minute and a second, in microseconds


def has_times(values: Array) -> bool:
    """Whether some of these numbers of microseconds are not whole days."""
    present = values[np.isfinite(values)]
    return bool((present % DAY != 0).any())


def as_date(value: float, *, with_time: bool) -> date:
    """The date, or date and time, of a number of microseconds."""
    moment = EPOCH + timedelta(microseconds=value)
    return moment if with_time else moment.date()


def as_microseconds(value: date) -> float:
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return float((moment - EPOCH) // timedelta(microseconds=1))


def date_text(value: date) -> str:
    """``2024-06-30``, ``2024-06-30 14:00``."""
    if not isinstance(value, datetime):
        return value.isoformat()
    return value.isoformat(" ", "minutes" if value.second == value.microsecond == 0 else "auto")


def calendar_threshold(low: float, high: float, _: Any = None) -> float:
    """The roundest date in [low, high), in microseconds: the end of a year or a month, a whole day, hour, minute.

    Of several, the last one. Rows up to the end of a month satisfy ``x ≤ 2024-06-30`` if they have no times.
    """
    latest = EPOCH + timedelta(microseconds=high - 1)
    day = datetime(latest.year, latest.month, latest.day)
    is_month_end = day.day == monthrange(day.year, day.month)[1]
    ends = [] if is_month_end and day.month == 12 else [datetime(day.year, 1, 1)]
    ends += [] if is_month_end else [day.replace(day=1)]
    days = [*(as_microseconds(first) - DAY for first in ends), as_microseconds(day)]
    candidates = [*days, *(step * ((high - 1) // step) for step in STEPS)]
    return next((float(value) for value in candidates if low <= value < high), low)
