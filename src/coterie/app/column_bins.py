"""Numbers of a column, and their bins for histograms and filters."""

import numpy as np
import polars as pl

from coterie.core.arrays import Array
from coterie.web import inner_range

MISSING = 255  # code of a missing value


def numbers_of(column: pl.Series) -> Array:
    """(n,) the numbers of a column; NaN where they are missing or infinite."""
    values = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return np.where(np.isfinite(values), values, np.nan)


def number_bins(values: Array, n_bins: int) -> tuple[Array, Array]:
    """The bin of each value, and the bounds (n_bins + 1,) of the bins; without values, there are no bounds.

    Bins have equal width, but the first and the last one also take values beyond them, which their bounds include.
    """
    present = ~np.isnan(values)
    if not present.any():
        return np.full(len(values), MISSING, np.uint8), np.empty(0)
    known = values[present]
    low, high = inner_range(known)
    high = high if high > low else low + (abs(low) or 1.0)
    bounds = np.clip(np.linspace(low, high, n_bins + 1), known.min(), known.max())
    bounds[0], bounds[-1] = known.min(), known.max()
    codes = np.full(len(values), MISSING, np.uint8)
    codes[present] = np.clip((known - low) / (high - low) * n_bins, 0, n_bins - 1)
    return codes, bounds
