"""Validate single options, and convert `random_state` to a NumPy `Generator`."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.errors import ParameterError


def as_floats(value: Any) -> np.ndarray[Any, Any]:
    """Convert `value` to an array of float64; raise TypeError or ValueError if that is not possible.

    Complex numbers raise a TypeError; NumPy would drop their imaginary part with a warning.
    """
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise TypeError("complex numbers are not supported")
    return np.asarray(array, dtype=np.float64)


def as_rng(random_state: Any) -> np.random.Generator:
    """Convert `random_state` (None, int, RandomState or Generator) to a NumPy `Generator`."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ParameterError(
            f"random_state must be None, an integer >= 0, a RandomState or a Generator; got {random_state!r}"
        ) from None


def whole_number(name: str, value: Any, least: int) -> int:
    """`value` if it is a whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}; got {value!r}")
    return int(value)


def not_negative(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
        raise ParameterError(f"{name} must be a finite number of at least 0; got {value!r}")
    return float(value)


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        remark = "" if len(choices) > 1 else ", the only choice at present"
        raise ParameterError(f"{name} must be {' or '.join(map(repr, choices))}{remark}; got {value!r}")
    return value
