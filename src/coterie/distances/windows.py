"""Windows of dynamic time warping: constraints on the pairs of time points that can be aligned."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arguments import is_number
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.errors import ParameterError

Band = tuple[Array, Array]  # low, high (n,): time point i can be aligned with low[i] to high[i] - 1
CHOICES = "None, a radius (an int >= 0), a share of the longer series (a float from 0.0 to 1.0), or Itakura(slope)"


@stored("window.Everywhere")
@dataclass(frozen=True)
class NoWindow:
    """No constraint: all pairs of time points can be aligned."""

    def band(self, n: int, m: int) -> Band:
        return np.zeros(n, np.int64), np.full(n, m, np.int64)


@stored("window.SakoeChiba")
@dataclass(frozen=True)
class SakoeChiba:
    r"""Sakoe-Chiba band: at most `radius` time points off the diagonal [1]_; a float is a share of the longer series.

    Series of different lengths have two diagonals, one from the beginning and one from the end. The band contains all
    pairs between the two, and up to `radius` outside them. So there is always a path.

    .. [1] Sakoe & Chiba (1978), Dynamic programming algorithm optimization for spoken word recognition, IEEE Trans.
       Acoust. Speech Signal Process. 26.
    """

    radius: int | float

    def band(self, n: int, m: int) -> Band:
        longer = max(n, m)
        share = self.radius * longer * (1 + 1e-12)  # 0.29 * 100 is below 29
        radius = int(share) if isinstance(self.radius, float) else min(self.radius, longer)
        i = np.arange(n)
        return np.maximum(i - radius + min(0, m - n), 0), np.minimum(i + radius + max(0, m - n) + 1, m)


@stored("window.Itakura")
@dataclass(frozen=True)
class Itakura:
    r"""Itakura parallelogram, between lines of slope `slope` and 1 / `slope` from both corners [1]_.

    Slopes are relative to the straight line from corner to corner. The cells that this line crosses are always
    included, so that there is a path even for short series.

    .. [1] Itakura (1975), Minimum prediction residual principle applied to speech recognition, IEEE Trans. Acoust.
       Speech Signal Process. 23.
    """

    slope: float = 2.0

    def __post_init__(self) -> None:
        if not is_number(self.slope) or not 1 <= self.slope < np.inf:
            raise ParameterError(f"slope must be a finite number >= 1; got {self.slope!r}")

    def band(self, n: int, m: int) -> Band:
        """The band. In its unit both series have length (n - 1) (m - 1), so that all time points are integers."""
        i = np.arange(n)
        line_low, line_high = _crossed_cells(i, n, m)
        if n == 1 or m == 1:
            return line_low, line_high
        steep, flat = i * (m - 1) * self.slope, i * (m - 1) / self.slope
        rest = (n - 1 - i) * (m - 1)
        lower = np.maximum(flat, (n - 1) * (m - 1) - rest * self.slope) / (n - 1)
        upper = np.minimum(steep, (n - 1) * (m - 1) - rest / self.slope) / (n - 1)
        low, high = np.ceil(lower).astype(np.int64), np.floor(upper).astype(np.int64) + 1
        # Correct rounding errors of the division at the ends of the band.
        low += ~self._contains(i, low, n, m)
        low -= self._contains(i, low - 1, n, m)
        high -= ~self._contains(i, high - 1, n, m)
        high += self._contains(i, high, n, m)
        has_cells = low < high
        low = np.where(has_cells, np.minimum(low, line_low), line_low)
        return low, np.where(has_cells, np.maximum(high, line_high), line_high)

    def _contains(self, i: Array, j: Array, n: int, m: int) -> Array:
        """Whether the cells (i, j) are in the parallelogram."""
        p, q = i * (m - 1), j * (n - 1)
        end = (n - 1) * (m - 1)
        from_start = (p <= self.slope * q) & (q <= self.slope * p)
        return from_start & (end - p <= self.slope * (end - q)) & (end - q <= self.slope * (end - p))


@stored("window.Mask")
@dataclass(frozen=True, eq=False)
class Mask:
    """A boolean array (n, m) of allowed cells, for one pair of series."""

    cells: Array

    def band(self, n: int, m: int) -> Band:
        if self.cells.shape != (n, m):
            raise ParameterError(
                f"window must have the shape ({n}, {m}) of the cost matrix; its shape is {self.cells.shape}"
            )
        if not self.cells.any(axis=1).all():
            raise ParameterError("window allows no cell for one time point of x, so there is no path: allow one")
        low, high = self.cells.argmax(axis=1), m - self.cells[:, ::-1].argmax(axis=1)
        if (self.cells.sum(axis=1) != high - low).any():
            raise ParameterError("the allowed cells of window must be contiguous in every row")
        # Paths never go back, so cells before the start of an earlier row, or after the end of a later one, are unused.
        low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1].copy()
        if low[0] > 0 or high[-1] < m or (low >= high).any() or (low[1:] > high[:-1]).any():
            raise ParameterError("window allows no path from the first to the last time points of the series")
        return low, high


def as_window(window: Any) -> Any:
    """Convert the argument `window` to an object with a method `band`."""
    if window is None:
        return NoWindow()
    if isinstance(window, NoWindow | SakoeChiba | Itakura | Mask):
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


def _crossed_cells(i: Array, n: int, m: int) -> Band:
    """The cells whose interior the line from corner to corner crosses."""
    if n == 1:
        return np.zeros(1, np.int64), np.full(1, m, np.int64)
    slack = n + m - 2
    low = (2 * i * (m - 1) - slack) // (2 * (n - 1)) + 1
    high = -((-2 * i * (m - 1) - slack) // (2 * (n - 1)))
    return np.maximum(low, 0), np.minimum(high, m)
