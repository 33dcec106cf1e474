"""Dates in rules: as numbers for the search, and as dates in conditions."""

from calendar import monthrange
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from coterie.core.arrays import Array

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
