"""Where a curve bends: the knee of what more clusters bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arguments import not_negative, one_of
from coterie.core.errors import InputError

Array = np.ndarray[Any, Any]
ROUNDING = 1e-12  # of the unit square: heights that differ by less are the same


@dataclass(frozen=True)
class Knee:
    """What `kneedle` found; plain numbers, for a plot too."""

    x: float | None  # where the knee is; None: the curve has none
    knees: tuple[float, ...]  # all there are, from the steep end of the curve on
    curve: str  # 'convex' or 'concave', as given or as found
    direction: str  # 'increasing' or 'decreasing'
    difference: Array  # (n,) how far the curve, made concave and rising in a unit square, is above the diagonal
    threshold: Array  # (n,) below which the difference must fall for a knee at a peak; NaN where there is no peak


def kneedle(
    x: Any,
    y: Any,
    *,
    curve: str = "auto",
    direction: str = "auto",
    sensitivity: float = 1.0,
    online: bool = False,
) -> Knee:
    r"""The knee of a curve by Kneedle [1]_: where it is farthest from the line between its ends.

    The curve is turned so that it rises and is concave, and put into a unit square. Peaks of its height above the
    diagonal are candidates. A peak is a knee if that height falls, before it rises again, by `sensitivity` times the
    mean step of x.

    A knee is where more costs more than it brings, by the eye of someone who sees the whole plot. It says nothing of
    whether there are clusters: noise has knees too, and the answer moves with the range of x. Do not let it decide
    alone.

    Parameters
    ----------
    x : array (n,)
        Ascending, such as numbers of clusters; at least 3.
    y : array (n,)
        What each brings, such as inertias.
    curve : {'auto', 'convex', 'concave'}, default='auto'
        'convex' curves hang below the line between their ends, 'concave' ones are above; 'auto' looks.
    direction : {'auto', 'increasing', 'decreasing'}, default='auto'
    sensitivity : float, default=1.0
        How much of a fall it takes: 0 takes the first peak, more wants clearer knees.
    online : bool, default=False
        Take the last knee, not the first: for curves that are still growing, where every new point may show a better
        one.

    Returns
    -------
    Knee

    References
    ----------
    .. [1] V. Satopää, J. Albrecht, D. Irwin, B. Raghavan (2011), Finding a "kneedle" in a haystack: detecting knee
       points in system behavior, ICDCS Workshops, 166-171. https://doi.org/10.1109/ICDCSW.2011.20

    Examples
    --------
    >>> from coterie.selection import kneedle
    >>> kneedle(range(1, 9), [1000, 400, 120, 100, 85, 72, 61, 52]).x
    3.0
    """
    x, y = _curve(x, y)
    one_of("curve", curve, ("auto", "convex", "concave"))
    one_of("direction", direction, ("auto", "increasing", "decreasing"))
    sensitivity = not_negative("sensitivity", sensitivity)
    if direction == "auto":
        direction = "increasing" if y[-1] >= y[0] else "decreasing"
    if curve == "auto":
        chord = y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
        curve = "concave" if (y - chord).sum() >= 0 else "convex"
    backwards = (curve == "concave") != (direction == "increasing")
    rising = _in_unit(-y if curve == "convex" else y)
    across = _in_unit(-x if backwards else x)
    if backwards:
        rising, across = rising[::-1], across[::-1]
    difference = rising - across
    threshold = _thresholds(difference, sensitivity * float(np.diff(across).mean()))
    places = _knees(difference, threshold)
    if backwards:
        difference, threshold, places = difference[::-1], threshold[::-1], [len(x) - 1 - i for i in places]
    knees = tuple(float(x[i]) for i in places)
    found = None if not knees else knees[-1] if online else knees[0]
    return Knee(found, knees, curve, direction, difference, threshold)


def second_derivative(x: Any, y: Any) -> float | None:
    """Where the slope of a curve changes most: the inner point with the largest second difference, either way.

    One noisy point moves it; it looks at three points at a time. None where the curve is straight.

    Examples
    --------
    >>> from coterie.selection import second_derivative
    >>> second_derivative(range(1, 9), [1000, 400, 120, 100, 85, 72, 61, 52])
    2.0
    """
    x, y = _curve(x, y)
    slopes = np.diff(_in_unit(y)) / np.diff(_in_unit(x))
    bend = np.abs(np.diff(slopes))
    return float(x[1 + int(bend.argmax())]) if bend.max() > 1e-12 * max(1.0, float(np.abs(slopes).max())) else None


def _curve(x: Any, y: Any) -> tuple[Array, Array]:
    try:
        x, y = (np.asarray(list(values), dtype=np.float64) for values in (x, y))
    except (TypeError, ValueError):
        raise InputError("x and y must be numbers, one y for each x") from None
    if x.ndim != 1 or x.shape != y.shape or len(x) < 3:
        raise InputError(f"x and y must be at least 3 numbers each, one y for each x; shapes are {x.shape}, {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("x and y must be finite: drop the points where one is NaN or infinite")
    if not (np.diff(x) > 0).all():
        i = int(np.argmax(np.diff(x) <= 0))
        raise InputError(f"x must ascend; x[{i + 1}] = {x[i + 1]:g} follows {x[i]:g}")
    return x, y


def _in_unit(values: Array) -> Array:
    """From 0 to 1; zeros where all are alike."""
    low, span = values.min(), np.ptp(values)
    return (values - low) / span if span > 0 else np.zeros(len(values))


def _thresholds(difference: Array, fall: float) -> Array:
    """At every peak, that of a plateau its last point, what the difference must fall below."""
    before, here, after = difference[:-2], difference[1:-1], difference[2:]
    peaks = 1 + np.flatnonzero((here >= before - ROUNDING) & (here > after + ROUNDING))
    threshold = np.full(len(difference), np.nan)
    threshold[peaks] = difference[peaks] - fall
    return threshold


def _knees(difference: Array, threshold: Array) -> list[int]:
    """Peaks from which the difference falls below their threshold before it rises again."""
    found = []
    for peak in np.flatnonzero(~np.isnan(threshold)):
        falling = np.diff(difference[peak:])
        end = int(np.argmax(falling > ROUNDING)) if (falling > ROUNDING).any() else len(falling)
        if difference[peak + 1 : peak + 1 + end].min(initial=np.inf) < threshold[peak]:
            found.append(int(peak))
    return found
