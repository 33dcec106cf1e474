"""Hamming and Jaccard distance: they depend only on which columns match."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.distances.distance import Distance
from coterie.distances.euclidean import as_column_weights


@stored("distance.Hamming")
@dataclass(frozen=True)
class Hamming(Distance):
    """Hamming distance: the share of columns in which two rows differ, weighted by `w` if given."""

    w: Any = None

    name = "hamming"

    def between(self, A: Array, B: Array, out: Array) -> None:
        w = as_column_weights(self.w, A.shape[1])
        kernels.select("pairwise", A, B).mismatches(A, B, w / w.sum(), out)


@stored("distance.Jaccard")
@dataclass(frozen=True)
class Jaccard(Distance):
    r"""Jaccard distance :math:`1 - |x \cap y| / |x \cup y|`; a row is the set of its columns that are not 0 [1]_.

    The weights `w` of the columns are 1 by default. The distance of two empty sets is 0.

    .. [1] Jaccard (1901), Étude comparative de la distribution florale, Bull. Soc. Vaud. Sci. Nat. 37.
    """

    w: Any = None

    name = "jaccard"
    definite = False  # all values other than 0 are equivalent

    def prepare(self, X: Array) -> Array:
        return np.ascontiguousarray(X != 0, dtype=X.dtype)

    def between(self, A: Array, B: Array, out: Array) -> None:
        w = as_column_weights(self.w, A.shape[1]).astype(A.dtype)
        intersection = (A * w) @ B.T
        union = (A @ w)[:, None] + B @ w - intersection
        out[:] = np.where(union > 0, (union - intersection) / np.where(union > 0, union, 1), 0)
