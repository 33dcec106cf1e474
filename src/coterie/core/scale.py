"""Powers of two by which rows and weights are divided before a fit, and results are multiplied after it.

Multiplying by a power of two changes no digit. So rows of 1e-170, or weights of 1e200, whose squares leave the range of
floating-point numbers, are fitted as rows and weights of about 1.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie.errors import RangeWarning


class Scale(NamedTuple):
    """Exponents of the powers of two just above the largest value and the largest weight; 0 if no scaling is needed."""

    rows: int
    weights: int


UNIT = Scale(0, 0)  # of rows and weights in range


class Powers(NamedTuple):
    """A result is proportional to these powers of the scales of rows and of weights."""

    rows: float
    weights: float


LENGTHS = Powers(1, 0)  # centers, and distances
SQUARES = Powers(2, 1)  # weighted sums of squared distances


def times_power(exponent: int, values: Any) -> Any:
    """Values times 2^exponent, in their type; dense, sparse or a Dask array."""
    if sparse.issparse(values):
        return type(values)((np.ldexp(values.data, exponent), values.indices, values.indptr), shape=values.shape)
    return np.ldexp(values, exponent)


def multiplied(values: dict[str, Any], powers: dict[str, Powers], scale: Scale) -> dict[str, Any]:
    """Results of a fit of scaled rows and weights, converted to the original units.

    One warning names all results that overflow or underflow: they are infinite, or zero.
    """
    results, lost = dict(values), []
    for name, power in powers.items():
        exponent = int(power.rows * scale.rows + power.weights * scale.weights)
        if exponent and name in values:
            results[name] = _times_power(values[name], exponent)
            if _is_lost(values[name], results[name]):
                lost.append(name)
    _warn_of(lost, "the units of X and sample_weight", "All other results are exact")
    return results


def in_type(values: dict[str, np.ndarray], dtype: Any) -> dict[str, np.ndarray]:
    """Arrays of float64, converted to the dtype of the data.

    One warning names all arrays that overflow (any value is too large) or underflow (the largest value is too small).
    """
    with np.errstate(over="ignore", under="ignore"):
        converted = {name: value.astype(dtype) for name, value in values.items()}
    lost = [name for name, value in values.items() if _leaves_range(value, np.finfo(dtype))]
    _warn_of(lost, f"{np.dtype(dtype)}, the dtype of X", "Convert X to float64, or divide it by a power of two")
    return converted


def _warn_of(lost: list[str], units: str, remark: str) -> None:
    """Warn of results that have left the range of numbers."""
    if lost:
        warnings.warn(
            f"{', '.join(lost)} cannot be represented in {units}: too large values are inf, too small ones are 0 or "
            f"lose digits. {remark}",
            RangeWarning,
            stacklevel=5,
        )


def _leaves_range(values: np.ndarray, limits: Any) -> bool:
    """Whether any value is too large, or the largest is too small; small values next to large ones are rounding."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return largest > float(limits.max) or 0 < largest < float(limits.tiny)


def _times_power(value: Any, exponent: int) -> Any:
    """A number, an array, or a named tuple with `centers`, times 2^exponent."""
    if hasattr(value, "_replace"):
        return value._replace(centers=_times_power(value.centers, exponent))
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(value, exponent)) if isinstance(value, float) else times_power(exponent, value)


def _is_lost(before: Any, after: Any) -> bool:
    if not isinstance(after, float | np.ndarray):
        return False
    size = np.abs(after)
    limits, is_number = np.finfo(size.dtype), np.isfinite(before) & (np.asarray(before) != 0)
    return bool(np.any(is_number & ~((size >= limits.tiny) & (size <= limits.max))))


def is_numbers(value: Any) -> bool:
    """Whether an option holds numbers, and not the name of a method or a function."""
    return value is not None and not isinstance(value, str) and not callable(value)
