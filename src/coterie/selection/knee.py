"""Knee of a curve, by Kneedle and by the second difference."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arguments import not_negative, one_of
from coterie.core.arrays import Array
from coterie.core.repr_html import ReprHTMLMixin
from coterie.errors import InputError

ROUNDING = 1e-12  # in the unit square: smaller differences count as equal


@dataclass(frozen=True, repr=False)
class Knee(ReprHTMLMixin):
    """Result of `kneedle`."""

    x: float | None  # x of the knee; None if the curve has none
    knees: tuple[float, ...]  # all knees, from the steep end of the curve
    curve: str  # 'convex' or 'concave', as passed or detected
    direction: str  # 'increasing' or 'decreasing'
    difference: Array  # (n,) height above the diagonal of the normalised curve, concave and increasing
    threshold: Array  # (n,) a peak is a knee if the difference falls below this; NaN except at peaks
    points: Array  # (n, 2) x and y of the curve

    @property
    def heading(self) -> str:
        """The knee and the shape of the curve, in words."""
        shape = f"{self.direction} {self.curve} curve"
        if self.x is None:
            return f"no knee in the {shape}"
        others = [f"{x:g}" for x in self.knees if x != self.x]
        return f"knee at {self.x:g} of the {shape}" + (f"; others at {', '.join(others)}" if others else "")

    def __str__(self) -> str:
        return self.heading


def kneedle(
    x: Any, y: Any, *, curve: str = "auto", direction: str = "auto", sensitivity: float = 1.0, online: bool = False
) -> Knee:
    r"""Find the knee of a curve with Kneedle [1]_: the point farthest from the line between its ends.

    The curve is reflected so that it is increasing and concave, and scaled to the unit square. The peaks of its height
    above the diagonal are candidates. A peak is a knee if this height then falls by more than `sensitivity` times the
    mean step of x, before it rises again.

    A knee is the point after which a larger x brings little improvement. It does not show whether there are clusters:
    curves of noise have knees too, and the knee moves with the range of x. Do not choose K by the knee alone.

    Parameters
    ----------
    x : array (n,)
        Ascending values, such as numbers of clusters; at least 3.
    y : array (n,)
        Value of the curve at each x, such as the inertia.
    curve : {'auto', 'convex', 'concave'}, default='auto'
        Shape: 'convex' is below the line between the ends, 'concave' above it. 'auto' detects it.
    direction : {'auto', 'increasing', 'decreasing'}, default='auto'
        Direction of the curve. 'auto' compares the two ends.
    sensitivity : float, default=1.0
        Decrease required after a peak, in mean steps of x. 0 accepts the first peak; larger values need clearer knees.
    online : bool, default=False
        If True, return the last knee instead of the first. Use this for curves that are still growing, where a new
        point may reveal a better knee.

    Returns
    -------
    Knee
        Has `x`, the position of the knee or None, and `knees`, all of them.

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
    is_reversed = (curve == "concave") != (direction == "increasing")
    y_unit = _scale_to_unit(-y if curve == "convex" else y)
    x_unit = _scale_to_unit(-x if is_reversed else x)
    if is_reversed:
        y_unit, x_unit = y_unit[::-1], x_unit[::-1]
    difference = y_unit - x_unit
    threshold = _thresholds(difference, sensitivity * float(np.diff(x_unit).mean()))
    positions = _knees(difference, threshold)
    if is_reversed:
        difference, threshold, positions = difference[::-1], threshold[::-1], [len(x) - 1 - i for i in positions]
    knees = tuple(float(x[i]) for i in positions)
    x_knee = None if not knees else knees[-1] if online else knees[0]
    return Knee(x_knee, knees, curve, direction, difference, threshold, np.column_stack([x, y]))


def second_derivative(x: Any, y: Any) -> float | None:
    """Find the inner point of a curve with the largest absolute second difference.

    The result is None if the curve is straight. It depends on three points at a time, so one noisy point can change it.

    Parameters
    ----------
    x : array (n,)
        Ascending values, such as numbers of clusters; at least 3.
    y : array (n,)
        Value of the curve at each x.

    Returns
    -------
    float or None
        The x of that point.

    Examples
    --------
    >>> from coterie.selection import second_derivative
    >>> second_derivative(range(1, 9), [1000, 400, 120, 100, 85, 72, 61, 52])
    2.0
    """
    x, y = _curve(x, y)
    slopes = np.diff(_scale_to_unit(y)) / np.diff(_scale_to_unit(x))
    bend = np.abs(np.diff(slopes))
    return float(x[1 + int(bend.argmax())]) if bend.max() > 1e-12 * max(1.0, float(np.abs(slopes).max())) else None


def _curve(x: Any, y: Any) -> tuple[Array, Array]:
    try:
        x, y = (np.asarray(list(values), dtype=np.float64) for values in (x, y))
    except (TypeError, ValueError):
        raise InputError(
            "x or y contains values that are not numbers: pass two sequences of numbers of the same length"
        ) from None
    if x.ndim != 1 or x.shape != y.shape or len(x) < 3:
        raise InputError(
            f"x and y must have the same length and at least 3 numbers each; got shapes {x.shape}, {y.shape}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("x or y contains NaN or infinity, but must be finite: drop these points")
    if not (np.diff(x) > 0).all():
        i = int(np.argmax(np.diff(x) <= 0))
        raise InputError(f"x[{i + 1}] = {x[i + 1]:g} follows {x[i]:g}, but x must ascend: sort the points by x")
    return x, y


def _scale_to_unit(values: Array) -> Array:
    """Scale to the range from 0 to 1; zeros if all values are equal."""
    low, span = values.min(), np.ptp(values)
    return (values - low) / span if span > 0 else np.zeros(len(values))


def _thresholds(difference: Array, fall: float) -> Array:
    """Threshold at every peak, NaN elsewhere. The peak of a plateau is its last point."""
    before, here, after = difference[:-2], difference[1:-1], difference[2:]
    peaks = 1 + np.flatnonzero((here >= before - ROUNDING) & (here > after + ROUNDING))
    threshold = np.full(len(difference), np.nan)
    threshold[peaks] = difference[peaks] - fall
    return threshold


def _knees(difference: Array, threshold: Array) -> list[int]:
    """Positions of the peaks after which the difference falls below their threshold before it rises again."""
    knees = []
    for peak in np.flatnonzero(~np.isnan(threshold)):
        falling = np.diff(difference[peak:])
        end = int(np.argmax(falling > ROUNDING)) if (falling > ROUNDING).any() else len(falling)
        if difference[peak + 1 : peak + 1 + end].min(initial=np.inf) < threshold[peak]:
            knees.append(int(peak))
    return knees
