"""Distances that the user brings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.errors import InputError
from coterie.data import opened
from coterie.distances.distance import Array

BLOCK = 512  # rows and columns compared with their mirror image at a time
TOLERANCE = {4: 1e-5, 8: 1e-8}  # by itemsize: what rounding may make d(i, j) and d(j, i) differ by, of the largest


def as_square(D: Any, name: str = "X") -> Array:
    """`D` if it is the distances of some rows among themselves: square, symmetric, finite, from 0 up, 0 to oneself."""
    D = _numbers(D, name)
    n = len(D)
    if D.ndim != 2 or D.shape != (n, n):
        raise InputError(
            f"metric='precomputed' needs a square {name}, a row and a column for each object; its shape is {D.shape}"
        )
    check_values(D, name)
    rounding = TOLERANCE[D.itemsize] * float(D.max())
    i = int(np.diagonal(D).argmax())
    if D[i, i] > rounding:
        raise InputError(
            f"{name}[{i}, {i}] is {D[i, i]:g}: the distance of an object to itself must be 0. Are these similarities?"
        )
    apart, i, j = _asymmetry(D)
    if apart > rounding:
        raise InputError(
            f"{name} is not symmetric: {name}[{i}, {j}] is {D[i, j]:g} and {name}[{j}, {i}] is {D[j, i]:g}. "
            f"Pass ({name} + {name}.T) / 2 if both mean the same distance"
        )
    return D


def put_symmetric(D: Array, out: Array) -> None:
    """What is above the diagonal, and its mirror image below it: a matrix without the differences of rounding."""
    for a, b in _block_pairs(len(D)):
        block = D[a, b]
        if a == b:
            block = np.triu(block, 1)
            block = block + block.T
        out[a, b], out[b, a] = block, block.T


def as_cross(D: Any, columns: int, name: str = "X") -> Array:
    """`D` if it is the distances of new objects (rows) to the `columns` objects of a fit."""
    D = _numbers(D, name)
    if D.ndim != 2 or D.shape[1] != columns:
        raise InputError(
            f"metric='precomputed' needs the distances of new objects to the {columns} objects of the fit, a column "
            f"for each of them; {name} has shape {D.shape}"
        )
    check_values(D, name)
    return D


def _numbers(D: Any, name: str) -> Array:
    try:
        D = np.asarray(opened(D))
        return np.ascontiguousarray(D, dtype=np.float32 if D.dtype == np.float32 else np.float64)
    except (TypeError, ValueError):
        raise InputError(f"metric='precomputed' needs {name} to be numbers") from None


def check_values(D: Array, name: str) -> None:
    """Refuses distances that are no numbers, infinite or negative, and says where."""
    if D.size == 0:
        raise InputError(f"{name} is empty, of shape {D.shape}")
    strips = [(D[start : start + BLOCK],) for start in range(0, len(D), BLOCK)]
    if all(machine.in_threads(_sound, strips, None)):
        return
    for what, bad in (("not finite", ~np.isfinite(D)), ("negative", D < 0)):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise InputError(
                f"{name} holds {int(bad.sum())} distances that are {what}, the first at [{i}, {j}]: {D[i, j]}"
            )


def _sound(strip: Array) -> bool:
    return bool(strip.min() >= 0 and strip.max() < np.inf)  # NaN is neither


def _asymmetry(D: Array) -> tuple[float, int, int]:
    """The largest difference between a distance and its mirror image, and where it is."""
    return max(machine.in_threads(partial(_apart, D), _block_pairs(len(D)), None), key=itemgetter(0))


def _apart(D: Array, a: slice, b: slice) -> tuple[float, int, int]:
    one, other = D[a, b], D[b, a].T
    if np.array_equal(one, other):
        return 0.0, 0, 0
    apart = np.abs(one - other)
    i, j = np.unravel_index(int(apart.argmax()), apart.shape)
    return float(apart[i, j]), a.start + int(i), b.start + int(j)


def _block_pairs(n: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows, and of columns from theirs on."""
    cuts = [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    return ((a, b) for i, a in enumerate(cuts) for b in cuts[i:])
