"""Cosine distance and correlation distance."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.distances.euclidean import Euclidean, as_column_weights
from coterie.errors import InputError


@stored("distance.Cosine")
@dataclass(frozen=True)
class Cosine(Euclidean):
    r"""Cosine distance :math:`1 - \cos(x, y)`, from 0 to 2.

    It is computed as half the squared Euclidean distance of the rows, normalised to unit length. This is exact for
    nearly parallel rows, where 1 - x'y would consist of rounding errors. The triangle inequality does not hold.
    """

    name = "cosine"
    triangle = False
    definite = False  # rows of different lengths may have the same direction
    root = False
    factor = 0.5

    def fitted(self, X: Array, Y: Any = None) -> Self:
        return self  # no scale is needed, because rows are normalised

    def prepare(self, X: Array) -> Array:
        return unit_rows(super().prepare(of_unit_size(X)), "is zero in every column: it has no direction")


@stored("distance.Correlation")
@dataclass(frozen=True)
class Correlation(Cosine):
    """Correlation distance: 1 - Pearson's correlation of two rows, the cosine distance of the centered rows."""

    name = "correlation"

    def prepare(self, X: Array) -> Array:
        X = of_unit_size(X)
        centered = X.astype(np.float64)
        if self.w is None:
            centered -= centered.mean(axis=1, keepdims=True)
        else:
            w = as_column_weights(self.w, X.shape[1])
            centered -= (centered @ (w / w.sum()))[:, None]
        is_constant = np.abs(centered).max(axis=1) <= 8 * np.finfo(X.dtype).eps * np.abs(X).max(axis=1)
        centered[is_constant] = 0
        rows = Euclidean.prepare(self, centered)
        return unit_rows(rows, "is the same in every column: it has no correlation").astype(X.dtype)


def of_unit_size(X: Array) -> Array:
    """Each row times a power of two, so that its largest value is about 1 and squares stay in range."""
    return np.ldexp(X, -np.frexp(np.abs(X).max(axis=1, keepdims=True))[1])


def unit_rows(X: Array, problem: str) -> Array:
    """Rows divided by their length; `problem` describes rows of length 0 in the error."""
    size = np.abs(X).max(axis=1, keepdims=True)
    zero = np.flatnonzero(size == 0)
    if len(zero):
        raise InputError(f"row {zero[0]} {problem}; drop such rows (there are {len(zero)}), or use another metric")
    rows = X.astype(np.float64) / size
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows, dtype=X.dtype)
