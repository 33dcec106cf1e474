"""Reference data without clusters: uniform in a box around the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
REFERENCES = ("uniform", "pca")


@dataclass(frozen=True)
class Box:
    """Uniform distribution in a box, whose sides are along the columns or along the principal axes of the data."""

    low: Array  # (d,) along the sides
    high: Array  # (d,)
    center: Array | None = None  # (d,) origin of the axes; None if the sides are along the columns
    axes: Array | None = None  # (d, d) one axis per column

    def draw(self, n: int, dtype: Any, rng: np.random.Generator) -> Array:
        """Sample n rows (n, d) of this dtype."""
        rows = rng.random((n, len(self.low)), dtype=np.dtype(dtype).type)
        rows *= (self.high - self.low).astype(dtype)
        rows += self.low.astype(dtype)
        if self.axes is None:
            return rows
        rotated: Array = rows @ self.axes.T.astype(dtype)
        rotated += self.center.astype(dtype)  # type: ignore[union-attr]
        return rotated


def box_about(X: Array, w: Array | None, reference: str) -> Box:
    """Smallest box that contains the rows: along the columns ('uniform') or the principal axes ('pca')."""
    if reference == "uniform":
        return Box(X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64))
    center = np.average(X, axis=0, weights=w).astype(np.float64)
    centered = X.astype(np.float64) - center
    axes = np.linalg.eigh((centered.T if w is None else centered.T * w) @ centered)[1]
    coordinates = centered @ axes
    return Box(coordinates.min(axis=0), coordinates.max(axis=0), center, axes)
