"""Validation of precomputed distances."""

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.data import opened
from coterie.errors import InputError

BLOCK = 512  # number of rows and columns that are compared with their transpose at a time
TOLERANCE = {4: 1e-5, 8: 1e-8}  # by itemsize: allowed difference of d(i, j) and d(j, i), relative to the maximum


def as_square(D: Any, name: str = "X") -> Array:
    """Check a distance matrix: it must be square, symmetric, finite and >= 0, with a zero diagonal."""
    D = _numbers(D, name)
    n = len(D)
    if D.ndim != 2 or D.shape != (n, n):
        raise InputError(
            f"metric='precomputed' needs a square {name}, with a row and a column per object; its shape is {D.shape}"
        )
    check_values(D, name)
    rounding = TOLERANCE[D.itemsize] * float(D.max())
    i = int(np.diagonal(D).argmax())
    if D[i, i] > rounding:
        raise InputError(
            f"{name}[{i}, {i}] is {D[i, i]:g}: the distance of an object to itself must be 0. Are these similarities?"
        )
    difference, i, j = largest_asymmetry(D)
    if difference > rounding:
        raise InputError(
            f"{name} is not symmetric: {name}[{i}, {j}] is {D[i, j]:g} and {name}[{j}, {i}] is {D[j, i]:g}. "
            f"Pass ({name} + {name}.T) / 2 if both mean the same distance"
        )
    return D


def largest_asymmetry(D: Array) -> tuple[float, int, int]:
    """The largest difference between an entry of a square matrix and its transpose, and its indices."""
    return max(machine.in_threads(partial(_block_asymmetry, D), _block_pairs(len(D)), None), key=itemgetter(0))


def put_symmetric(D: Array, out: Array) -> None:
    """Copy the upper triangle of `D` to both triangles of `out`, which makes it exactly symmetric."""
    for a, b in _block_pairs(len(D)):
        block = D[a, b]
        if a == b:
            block = np.triu(block, 1)
            block = block + block.T
        out[a, b], out[b, a] = block, block.T


def as_cross(D: Any, columns: int, name: str = "X") -> Array:
    """Check the distances of new objects (rows) to the objects of a fit, whose number is `columns`."""
    D = _numbers(D, name)
    if D.ndim != 2 or D.shape[1] != columns:
        raise InputError(
            f"metric='precomputed' needs the distances of new objects to the {columns} objects of the fit, one column "
            f"per object of the fit; {name} has shape {D.shape}"
        )
    check_values(D, name)
    return D


def _numbers(D: Any, name: str) -> Array:
    try:
        D = np.asarray(opened(D))
        return np.ascontiguousarray(D, dtype=np.float32 if D.dtype == np.float32 else np.float64)
    except (TypeError, ValueError):
        raise InputError(f"metric='precomputed' needs {name} to contain numbers only") from None


def check_values(D: Array, name: str) -> None:
    """Reject distances that are NaN, infinite or negative; the error states the first position."""
    if D.size == 0:
        raise InputError(f"{name} is empty: its shape is {D.shape}")
    strips = [(D[start : start + BLOCK],) for start in range(0, len(D), BLOCK)]
    if all(machine.in_threads(_is_valid, strips, None)):
        return
    for problem, mask in (("not finite", ~np.isfinite(D)), ("negative", D < 0)):
        if mask.any():
            i, j = np.argwhere(mask)[0]
            raise InputError(
                f"{name} has {int(mask.sum())} distances that are {problem}, the first at [{i}, {j}]: {D[i, j]}"
            )


def _is_valid(strip: Array) -> bool:
    return bool(strip.min() >= 0 and strip.max() < np.inf)  # both are false for NaN


def _block_asymmetry(D: Array, a: slice, b: slice) -> tuple[float, int, int]:
    """The largest difference between a block of D and its transpose, and its position."""
    block, transposed = D[a, b], D[b, a].T
    if np.array_equal(block, transposed):
        return 0.0, 0, 0
    difference = np.abs(block - transposed)
    i, j = np.unravel_index(int(difference.argmax()), difference.shape)
    return float(difference[i, j]), a.start + int(i), b.start + int(j)


def _block_pairs(n: int) -> Iterator[tuple[slice, slice]]:
    """Slices of the rows and columns of all blocks on and above the diagonal."""
    blocks = [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    return ((a, b) for i, a in enumerate(blocks) for b in blocks[i:])
