"""Validate single options, and convert `random_state` to a NumPy `Generator`."""

import operator
from collections.abc import Callable
from functools import wraps
from inspect import signature
from os import PathLike
from typing import Any, ParamSpec, TypeVar

import numpy as np

from coterie.core.protocols import is_estimator
from coterie.errors import ParameterError

P = ParamSpec("P")
R = TypeVar("R")


def in_order(call: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a public function: arguments in another order raise an error that shows `call`, the order to write."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        kinds = signature(function).parameters.values()
        names = [parameter.name for parameter in kinds if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > len(names):
                raise TypeError(f"{function.__name__} got {len(args)} positional arguments: write {call}")
            values: dict[str, Any] = {**dict(zip(names, args, strict=False)), **kwargs}
            clusters = values.get("model", values.get("labels"))
            are_labels = _n_axes(values.get("X")) == 1 and _n_axes(clusters) == 2
            wrong = {
                "X": is_estimator(values.get("X")) or are_labels,
                "estimator": "estimator" in names[:1] and not is_estimator(values.get("estimator")),
                "ks": _is_not_ks(values.get("ks")),
            }
            for name in wrong:
                if name in values and wrong[name]:
                    raise ParameterError(
                        f"{function.__name__} got {type(values[name]).__name__} as {name}: write {call}"
                    )
            return function(*args, **kwargs)

        return checked

    return decorate


def _is_not_ks(ks: Any) -> bool:
    """Whether `ks` is an estimator, a table or the path of one, instead of numbers of clusters."""
    if is_estimator(ks):
        return True
    if isinstance(ks, str | PathLike):
        return ks != "auto"
    return len(getattr(ks, "shape", ())) > 1 or (isinstance(ks, list | tuple) and any(np.ndim(k) for k in ks))


def _n_axes(value: Any) -> int:
    """The number of axes of an array, frame, series or list, whose rows may differ in length; 0 for other values."""
    if isinstance(value, list | tuple):
        return 1 + (len(value) > 0 and _n_axes(value[0]))
    return len(getattr(value, "shape", ()))


def as_floats(value: Any) -> np.ndarray[Any, Any]:
    """`value` as an array of float64; TypeError or ValueError if that is impossible, also for complex numbers."""
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise TypeError("complex numbers are not supported")
    return np.asarray(array, dtype=np.float64)


def as_numbers(name: str, value: Any, expected: str) -> np.ndarray[Any, Any]:
    """An option as an array of float64; `ParameterError` if that is impossible: "`name` must be `expected`"."""
    try:
        return as_floats(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be {expected}; got {value!r}") from None


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
    if not is_integer(value) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}; got {value!r}")
    return int(value)


def is_integer(value: Any) -> bool:
    """Whether `value` is an integer of Python, NumPy or another library, and not a boolean."""
    try:
        operator.index(value)  # arrays have the attribute `__index__`, too
    except TypeError:
        return False
    return not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether `value` is a number, and not a boolean."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def not_negative(name: str, value: Any) -> float:
    if not is_number(value) or not 0 <= value < np.inf:
        raise ParameterError(f"{name} must be a finite number of at least 0; got {value!r}")
    return float(value)


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """`value` if it is one of the choices; booleans of NumPy become those of Python."""
    value = bool(value) if isinstance(value, np.bool_) else value
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        remark = "" if len(choices) > 1 else ", the only choice at present"
        raise ParameterError(f"{name} must be {' or '.join(map(repr, choices))}{remark}; got {value!r}")
    return value
