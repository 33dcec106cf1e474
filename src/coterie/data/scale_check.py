"""Detection of rows whose squares, or weights whose sums, could overflow or underflow."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import Scale, times_power
from coterie.core.stats import Stats
from coterie.errors import ScaleError

SAFE = {4: 55, 8: 200}  # by itemsize: sums of squares of values from 2^-SAFE to 2^SAFE are in range
MAX_EXPONENT = 480  # sums of squares of values above 2^480 or below 2^-480 are out of the range of float64


@dataclass(frozen=True)
class Extent(Stats):
    """Largest absolute values."""

    rows: Any  # of rows with positive weight
    weight: Any

    def __add__(self, other: "Extent") -> "Extent":
        return Extent(max(self.rows, other.rows), max(self.weight, other.weight))


def may_be_unsafe(limit: int, pivot: Any, weight: Any, sum_xx: Any) -> bool:
    """Whether moments about a pivot could be those of rows or weights beyond 2^limit or 2^-limit.

    It is fast, and true for few other rows.
    """
    low, high = 2.0**-limit, 2.0**limit
    total = float(np.max(weight))
    if not low <= total <= high or not np.isfinite(sum_xx).all():
        return True
    squares = float(np.max(sum_xx, initial=0.0)) / total
    size = max(float(np.sqrt(squares)), float(np.max(np.abs(pivot), initial=0.0)))
    return not low <= size <= high


def unsafe_exponent(size: float, dtype: Any, limit: int | None = None) -> int:
    """Exponent of the power of two just above `size`; 0 if it is within the limit, by default `SAFE`."""
    exponent = int(np.frexp(size)[1]) if 0 < size < np.inf else 0
    return exponent if abs(exponent) > (SAFE[np.dtype(dtype).itemsize] if limit is None else limit) else 0


def measure_scale(source: Source, engine: Engine, limit: int) -> Scale:
    """The scale of rows and weights: 0 for each that is within the limit, and if rows are not finite."""
    extent = engine.sum(_extent, source)
    if not np.isfinite(extent.rows):
        return Scale(0, 0)
    return Scale(*(unsafe_exponent(value, source.dtype, limit) for value in (extent.rows, extent.weight)))


def _extent(chunk: Chunk) -> Extent:
    X = chunk.X
    if chunk.w is not None:
        has_weight = chunk.w > 0
        X = X if has_weight.all() else X[np.flatnonzero(has_weight)]
    values = X.data if sparse.issparse(X) else X
    with np.errstate(invalid="ignore"):
        magnitudes = np.abs(values[~np.isnan(values)])
    return Extent(float(magnitudes.max(initial=0.0)), 1.0 if chunk.w is None else float(chunk.w.max(initial=0.0)))


def check_weights(source: Any) -> None:
    """Raise `ScaleError` if sums of the weights of a source could overflow or underflow."""
    if source.w is not None and (exponent := unsafe_exponent(float(source.w.max()), np.float64)):
        raise ScaleError(weights=exponent)


def divide_by_scale(source: Any, scale: Scale, engine: Engine) -> Any:
    """The source with rows and weights divided by their scale."""
    if scale.rows:
        source = source.map_rows(partial(times_power, -scale.rows), engine)
    if scale.weights and source.w is not None:
        source = replace(source, w=times_power(-scale.weights, source.w))
    elif scale.weights and getattr(source, "weight", None) is not None:
        source = replace(source, weight_power=source.weight_power - scale.weights)
    return source
