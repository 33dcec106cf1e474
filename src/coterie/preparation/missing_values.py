"""Missing and infinite values: their counts, and messages about them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.formatting import count
from coterie.core.stats import Stats
from coterie.preparation.name_lists import shell_names

NAMED_TO_EXCLUDE = 3


@dataclass(frozen=True)
class MissingCounts(Stats):
    """Numbers of missing and infinite values, and of values that are no category."""

    rows: Any
    incomplete_rows: Any  # rows with a missing value
    empty_rows: Any  # rows without any value
    missing: Any  # (columns,)
    infinite: Any  # (numeric columns,)
    unknown: Any  # (categorical columns,)


def infinite_message(columns: tuple[str, ...], counts: MissingCounts, from_model: bool) -> str:
    """Columns with infinite values, which can be excluded unless they are those of a model."""
    first = f"some values are infinite ({by_column(columns, counts.infinite)})."
    if from_model:
        return f"{first}\n  Correct them, or empty these cells and use --missing drop."
    return f"{first}\n  Correct them, or --exclude {_to_exclude(columns, counts.infinite)}."


def missing_message(columns: tuple[str, ...], counts: MissingCounts, other: str, from_model: bool) -> str:
    """Options for missing values: drop rows, use `other`, or exclude columns, unless they are those of a model."""
    first = (
        f"{counts.incomplete_rows:,} of {count(counts.rows)} have missing values "
        f"({by_column(columns, counts.missing)})."
    )
    drop = f"--missing drop (keeps {count(counts.rows - counts.incomplete_rows)})"
    if from_model:
        return f"{first}\n  Use {drop}{other and f', or a model that was fitted with {other}'}."
    exclude = f"--exclude {_to_exclude(columns, counts.missing)}"
    return f"{first}\n  Choose one: {drop}, {other and f'{other}, '}or {exclude}."


def empty_warnings(empty: int) -> tuple[str, ...]:
    """A warning about rows without any value, all of whose values are filled."""
    if not empty:
        return ()
    rows, their = ("row has", "Its") if empty == 1 else ("rows have", "Their")
    what = f"{empty:,} {rows} no value in any column that is used."
    return (
        f"{what} {their} values are all filled, so the cluster means nothing: leave such rows out by --missing drop.",
    )


def extent(counts: NDArray[np.integer]) -> str:
    """``221 values in 2 columns``."""
    return f"{count(int(counts.sum()), 'value')} in {count(int(np.count_nonzero(counts)), 'column')}"


def by_column(columns: tuple[str, ...], counts: NDArray[np.integer]) -> str:
    """``age: 190, income: 31``."""
    return ", ".join(f"{columns[j]}: {counts[j]:,}" for j in _most_frequent(counts))


def _to_exclude(columns: tuple[str, ...], counts: NDArray[np.integer]) -> str:
    names = [columns[j] for j in _most_frequent(counts)]
    return shell_names(*names[:NAMED_TO_EXCLUDE]) + (",…" if len(names) > NAMED_TO_EXCLUDE else "")


def _most_frequent(counts: NDArray[np.integer]) -> list[int]:
    return [j for j in np.argsort(-counts, kind="stable").tolist() if counts[j]]
