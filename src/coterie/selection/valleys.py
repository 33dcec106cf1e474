"""Valleys: whether the density between neighbouring clusters is lower than at their centers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.selection.text_table import aligned

BAND = 0.2  # half the width of a band, in units of the distance between two centers
NEIGHBOURS = 2  # each cluster is compared with this many of the nearest ones
THRESHOLD = 0.8  # largest ratio of densities that is a valley


@dataclass(frozen=True)
class Valleys:
    """Densities between clusters relative to those at their centers; smaller is better, 1 is no valley."""

    ks: Array  # (m,) numbers of clusters
    mean: Array  # (m,) ratio of the worst pair of neighbouring clusters, mean over the fits
    standard_error: Array  # (m,) of the mean
    best: int | None  # largest K with valleys between all clusters; None if there is none

    def table(self) -> list[dict[str, Any]]:
        """One row per number of clusters."""
        columns = zip(self.ks.tolist(), self.mean.tolist(), self.standard_error.tolist(), strict=True)
        return [{"k": k, "valleys": mean, "standard_error": e, "best": k == self.best} for k, mean, e in columns]

    def __str__(self) -> str:
        return aligned(self.table())


def valleys_of(ks: list[int], ratios: Array) -> Valleys:
    """Result from the ratios (m, fits) of the worst pairs."""
    mean, error = ratios.mean(axis=1), ratios.std(axis=1, ddof=1) / np.sqrt(ratios.shape[1])
    k_values = np.array(ks)
    apart = k_values[mean <= THRESHOLD]
    return Valleys(k_values, mean, error, int(apart.max()) if len(apart) else None)


def worst_ratio(X: Array, labels: Array, is_fitted: Array, w: Array | None) -> float:
    """Largest ratio of the density between two neighbouring clusters to the smaller of those at their centers.

    Centers are the means of the rows that were fitted. Densities are those of the other rows of both clusters, on the
    line through the centers: the direction between the centers was chosen by the fitted rows, so these would always be
    further apart. The ratio is 1 if there are no two clusters.
    """
    present = np.unique(labels[is_fitted])
    present = present[present >= 0]
    if len(present) < 2:
        return 1.0
    centers = np.stack([X[is_fitted & (labels == j)].mean(axis=0) for j in present])
    rest = ~is_fitted
    others, weights = X[rest], np.ones(int(rest.sum())) if w is None else w[rest] / w[rest].mean()
    members = [np.flatnonzero(labels[rest] == j) for j in present]
    return max(
        _ratio(others[rows], weights[rows], centers[i], centers[j])
        for i, j in _neighbours(centers)
        for rows in [np.concatenate([members[i], members[j]])]
    )


def _neighbours(centers: Array) -> list[tuple[int, int]]:
    squares = ((centers[:, None] - centers) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    nearest = squares.argsort(axis=1)[:, :NEIGHBOURS]
    return sorted({(min(i, j), max(i, j)) for i, row in enumerate(nearest.tolist()) for j in row if i != j})


def _ratio(X: Array, w: Array, first: Array, second: Array) -> float:
    """Weight of the rows near the middle, divided by the smaller of those near the centers; each plus one row."""
    line = second - first
    position = (X - first) @ line / (line @ line)
    between, near_first, near_second = (float(w[np.abs(position - at) <= BAND].sum()) for at in (0.5, 0.0, 1.0))
    return (between + 1) / (min(near_first, near_second) + 1)
