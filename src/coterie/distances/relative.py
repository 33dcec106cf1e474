"""Canberra and Bray-Curtis distance: differences relative to the size of the values."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.distances.distance import Distance
from coterie.distances.euclidean import as_column_weights
from coterie.errors import InputError


@stored("distance.Canberra")
@dataclass(frozen=True)
class Canberra(Distance):
    r"""Canberra distance :math:`\sum_j w_j |x_j - y_j| / (|x_j| + |y_j|)`, where 0 / 0 = 0 [1]_.

    .. [1] Lance & Williams (1967), Mixed-data classificatory programs I, Aust. Comput. J. 1.
    """

    w: Any = None

    name = "canberra"

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernels.select("pairwise", A, B).canberra(A, B, as_column_weights(self.w, A.shape[1]), out)


@stored("distance.BrayCurtis")
@dataclass(frozen=True)
class BrayCurtis(Distance):
    r"""Bray-Curtis distance :math:`\sum_j w_j |x_j - y_j| / \sum_j w_j |x_j + y_j|`, for counts [1]_.

    The distance of two rows of zeros is 0. The triangle inequality does not hold. Values may be negative, but the
    distance of rows `x` and `-x` is not defined and raises an error.

    .. [1] Bray & Curtis (1957), An ordination of the upland forest communities of southern Wisconsin, Ecol. Monogr. 27.
    """

    w: Any = None

    name = "braycurtis"
    triangle = False
    definite = False  # it is definite only for values >= 0

    def prepare(self, X: Array) -> Array:
        rows = X if self.w is None else X * as_column_weights(self.w, X.shape[1]).astype(X.dtype)
        return np.ascontiguousarray(rows)

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernels.select("pairwise", A, B).braycurtis(A, B, out)
        if not np.isfinite(out).all():
            raise InputError(
                "metric='braycurtis' is not defined for two rows whose values add up to 0 in every column: "
                "use values >= 0, or another metric"
            )
