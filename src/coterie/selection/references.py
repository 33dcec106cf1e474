"""Rows without clusters, to hold data against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
REFERENCES = ("uniform", "pca")


@dataclass(frozen=True)
class Box:
    """Rows that lie evenly in a box about the data, whose sides are the columns, or the principal axes."""

    low: Array  # (d,) along the sides
    high: Array  # (d,)
    center: Array | None = None  # (d,) of the axes; None: sides are columns
    axes: Array | None = None  # (d, d) an axis a column

    def draw(self, n: int, dtype: Any, rng: np.random.Generator) -> Array:
        """So many rows (n, d), in that type."""
        rows = rng.random((n, len(self.low)), dtype=np.dtype(dtype).type)
        rows *= (self.high - self.low).astype(dtype)
        rows += self.low.astype(dtype)
        if self.axes is None:
            return rows
        made: Array = rows @ self.axes.T.astype(dtype)
        made += self.center.astype(dtype)  # type: ignore[union-attr]
        return made


def box_about(X: Array, w: Array | None, reference: str) -> Box:
    """The smallest box that holds the rows: along the columns ('uniform'), or along principal axes ('pca')."""
    if reference == "uniform":
        return Box(X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64))
    center = np.average(X, axis=0, weights=w).astype(np.float64)
    moved = X.astype(np.float64) - center
    axes = np.linalg.eigh((moved.T if w is None else moved.T * w) @ moved)[1]
    along = moved @ axes
    return Box(along.min(axis=0), along.max(axis=0), center, axes)
