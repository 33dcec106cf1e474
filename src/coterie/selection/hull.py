"""Uniform rows in an approximate convex hull: data without clusters whose outline is that of other data."""

from dataclasses import dataclass

import numpy as np

from coterie.core.arrays import Array

DIRECTIONS = 48  # pairs of parallel faces, in addition to those across the principal axes and the columns
SWEEPS = 5  # moves along each axis
MIN_VARIANCE = 1e-10  # of an axis, relative to the largest


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
