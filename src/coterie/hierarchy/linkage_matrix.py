"""The linkage matrix that `linkage` returns: an array in SciPy's format that notebooks show as a dendrogram."""

from typing import Any, Self

import numpy as np

from coterie.core.repr_html import html_of


class LinkageMatrix(np.ndarray):
    """An array (n - 1, 4) in SciPy's format. It behaves as any array; only notebooks show it in another way."""

    method: str  # of `linkage`

    @classmethod
    def of(cls, Z: Any, method: str) -> Self:
        """View the matrix `Z` as the result of `linkage` with `method`."""
        matrix = np.asarray(Z).view(cls)
        matrix.method = method
        return matrix

    def __array_finalize__(self, other: Any) -> None:
        self.method = getattr(other, "method", "")

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)  # results of arithmetic are plain arrays

    def is_tree(self) -> bool:
        """Whether this is a whole linkage matrix, and not a part of one."""
        return self.ndim == 2 and self.shape[1] == 4 and len(self) > 0 and self[-1, 3] == len(self) + 1

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def _repr_html_(self) -> str | None:
        return html_of(self)
