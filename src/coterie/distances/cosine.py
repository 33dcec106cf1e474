"""Angles between rows, and between rows less their means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.core.errors import InputError
from coterie.core.stored import stored
from coterie.distances.distance import Array
from coterie.distances.euclidean import Euclidean, as_column_weights


@stored("distance.Cosine")
@dataclass(frozen=True)
class Cosine(Euclidean):
    r""":math:`1 - \cos(x, y)`, from 0 to 2: half the squared distance of the rows at unit length.

    So computed it is exact for nearly parallel rows, where 1 less a product of rows would be rounding alone. No metric:
    angles are, their cosines not.
    """

    name = "cosine"
    triangle = False
    definite = False  # rows of different lengths may point the same way
    root = False
    factor = 0.5

    def fitted(self, X: Array, Y: Any = None) -> Self:
        return self  # the length of a row does not matter

    def prepare(self, X: Array) -> Array:
        return unit_rows(super().prepare(of_unit_size(X)), "is zero in every column: it points nowhere")


@stored("distance.Correlation")
@dataclass(frozen=True)
class Correlation(Cosine):
    """1 less Pearson's correlation of two rows: their cosine distance once each is less its mean."""

    name = "correlation"

    def prepare(self, X: Array) -> Array:
        X = of_unit_size(X)
        centered = X.astype(np.float64)
        centered -= centered.mean(axis=1, keepdims=True) if self.w is None else (centered @ self._share(X))[:, None]
        flat = np.abs(centered).max(axis=1) <= 8 * np.finfo(X.dtype).eps * np.abs(X).max(axis=1)
        centered[flat] = 0
        rows = Euclidean.prepare(self, centered)
        return unit_rows(rows, "is the same in every column: it has no correlation").astype(X.dtype)

    def _share(self, X: Array) -> Array:
        w = as_column_weights(self.w, X.shape[1])
        share: Array = w / w.sum()
        return share


def of_unit_size(X: Array) -> Array:
    """Each row times a power of two, so that its largest value is about 1: its length does not matter."""
    return np.ldexp(X, -np.frexp(np.abs(X).max(axis=1, keepdims=True))[1])


def unit_rows(X: Array, complaint: str) -> Array:
    size = np.abs(X).max(axis=1, keepdims=True)
    zero = np.flatnonzero(size == 0)
    if len(zero):
        raise InputError(f"row {zero[0]} {complaint}; drop such rows ({len(zero)}) or choose another metric")
    rows = X.astype(np.float64) / size
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows, dtype=X.dtype)
