"""Density valleys: clusters between which and their neighbours there are fewer rows than at their centers."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.repr_html import ReprHTMLMixin
from coterie.core.scale import times_power
from coterie.selection.text_table import aligned, as_rows

BAND = 0.2  # half the width of a band, in units of the distance between two centers
NEIGHBOURS = 2  # each cluster is compared with this many of the nearest ones
THRESHOLD = 0.8  # largest ratio of densities that is a valley
MIN_SHARE = 0.6  # minimum share of the clusters that are separate: fewer can be separate by chance
PRIOR_ROWS = 4.0  # added to the rows of each band: a few rows alone are no evidence


@dataclass(frozen=True, repr=False)
class Valleys(ReprHTMLMixin):
    """Number of clusters that are separated from their neighbours by lower densities, for every K."""

    ks: Array  # (m,) numbers of clusters
    apart: Array  # (m,) number of separate clusters, mean over the fits; one cluster is always separate
    standard_error: Array  # (m,) of the mean
    best: int | None  # K with the most separate clusters, of those where most are; None if there is none

    @property
    def is_possible(self) -> Array:
        """Whether most of the clusters are separate (m,)."""
        possible: Array = self.apart >= MIN_SHARE * self.ks
        return possible

    def table(self) -> list[dict[str, Any]]:
        """One row per number of clusters."""
        columns = {"k": self.ks, "apart": self.apart, "standard_error": self.standard_error}
        return as_rows(columns | {"best": self.ks == self.best})

    def __str__(self) -> str:
        return aligned(self.table())


def valleys_of(ks: list[int], n_apart: Array) -> Valleys:
    """Result from the number of separate clusters of each fit (m, fits)."""
    mean, error = n_apart.mean(axis=1), n_apart.std(axis=1, ddof=1) / np.sqrt(n_apart.shape[1])
    result = Valleys(np.array(ks), mean, error, None)
    if not result.is_possible.any():
        return result
    return replace(result, best=int(result.ks[np.where(result.is_possible, mean, 0.0).argmax()]))


def count_apart(X: Array, labels: Array, is_fitted: Array, w: Array | None) -> int:
    """Number of clusters with a valley to each of their neighbours."""
    return int((density_ratios(X, labels, is_fitted, w) < THRESHOLD).sum())


def density_ratios(X: Array, labels: Array, is_fitted: Array, w: Array | None) -> Array:
    """For each cluster, the largest ratio of the density between it and a neighbour to the smaller one at a center.

    Centers are the means of the rows that were fitted. Densities are those of the other rows of both clusters, on the
    line through the centers: the direction between the centers was chosen by the fitted rows, so these would always be
    further apart. The ratio is 1 if there is only one cluster, and between clusters with the same center.
    """
    X = X.astype(np.float64)  # means of float32 rows far from the origin can be equal
    X = times_power(-int(np.frexp(np.abs(X).max(initial=0.0))[1]), X)  # so that no square overflows or underflows
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(int(labels.max(initial=-1)) + 2))
    clusters = [order[start:stop] for start, stop in pairwise(starts.tolist())]
    clusters = [rows for rows in clusters if is_fitted[rows].any()]
    ratios = np.zeros(len(clusters))
    if len(clusters) < 2:
        return np.ones(len(clusters))
    centers = np.stack([X[rows[is_fitted[rows]]].mean(axis=0) for rows in clusters])
    others = [rows[~is_fitted[rows]] for rows in clusters]
    unit = 1.0 if w is None else float(w.mean())
    for i, j in _neighbours(centers):
        rows = np.concatenate([others[i], others[j]])
        ratio = _ratio(X[rows], None if w is None else w[rows] / unit, centers[i], centers[j])
        ratios[[i, j]] = np.maximum(ratios[[i, j]], ratio)
    return ratios


def _neighbours(centers: Array) -> list[tuple[int, int]]:
    squares = ((centers[:, None] - centers) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    nearest = squares.argsort(axis=1)[:, :NEIGHBOURS]
    return sorted({(min(i, j), max(i, j)) for i, row in enumerate(nearest.tolist()) for j in row if i != j})


def _ratio(X: Array, w: Array | None, first: Array, second: Array) -> float:
    """Weight of the rows near the middle, divided by the smaller of those near the centers."""
    line = second - first
    if not line.any():
        return 1.0
    position = (X - first) @ line / (line @ line)
    bands = [np.abs(position - at) <= BAND for at in (0.5, 0.0, 1.0)]
    between, near_first, near_second = (float(band.sum() if w is None else w[band].sum()) for band in bands)
    return (between + PRIOR_ROWS) / (min(near_first, near_second) + PRIOR_ROWS)
