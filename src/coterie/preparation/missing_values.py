"""Values that are missing, or infinite: counted some rows at a time, and told of in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.stats import Stats
from coterie.preparation.name_lists import pasted

NAMED_TO_EXCLUDE = 3


@dataclass(frozen=True)
class Gaps(Stats):
    """How many values of some rows are not there, or not finite."""

    rows: Any
    incomplete: Any  # rows in which a value is missing
    absent: Any  # (columns,) values that are missing
    infinite: Any  # (columns of numbers,)

    @property
    def values(self) -> int:
        """How many are missing."""
        return int(self.absent.sum())


def infinite(columns: tuple[str, ...], gaps: Gaps) -> str:
    """That some values are, and what to do."""
    return (
        f"some values are infinite ({by_column(columns, gaps.infinite)}).\n"
        f"  Correct them, or --exclude {_to_exclude(columns, gaps.infinite)}."
    )


def choices(columns: tuple[str, ...], gaps: Gaps, other: str, fitted: bool) -> str:
    """That values are missing, and what can be done: drop rows, or `other`; a model is `fitted`, columns are not."""
    first = f"{gaps.incomplete:,} of {rows(gaps.rows)} have missing values ({by_column(columns, gaps.absent)})."
    drop = f"--missing drop (keeps {rows(gaps.rows - gaps.incomplete)})"
    if fitted:
        return f"{first}\n  Use {drop}{other and f', or a model that was fitted with {other}'}."
    return f"{first}\n  Choose one: {drop}, {other and f'{other}, '}or --exclude {_to_exclude(columns, gaps.absent)}."


def by_column(columns: tuple[str, ...], counts: NDArray[np.integer]) -> str:
    """``age: 190, income: 31``."""
    return ", ".join(f"{columns[j]}: {counts[j]:,}" for j in _worst_first(counts))


def rows(n: int) -> str:
    """``1 row``, ``2 rows``."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _to_exclude(columns: tuple[str, ...], counts: NDArray[np.integer]) -> str:
    worst = [columns[j] for j in _worst_first(counts)]
    return pasted(*worst[:NAMED_TO_EXCLUDE]) + (",…" if len(worst) > NAMED_TO_EXCLUDE else "")


def _worst_first(counts: NDArray[np.integer]) -> list[int]:
    return [j for j in np.argsort(-counts, kind="stable").tolist() if counts[j]]
