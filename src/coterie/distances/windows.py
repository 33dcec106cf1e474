"""Which moments of two series may meet: everywhere, near the diagonal, or within a parallelogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.errors import ParameterError
from coterie.core.stored import stored

Array = np.ndarray[Any, Any]
Band = tuple[Array, Array]  # low, high (n,): moment i may meet those from low[i] to high[i] - 1
CHOICES = "None, a radius (a whole number from 0 up), a share of the longer series (0.0 to 1.0), or Itakura(slope)"


@stored("window.Everywhere")
@dataclass(frozen=True)
class Everywhere:
    """No window."""

    def band(self, n: int, m: int) -> Band:
        return np.zeros(n, np.int64), np.full(n, m, np.int64)


@stored("window.SakoeChiba")
@dataclass(frozen=True)
class SakoeChiba:
    r"""At most `radius` moments off the diagonal [1]_; a float is that share of the longer series.

    Series of different lengths have two diagonals, one from the beginning and one from the end: between the two, and up
    to `radius` outside them, moments may meet. So a window is never too narrow for a path.

    .. [1] Sakoe & Chiba (1978), Dynamic programming algorithm optimization for spoken word recognition, IEEE Trans.
       Acoust. Speech Signal Process. 26.
    """

    radius: int | float

    def band(self, n: int, m: int) -> Band:
        longer = max(n, m)
        radius = round(self.radius * longer) if isinstance(self.radius, float) else min(self.radius, longer)
        i = np.arange(n)
        return np.maximum(i - radius + min(0, m - n), 0), np.minimum(i + radius + max(0, m - n) + 1, m)


@stored("window.Itakura")
@dataclass(frozen=True)
class Itakura:
    r"""The parallelogram between lines of slope `slope` and 1 / `slope` from both corners [1]_.

    Slopes are relative to the straight line from corner to corner. The cells that line crosses always belong, so that
    there is a path, however short the series.

    .. [1] Itakura (1975), Minimum prediction residual principle applied to speech recognition, IEEE Trans. Acoust.
       Speech Signal Process. 23.
    """

    slope: float = 2.0

    def __post_init__(self) -> None:
        number = isinstance(self.slope, int | float | np.number) and not isinstance(self.slope, bool)
        if not number or not 1 <= self.slope < np.inf:
            raise ParameterError(f"slope must be a finite number of at least 1; got {self.slope!r}")

    def band(self, n: int, m: int) -> Band:
        """Both series are measured in units in which they are (n - 1) (m - 1) long: moments are whole numbers."""
        i = np.arange(n)
        line_low, line_high = _crossed(i, n, m)
        if n == 1 or m == 1:
            return line_low, line_high
        steep, flat = i * (m - 1) * self.slope, i * (m - 1) / self.slope
        rest = (n - 1 - i) * (m - 1)
        least = np.maximum(flat, (n - 1) * (m - 1) - rest * self.slope) / (n - 1)
        most = np.minimum(steep, (n - 1) * (m - 1) - rest / self.slope) / (n - 1)
        low, high = np.ceil(least).astype(np.int64), np.floor(most).astype(np.int64) + 1
        low += ~self._holds(i, low, n, m)
        low -= self._holds(i, low - 1, n, m)
        high -= ~self._holds(i, high - 1, n, m)
        high += self._holds(i, high, n, m)
        some = low < high
        return np.where(some, np.minimum(low, line_low), line_low), np.where(
            some, np.maximum(high, line_high), line_high
        )

    def _holds(self, i: Array, j: Array, n: int, m: int) -> Array:
        p, q = i * (m - 1), j * (n - 1)
        end = (n - 1) * (m - 1)
        near = (p <= self.slope * q) & (q <= self.slope * p)
        inside: Array = near & (end - p <= self.slope * (end - q)) & (end - q <= self.slope * (end - p))
        return inside


@stored("window.Mask")
@dataclass(frozen=True, eq=False)
class Mask:
    """The cells that a table of booleans (n, m) allows, for one pair of series."""

    cells: Array

    def band(self, n: int, m: int) -> Band:
        if self.cells.shape != (n, m):
            raise ParameterError(
                f"window must allow or forbid each of ({n}, {m}) cells; its shape is {self.cells.shape}"
            )
        if not self.cells.any(axis=1).all():
            raise ParameterError("window leaves a moment of x with nothing to meet: no path goes through it")
        low, high = self.cells.argmax(axis=1), m - self.cells[:, ::-1].argmax(axis=1)
        if (self.cells.sum(axis=1) != high - low).any():
            raise ParameterError("window must allow one run of moments of y for every moment of x, without gaps")
        # What lies before an earlier run, or behind a later one, is on no path.
        low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1].copy()
        if low[0] > 0 or high[-1] < m or (low >= high).any() or (low[1:] > high[:-1]).any():
            raise ParameterError("window leaves no path from the first moments of the series to their last")
        return low, high


def as_window(window: Any) -> Any:
    """What a user calls a window, as something with a `band`."""
    if window is None:
        return Everywhere()
    if isinstance(window, Everywhere | SakoeChiba | Itakura | Mask):
        return window
    if isinstance(window, np.ndarray) and window.dtype == bool and window.ndim == 2:
        return Mask(window)
    if isinstance(window, bool | np.bool_) or not isinstance(window, int | float | np.integer | np.floating):
        raise ParameterError(f"window must be {CHOICES}; got {window!r}")
    if isinstance(window, float | np.floating):
        if not 0 <= window <= 1:
            raise ParameterError(f"window must be {CHOICES}; got the share {window!r}")
        return SakoeChiba(float(window))
    if window < 0:
        raise ParameterError(f"window must be {CHOICES}; got the radius {window!r}")
    return SakoeChiba(int(window))


def _crossed(i: Array, n: int, m: int) -> Band:
    """The cells that the line from corner to corner runs through, not only past their corners."""
    if n == 1:
        return np.zeros(1, np.int64), np.full(1, m, np.int64)
    slack = n + m - 2
    low = (2 * i * (m - 1) - slack) // (2 * (n - 1)) + 1
    high = -((-2 * i * (m - 1) - slack) // (2 * (n - 1)))
    return np.maximum(low, 0), np.minimum(high, m)
