"""Random data without clusters, of the size and outline of other data: in a box, in its hull, or of a Gaussian."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arrays import Array

DIRECTIONS = 48  # pairs of parallel faces, in addition to those across the principal axes and the columns
SWEEPS = 5  # moves along each axis
MIN_VARIANCE = 1e-10  # of an axis, relative to the largest


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
    X = X.astype(np.float64)  # sums of float32 rows far from the origin lose their digits
    center = np.average(X, axis=0, weights=w)
    centered = X - center
    axes = np.linalg.eigh((centered.T if w is None else centered.T * w) @ centered)[1]
    coordinates = centered @ axes
    return Box(coordinates.min(axis=0), coordinates.max(axis=0), center, axes)


@dataclass(frozen=True)
class Hull:
    """Points between the outermost rows along many directions; the principal axes are scaled to unit variance."""

    mean: Array  # (d,)
    axes: Array  # (q, d) principal axes with their standard deviations as lengths
    directions: Array  # (m, q) normals of the faces
    low: Array  # (m,) along the directions
    high: Array  # (m,)

    def draw(self, n: int, dtype: np.dtype, rng: np.random.Generator) -> Array:
        """Sample n rows (n, d): all start at the mean and move to a random point along one axis after another."""
        normals = self.directions.T.astype(np.float32)  # (q, m)
        low, high = self.low.astype(np.float32), self.high.astype(np.float32)
        rows, along = np.zeros((len(normals), n), np.float32), np.zeros((len(low), n), np.float32)
        for axis in np.tile(np.arange(len(normals)), SWEEPS):
            slope = normals[axis]
            cut = np.flatnonzero(np.abs(slope) > np.finfo(np.float32).eps)
            nearer, farther = np.where(slope > 0, low, high)[cut, None], np.where(slope > 0, high, low)[cut, None]
            scaled, slopes = along[cut] / slope[cut, None], slope[cut, None]
            first, last = (nearer / slopes - scaled).max(axis=0), (farther / slopes - scaled).min(axis=0)
            step = first + rng.random(n, np.float32) * (last - first)
            rows[axis] += step
            along += slope[:, None] * step
        return (self.mean + rows.T @ self.axes).astype(dtype)


def hull_about(X: Array, w: Array | None, rng: np.random.Generator) -> Hull:
    """Approximate hull of the rows."""
    mean = np.average(X.astype(np.float64), axis=0, weights=w)
    centered = X - mean
    weight = np.ones(len(X)) if w is None else w
    variances, axes = np.linalg.eigh((centered.T * (weight / weight.sum())) @ centered)
    has_extent = variances > MIN_VARIANCE * variances[-1]
    lengths, axes = np.sqrt(variances[has_extent]), axes[:, has_extent]
    q = len(lengths)
    columns = axes * lengths  # as normals, in the scaled axes: many columns have bounds, such as 0
    directions = np.concatenate([np.eye(q), columns, rng.normal(size=(DIRECTIONS, q))])
    directions /= np.maximum(np.linalg.norm(directions, axis=1), 1e-300)[:, None]
    along = (centered @ axes / lengths) @ directions.T
    return Hull(mean, axes.T * lengths[:, None], directions, along.min(axis=0), along.max(axis=0))


def normal_rows(X: Array, w: Array | None, rng: np.random.Generator) -> Array:
    """Sample of the same size from one Gaussian with the mean and the covariance of X."""
    rows = X.astype(np.float64)
    mean = np.average(rows, axis=0, weights=w)
    centered = rows - mean
    covariance = (centered.T if w is None else centered.T * w) @ centered / (len(X) if w is None else w.sum())
    variances, axes = np.linalg.eigh(covariance)
    scale = axes * np.sqrt(np.maximum(variances, 0.0))
    sample: Array = (rng.standard_normal(X.shape) @ scale.T + mean).astype(X.dtype)
    return sample
