"""Distances from powers of differences: Manhattan, Chebyshev, and all between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.errors import ParameterError
from coterie.core.stored import stored
from coterie.distances.distance import Array, Distance
from coterie.distances.euclidean import as_column_weights, weighted


@stored("distance.Manhattan")
@dataclass(frozen=True)
class Manhattan(Distance):
    r""":math:`\sum_j w_j |x_j - y_j|`, the weights 1 unless given as `w`."""

    w: Any = None

    name = "manhattan"
    by_differences = True

    def prepare(self, X: Array) -> Array:
        return weighted(X, self.w, 1.0)

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernels.select("pairwise", A, B).differences(A, B, 2, 1.0, out)


@stored("distance.Chebyshev")
@dataclass(frozen=True)
class Chebyshev(Distance):
    r""":math:`\max_j |x_j - y_j|` over the columns whose weight `w`, if given, is not 0."""

    w: Any = None

    name = "chebyshev"
    by_differences = True

    def prepare(self, X: Array) -> Array:
        return X if self.w is None else np.ascontiguousarray(X[:, as_column_weights(self.w, X.shape[1]) > 0])

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernels.select("pairwise", A, B).differences(A, B, 3, 1.0, out)


@stored("distance.Minkowski")
@dataclass(frozen=True)
class Minkowski(Distance):
    r""":math:`\bigl(\sum_j w_j |x_j - y_j|^p\bigr)^{1/p}` for `p` from 1 up; 1 is Manhattan, 2 Euclidean."""

    p: float = 2.0
    w: Any = None

    name = "minkowski"
    by_differences = True

    def __post_init__(self) -> None:
        number = isinstance(self.p, int | float | np.number) and not isinstance(self.p, bool)
        if not number or not self.p >= 1:
            raise ParameterError(f"p must be a number of at least 1, or a detour can be shorter; got {self.p!r}")

    def prepare(self, X: Array) -> Array:
        return Chebyshev(self.w).prepare(X) if self.p == np.inf else weighted(X, self.w, 1 / self.p)

    def between(self, A: Array, B: Array, out: Array) -> None:
        kinds = {1.0: 2, 2.0: 1, np.inf: 3}
        if self.p in kinds:
            kernels.select("pairwise", A, B).differences(A, B, kinds[float(self.p)], 1.0, out)
        else:
            kernels.select("pairwise", A, B).minkowski(A, B, float(self.p), out)
