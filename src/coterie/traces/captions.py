"""Captions of the steps of a fit."""

from collections.abc import Sequence

import numpy as np

from coterie.core.formatting import count


def number(value: float) -> str:
    """Format with three significant digits and thousands separators: 12.3, 0.000412, 1,230,000."""
    value = float(f"{value:.3g}")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def start(k: int, noun: str) -> str:
    return f"start: {count(k, noun)}"


def assignment(changed: int | None, n: int, kind: str) -> str:
    """Caption of an assignment of rows to centers.

    `kind` is 'nearest', 'soft' (memberships in all clusters) or 'joint' (all rows together, with constraints).
    """
    if kind == "soft":
        if changed is None:
            return f"assign: {n:,} rows to all centers, with a higher membership for nearer centers"
        return f"assign: new memberships; {_changed_rows(changed, n)} nearest center"
    if changed is None and kind == "joint":
        return f"assign: {n:,} rows to centers at the minimum cost that the sizes and links allow"
    if changed is None:
        return f"assign: {n:,} rows to their nearest centers"
    return f"assign: {_changed_rows(changed, n)} cluster"


def update(movement: np.ndarray, empty: Sequence[int]) -> str:
    """Caption of an update of centers; those of empty clusters move to another row."""
    text = f"update: centers move by at most {number(float(movement.max()))}"
    return (text if movement.any() else "update: no center moves") + _reinitialised(empty, "cluster")


def batch(index: int, movement: float, changed: int, n: int) -> str:
    return f"batch {index:,}: centers move by at most {number(movement)}; {changed:,} of {n:,} rows changed cluster"


def e_step(kind: str, objective: str, gap: float, changed: int | None, n: int) -> str:
    """Caption of an E-step: after a soft one, the bound equals the objective."""
    text = {
        "soft": f"E: the bound now equals the {objective}",
        "hard": f"E: each row is assigned to its most likely component; the bound is {number(gap)} below the "
        f"{objective}",
        "stochastic": f"E: the component of each row is drawn at random; the bound is {number(gap)} below the "
        f"{objective}",
    }[kind]
    return text + ("" if changed is None else f"; {_changed_rows(changed, n)} component")


def m_step(kind: str, objective: str, bound_rise: float, rise: float, reinitialised: Sequence[int]) -> str:
    """Caption of an M-step, which raises the bound by `bound_rise` and the objective by `rise`."""
    if reinitialised:
        return f"M: the {objective} {_change(rise)}{_reinitialised(reinitialised, 'component')}"
    if kind != "soft":
        return f"M: the bound {_change(bound_rise)}; the {objective} {_change(rise)}"
    if bound_rise < 0:
        return f"M: an accelerated step beyond the maximum of the bound; the {objective} {_change(rise)}"
    if bound_rise == 0:
        return f"M: the {objective} {_change(rise)}"
    return f"M: the bound rises by {number(bound_rise)}, the {objective} by {number(max(bound_rise, rise))}"


def variational(step: str, objective: str, rise: float | None, changed: int | None, n: int) -> str:
    """Caption of a half step of variational Bayes."""
    text = f"{step}: responsibilities of all rows" if rise is None else f"{step}: the {objective} {_change(rise)}"
    return text + ("" if changed is None else f"; {_changed_rows(changed, n)} component")


def _change(rise: float) -> str:
    if rise == 0:
        return "does not change"
    return f"rises by {number(rise)}" if rise > 0 else f"falls by {number(-rise)}"


def _changed_rows(changed: int, n: int) -> str:
    return f"{changed:,} of {n:,} rows changed" if changed else "no row changed"


def _reinitialised(index: Sequence[int], noun: str) -> str:
    if not index:
        return ""
    is_one = len(index) == 1
    verbs = "was empty and is reinitialised" if is_one else "were empty and are reinitialised"
    return f"; {noun}{'' if is_one else 's'} {', '.join(map(str, index))} {verbs}"
