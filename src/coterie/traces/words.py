"""What a step did, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def number(value: float) -> str:
    """Three digits, thousands apart: 12.3, 0.000412, 1,230,000."""
    value = float(f"{value:.3g}")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def started(k: int, what: str) -> str:
    return f"start: {k:,} {what}{'' if k == 1 else 's'}"


def assigned(changed: int | None, n: int, how: str) -> str:
    """Rows have joined centers: the 'nearest', all of them ('soft'), or the best for all rows 'together'."""
    if how == "soft":
        if changed is None:
            return f"assign: each of {n:,} rows belongs to all centers, to the near ones more"
        return f"assign: memberships follow the centers; {_rows(changed, n)} nearest center"
    if changed is None and how == "together":
        return f"assign: {n:,} rows are divided among the centers at the least cost that sizes and links allow"
    if changed is None:
        return f"assign: each of {n:,} rows joins its nearest center"
    return f"assign: {changed:,} of {n:,} rows changed cluster" if changed else "assign: no row changed cluster"


def updated(step: np.ndarray, empty: Sequence[int]) -> str:
    """Centers have moved; those of clusters without rows to another row."""
    told = f"update: centers move by at most {number(float(step.max()))}" if step.any() else "update: no center moves"
    return told + _anew(empty, "cluster")


def batched(batch: int, step: float, changed: int, n: int) -> str:
    return f"batch {batch:,}: centers move by at most {number(step)}; {changed:,} of {n:,} rows changed cluster"


def expected(kind: str, what: str, gap: float, changed: int | None, n: int) -> str:
    """Responsibilities have been taken: after a soft E-step the bound touches what it bounds."""
    told = {
        "soft": f"E: the bound touches the {what}",
        "hard": f"E: every row goes to its likeliest component; the bound is {number(gap)} below the {what}",
        "stochastic": f"E: every row draws its component; the bound is {number(gap)} below the {what}",
    }[kind]
    return told + ("" if changed is None else f"; {_rows(changed, n)} component")


def maximised(kind: str, what: str, rise: float, climbed: float, anew: Sequence[int]) -> str:
    """Parameters have followed: the bound has risen by `rise`, what it bounds by `climbed`."""
    if anew:
        return f"M: the {what} {_way(climbed)}{_anew(anew, 'component')}"
    if kind != "soft":
        return f"M: the bound {_way(rise)}; the {what} {_way(climbed)}"
    if rise < 0:
        return f"M: a leap ahead of where the bound leads; the {what} {_way(climbed)}"
    if rise == 0:
        return f"M: the {what} {_way(climbed)}"
    return f"M: the {what} rises by at least {number(rise)}, and by {number(max(rise, climbed))} in fact"


def believed(step: str, what: str, rise: float | None, changed: int | None, n: int) -> str:
    """A half step of variational Bayes."""
    told = f"{step}: responsibilities of all rows" if rise is None else f"{step}: the {what} {_way(rise)}"
    return told + ("" if changed is None else f"; {_rows(changed, n)} component")


def _way(rise: float) -> str:
    if rise == 0:
        return "stays where it is"
    return f"rises by {number(rise)}" if rise > 0 else f"falls by {number(-rise)}"


def _rows(changed: int, n: int) -> str:
    return f"{changed:,} of {n:,} rows changed" if changed else "no row changed"


def _anew(which: Sequence[int], what: str) -> str:
    if not which:
        return ""
    one = len(which) == 1
    return f"; {what}{'' if one else 's'} {', '.join(map(str, which))} had no rows and start{'s' if one else ''} anew"
