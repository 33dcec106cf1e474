"""User-defined distances: a Python function of two rows, compiled."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.distances.distance import Distance
from coterie.errors import InputError, ParameterError
from coterie.kernels import compile_pair


class UserDistance(Distance):
    """A function of two rows, ``function(x, y, **params) -> float``, compiled into the loop over all pairs.

    The function can use loops over the values, or NumPy functions; loops are faster, because they create no arrays.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        symmetric: bool = True,
        triangle: bool = False,
        definite: bool = False,
        params: dict[str, Any] | None = None,
    ):
        if not callable(function):
            raise ParameterError(f"metric must be a name, a Distance or a function of two rows; got {function!r}")
        self.arguments = _arguments(function, params or {})
        self.function, self.name = function, getattr(function, "__name__", "function")  # type: ignore[misc]
        self.symmetric, self.triangle, self.definite = symmetric, triangle, definite

    def between(self, A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
        kernel, compile_errors = compile_pair(self.function, self.arguments)
        try:
            kernel(A, B, out)
        except compile_errors as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), "")
            raise ParameterError(
                f"metric: {self.name} cannot be compiled ({reason.strip()}). Use only numbers, loops and NumPy "
                "functions, or compute the distances yourself and pass metric='precomputed'"
            ) from error
        if not (np.isfinite(out).all() and out.min(initial=0) >= 0):
            i, j = np.argwhere(~np.isfinite(out) | (out < 0))[0]
            raise InputError(f"metric: {self.name} returned {out[i, j]} for two rows; it must be finite and >= 0")


def _arguments(function: Callable[..., Any], params: dict[str, Any]) -> tuple[Any, ...]:
    """The parameters of a function after the two rows, in the order of its signature."""
    python_function = getattr(function, "py_func", function)  # of a function that Numba has compiled
    try:
        bound = inspect.signature(python_function).bind(None, None, **params)
    except TypeError as error:
        raise ParameterError(
            f"metric: {', '.join(params) or 'two rows'} cannot be passed to the function ({error}): "
            "pass its parameters after the two rows by keyword"
        ) from None
    if not params:
        return ()
    bound.apply_defaults()
    if bound.kwargs:
        raise ParameterError(
            f"metric: compiled functions take no keyword-only parameters; got {', '.join(bound.kwargs)}"
        )
    return tuple(tuple(value) if isinstance(value, list) else value for value in bound.args[2:])
