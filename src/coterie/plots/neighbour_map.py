"""Neighbour-preserving map of rows by t-SNE, and how many neighbours a map keeps.

A map is drawn with `central_points` as the places of the clusters, because the mean of a cluster that t-SNE tears into
pieces may lie among other clusters.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.data.row_sample import sample_groups
from coterie.distances import pairwise
from coterie.errors import InputError

ROWS = 1_500  # rows on a map: a random sample if there are more
ROWS_PER_CLUSTER = 10  # minimum in the sample, if the cluster has as many
MIN_ROWS, MIN_ROWS_AUTO = 5, 30  # of a map on request, and of one that is chosen automatically
LITTLE = 0.6  # share of the variance on two principal axes below which a neighbour map is chosen automatically
NEIGHBOURS = 10  # neighbours whose preservation is measured
PERPLEXITY = 30.0  # about the number of neighbours that t-SNE keeps together
ITERATIONS = 500  # the first 250 are those of scikit-learn's early exaggeration
ROUNDING = 1e-9  # eigenvalues below this share of the largest squared distance are rounding errors
START = 1e-4  # standard deviation of the initial positions, as in scikit-learn


@dataclass(frozen=True)
class Trust:
    """How many neighbours on a map are neighbours in the data."""

    trustworthiness: float  # 1: all are; 0.5 is expected if rows are placed at random
    neighbours_kept: float  # share of the nearest rows on the map that are among the nearest in the data
    neighbours: int  # number of nearest rows that are compared

    @property
    def caption(self) -> str:
        """How far to trust a neighbour map, for the caption of a figure."""
        return (
            f"neighbour map (t-SNE): of the {self.neighbours} rows nearest to a row here, "
            f"{100 * self.neighbours_kept:.0f} % are among its {self.neighbours} nearest in the data (trustworthiness "
            f"{self.trustworthiness:.2f}); distances between groups mean nothing"
        )


@dataclass(frozen=True, eq=False)
class NeighbourMap:
    """Positions of rows on a map that keeps neighbours together."""

    points: Array  # (m, 2)
    trust: Trust


def is_worthwhile(share: float | None, n: int) -> bool:
    """Whether a map of n rows is chosen automatically: two principal axes show little of the variance."""
    return share is not None and share < LITTLE and n >= MIN_ROWS_AUTO


def sample_of_map(codes: Array, k: int, max_rows: int) -> Array:
    """Indices of the rows on a map: all, or a random sample with some rows of each of k clusters."""
    return sample_groups(codes, max_rows, min(ROWS_PER_CLUSTER, max_rows // (2 * k + 2)))


def neighbour_map(D: Array, sample_weight: Array | None = None, random_state: int = 0) -> NeighbourMap:
    """Place rows on a plane by t-SNE, near rows near each other.

    The result does not depend on the number of threads.

    Parameters
    ----------
    D : array (m, m)
        Distances of the rows.
    sample_weight : array (m,) or None, default=None
        Weights of the rows in the measures of trust.
    random_state : int, default=0
        Seed of the initial positions if the principal coordinates of the distances are degenerate.
    """
    m = len(D)
    if m < MIN_ROWS:
        raise InputError(
            f"the neighbour map needs at least {MIN_ROWS} rows; got {count(m)}: use map='axes', the principal axes"
        )
    from sklearn.manifold import TSNE

    D = np.asarray(D, dtype=np.float64)
    unit = float(D.mean())
    if not (np.isfinite(D).all() and unit > 0):
        raise InputError(
            "the neighbour map needs finite distances that are not all 0: use map='axes', the principal axes"
        )
    with threadpool_limits(limits=1):  # more threads are slower for so few rows, and add sums in any order
        start = _initial_positions(D / unit, random_state)
        tsne = TSNE(
            perplexity=min(PERPLEXITY, (m - 1) / 3), max_iter=ITERATIONS, metric="precomputed", n_jobs=1,
            init=(START * start).astype(np.float32), random_state=random_state,
        )  # fmt: skip
        points = tsne.fit_transform(D / unit).astype(np.float64)
    points -= points.mean(axis=0)
    points /= max(float(np.abs(points).max()), np.finfo(np.float64).tiny)
    return NeighbourMap(points, trust(D, points, sample_weight))


def trust(D: Array, points: Array, sample_weight: Array | None = None) -> Trust:
    """Compare the nearest rows by distances (m, m) with those on a map (m, 2).

    `trustworthiness` is that of scikit-learn, but rows count by their weights, and equal distances have equal ranks.
    """
    m = len(D)
    k = min(NEIGHBOURS, (m - 1) // 2)
    on_map = pairwise(points)
    np.fill_diagonal(on_map, np.inf)
    nearest = np.argsort(on_map, axis=1, kind="stable")[:, :k]
    others = np.where(np.eye(m, dtype=bool), np.inf, D)
    ranks = np.stack([1 + (others < others[np.arange(m), j][:, None]).sum(axis=1) for j in nearest.T], axis=1)
    excess = np.maximum(ranks - k, 0).sum(axis=1)
    mean_excess = float(np.average(excess, weights=sample_weight))
    kept = float(np.average((ranks <= k).mean(axis=1), weights=sample_weight))
    return Trust(1 - 2 * mean_excess / (k * (2 * m - 3 * k - 1)), kept, k)


def central_points(points: Array, codes: Array, k: int) -> Array:
    """The point (k, 2) of each cluster that is nearest to the median of its points; NaN for a cluster without any."""
    places = np.full((k, points.shape[1]), np.nan)
    for j in range(k):
        members = points[codes == j]
        if len(members):
            places[j] = members[np.square(members - np.median(members, axis=0)).sum(axis=1).argmin()]
    return places


def principal_coordinates(D: Array, random_state: int = 0) -> Array:
    """The first two principal coordinates (m, 2) of distances (m, m): classical multidimensional scaling.

    Coordinates with a negative eigenvalue, which other distances than Euclidean ones can have, are 0.
    """
    m = len(D)
    squares = -0.5 * np.square(D)
    squares -= squares.mean(axis=0)

    def centered(v: Any) -> Array:
        product = squares @ (v - v.mean(axis=0))
        return product - product.mean(axis=0)

    v0 = np.random.default_rng(random_state).normal(size=m)
    operator = LinearOperator((m, m), matvec=centered, dtype=np.float64)
    values, vectors = (each[..., ::-1] for each in eigsh(operator, k=2, which="LA", v0=v0))
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return signs * vectors * np.sqrt(np.where(values > ROUNDING * np.abs(squares).max(), values, 0.0))


def _initial_positions(D: Array, random_state: int) -> Array:
    """Principal coordinates of unit variance, or random ones where they are 0.

    Rounding makes them independent of the last bits of sums.
    """
    coordinates = principal_coordinates(D, random_state)
    deviation = coordinates.std(axis=0)
    random = np.random.default_rng(random_state).normal(size=coordinates.shape)
    return np.where(deviation > 0, np.round(coordinates / np.where(deviation > 0, deviation, 1.0), 4), random)
