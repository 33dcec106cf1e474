"""Distances that the user brings."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.core.errors import InputError
from coterie.distances.distance import Array

BLOCK = 512  # rows and columns compared with their mirror image at a time


def as_square(D: Any, name: str = "X") -> Array:
    """`D` if it is the distances of some rows among themselves: square, symmetric, finite, from 0 up, 0 to oneself."""
    D = _numbers(D, name)
    n = len(D)
    if D.ndim != 2 or D.shape != (n, n):
        raise InputError(
            f"metric='precomputed' needs a square {name}, a row and a column for each object; its shape is {D.shape}"
        )
    _check_values(D, name)
    if np.diag(D).any():
        i = int(np.flatnonzero(np.diag(D))[0])
        raise InputError(f"{name}[{i}, {i}] is {D[i, i]:g}: the distance of an object to itself must be 0")
    worst, i, j = _asymmetry(D)
    if worst > 0:
        raise InputError(
            f"{name} is not symmetric: {name}[{i}, {j}] is {D[i, j]:g} and {name}[{j}, {i}] is {D[j, i]:g}. "
            f"Pass ({name} + {name}.T) / 2 if both mean the same distance"
        )
    return D


def as_cross(D: Any, columns: int, name: str = "X") -> Array:
    """`D` if it is the distances of new objects (rows) to the `columns` objects of a fit."""
    D = _numbers(D, name)
    if D.ndim != 2 or D.shape[1] != columns:
        raise InputError(
            f"metric='precomputed' needs the distances of new objects to the {columns} objects of the fit, a column "
            f"for each of them; {name} has shape {D.shape}"
        )
    _check_values(D, name)
    return D


def _numbers(D: Any, name: str) -> Array:
    try:
        D = np.asarray(D)
        return np.ascontiguousarray(D, dtype=np.float32 if D.dtype == np.float32 else np.float64)
    except (TypeError, ValueError):
        raise InputError(f"metric='precomputed' needs {name} to be numbers") from None


def _check_values(D: Array, name: str) -> None:
    if D.size == 0:
        raise InputError(f"{name} is empty, of shape {D.shape}")
    if D.min() >= 0 and D.max() < np.inf:  # NaN is neither
        return
    for what, bad in (("not finite", ~np.isfinite(D)), ("negative", D < 0)):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise InputError(
                f"{name} holds {int(bad.sum())} distances that are {what}, the first at [{i}, {j}]: {D[i, j]}"
            )


def _asymmetry(D: Array) -> tuple[float, int, int]:
    """The largest difference, beyond rounding, between a distance and its mirror image, and where it is."""
    worst = (0.0, 0, 0)
    slack = 1e-5 if D.dtype == np.float32 else 1e-10
    for a in range(0, len(D), BLOCK):
        for b in range(a, len(D), BLOCK):
            one, other = D[a : a + BLOCK, b : b + BLOCK], D[b : b + BLOCK, a : a + BLOCK].T
            if np.array_equal(one, other):
                continue
            apart = np.abs(one - other) - slack * np.maximum(one, other)
            if apart.max() > worst[0]:
                i, j = np.unravel_index(int(apart.argmax()), apart.shape)
                worst = float(apart.max()), a + int(i), b + int(j)
    return worst
