"""A user's own distance: one Python function of two rows, compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.core.errors import InputError, ParameterError
from coterie.distances.distance import Array, Distance
from coterie.kernels import compile_pair


class Own(Distance):
    """A function of two rows, ``function(x, y, **params) -> number``, compiled into the loop over all pairs.

    Inside it, write loops over the numbers, or NumPy functions; loops are faster, because they create no arrays.
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
        self.arguments = _arguments(function, params) if params else ()
        self.function, self.name = function, getattr(function, "__name__", "own")  # type: ignore[misc]
        self.symmetric, self.triangle, self.definite = symmetric, triangle, definite

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernel, cannot = compile_pair(self.function, self.arguments)
        try:
            kernel(A, B, out)
        except cannot as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), "")
            raise ParameterError(
                f"metric: {self.name} cannot be compiled ({reason.strip()}). Write it with numbers, loops and NumPy "
                "functions alone, or compute the distances yourself and pass metric='precomputed'"
            ) from error
        if not (np.isfinite(out).all() and out.min(initial=0) >= 0):
            i, j = np.argwhere(~np.isfinite(out) | (out < 0))[0]
            raise InputError(f"metric: {self.name} gave {out[i, j]} for two rows; distances are finite, from 0 up")


def _arguments(function: Callable[..., Any], params: dict[str, Any]) -> tuple[Any, ...]:
    """Parameters of a function in the order in which it takes them, after the two rows."""
    plain = getattr(function, "py_func", function)  # of a function that Numba has compiled
    try:
        bound = inspect.signature(plain).bind(None, None, **params)
    except TypeError as error:
        raise ParameterError(f"metric: the function does not take these parameters ({error})") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise ParameterError(f"metric: compiled functions take no keyword-only parameters: {', '.join(bound.kwargs)}")
    return tuple(tuple(value) if isinstance(value, list) else value for value in bound.args[2:])
