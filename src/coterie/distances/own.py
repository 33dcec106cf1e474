"""A user's own distance: one Python function of two rows, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.core.errors import InputError, ParameterError
from coterie.distances.distance import Array, Distance
from coterie.kernels import compile_pair


class Own(Distance):
    """A function of two rows, ``function(x, y) -> number``, compiled into the loop over all pairs.

    Inside it, write loops over the numbers, or NumPy functions; loops are faster, for they make no arrays on the way.
    """

    def __init__(
        self, function: Callable[..., Any], symmetric: bool = True, triangle: bool = False, definite: bool = False
    ):
        if not callable(function):
            raise ParameterError(f"metric must be a name, a Distance or a function of two rows; got {function!r}")
        self.function, self.name = function, getattr(function, "__name__", "own")  # type: ignore[misc]
        self.symmetric, self.triangle, self.definite = symmetric, triangle, definite

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernel, cannot = compile_pair(self.function)
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
