"""K-means with clusters of given sizes as EM: the cheapest division of all rows, then means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie import kernels, seeding
from coterie.core.errors import ParameterError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stored import stored
from coterie.kmeans.lloyd import NO_BOUNDS, Bounds, KMeansStats, Lloyd, alike
from coterie.kmeans.pairwise_constraints import Links

FAR = 1e306  # squares beyond add up to infinity
ALIKE = 1e-12  # of the objective: a smaller fall is rounding


@stored("checkpoint.Division", in_checkpoints=True, centers="real K D", prices="real K", labels="list *")
class Division(NamedTuple):
    """Centers, and all rows divided among them."""

    centers: np.ndarray  # (k, d)
    labels: list[np.ndarray]  # (n,) in the parts of the source
    prices: np.ndarray  # (k,) of a place in each cluster, which prove that no division is cheaper


@dataclass(frozen=True)
class Transport:
    r"""Minimises :math:`\sum_i w_i \|x_i - c_{z_i}\|^2` over centers and divisions :math:`z` that keep to the sizes.

    Which cluster a row gets depends on all other rows, so the division is a parameter like the centers: `init` and
    `repair`, who see all rows, find the cheapest one [1]_, and an E-step adds up what it is told.

    .. [1] Bradley, Bennett & Demiriz (2000), Constrained k-means clustering, Microsoft Research MSR-TR-2000-65.
    """

    n_clusters: int
    least: np.ndarray  # (k,) rows a cluster has at least
    most: np.ndarray  # (k,) and at most
    links: Links | None = None  # rows that belong together, and rows that do not
    start: Any = "k-means++"  # the name of a method, or centers
    unit: float = 1.0  # a power of two of the size of the data
    tol: float = 0.0  # the squared step of all centers that ends a fit

    converges = True

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Division:
        centers = seeding.start(self.start, source, engine, rng, self.n_clusters, self.unit)
        if isinstance(self.start, str) and not self._same_sizes():
            centers = centers[self._by_size(centers, source, engine)]
        return self._divided(centers, None, source, engine)

    def begin(self, source: Source) -> None:
        return None

    def e_step(self, params: Division, chunk: Chunk, memo: Bounds | None = None) -> tuple[KMeansStats, Bounds]:
        labels = params.labels[chunk.part]
        chunk, centers = alike(chunk, params.centers)
        (n, _), k = chunk.X.shape, len(centers)
        w = np.ones(n) if chunk.w is None else chunk.w
        weight = np.bincount(labels, w, k)
        cost = np.bincount(labels, w * kernels.for_centers(chunk.X, k).own_squares(chunk.X, centers, labels), k)
        own = sparse.csr_array((w, labels, np.arange(n + 1)), shape=(n, k)).T
        if sparse.issparse(chunk.X):
            sum_dx = (own @ chunk.X.astype(np.float64)).toarray() - weight[:, None] * centers
        else:
            sum_dx = own @ (chunk.X.astype(np.float64) - centers[labels])
        moved = n if memo is None else int(np.count_nonzero(labels != memo.labels))
        return KMeansStats(weight, sum_dx, cost, moved), Bounds(None, labels, NO_BOUNDS)

    def m_step(self, params: Division, stats: KMeansStats) -> Division:
        return params._replace(centers=self._means.m_step(params.centers, stats))

    def repair(
        self, params: Division, stats: KMeansStats, source: Source, engine: Engine, memos: list[Bounds]
    ) -> Division:
        """The cheapest division for the new centers; those of empty clusters start anew before."""
        centers = self._means.repair(params.centers, stats, source, engine, memos)
        return self._divided(centers, params, source, engine)

    def objective(self, params: Division, stats: KMeansStats) -> float:
        return float(stats.cost.sum())

    def settled(
        self, before: Division, after: Division, stats: KMeansStats, history: Sequence[float], stretch: float | None
    ) -> bool:
        """As for K-means; or when the objective stands still, where equally cheap divisions could go on in turns."""
        still = history[-1] >= (1.0 - ALIKE) * history[-2]
        return still or self._means.settled(before.centers, after.centers, stats, history, stretch)

    def assign(self, params: Division, chunk: Chunk, memo: Bounds | None = None) -> np.ndarray:
        return params.labels[chunk.part]

    def labels_at(self, params: Division, rows: np.ndarray) -> np.ndarray:
        """The clusters of some of all rows, which together decide on them."""
        return np.concatenate(params.labels)[rows]

    def halfway(self, before: Division, after: Division, chunk: Chunk) -> KMeansStats:
        """What rows cost that are divided as `before`, with the centers already at `after`."""
        return self.e_step(after._replace(labels=before.labels), chunk)[0]

    @property
    def _means(self) -> Lloyd:
        return Lloyd(self.n_clusters, tol=self.tol)

    def _same_sizes(self) -> bool:
        """Whether all clusters have the same sizes."""
        return bool((self.least == self.least[0]).all() and (self.most == self.most[0]).all())

    def _by_size(self, centers: np.ndarray, source: Source, engine: Engine) -> np.ndarray:
        """The centers in the order of the sizes: the one that is nearest to most rows gets the most places."""
        stats, _ = engine.scan(partial(Lloyd(self.n_clusters, bounds=False).e_step, centers), source, None)
        rank = np.argsort(np.argsort(self.least + self.most, kind="stable"))
        return np.argsort(stats.weight, kind="stable")[rank]

    def _divided(self, centers: np.ndarray, before: Division | None, source: Source, engine: Engine) -> Division:
        (n, _), k = source.shape, self.n_clusters
        costs = np.empty((n, k))
        w = engine.map(partial(_put_costs, centers, self.unit), source, in_parts(costs, source))
        if before is None and not costs.max() < FAR / self.unit**2:
            raise ParameterError(
                "init has a center so far from the rows that squares overflow: give one nearer to them"
            )
        labels = np.full(n, -1, np.int32) if before is None else np.concatenate(before.labels)
        prices = np.zeros(k) if before is None else before.prices.copy()
        self._divide(costs, None if w[0] is None else np.concatenate(w), prices, labels)
        return Division(centers, in_parts(labels, source), prices)

    def _divide(self, squares: np.ndarray, w: np.ndarray | None, prices: np.ndarray, labels: np.ndarray) -> None:
        """Labels and prices at the least cost; rows without weight take no place, and go to the nearest center."""
        counted = np.ones(len(labels), bool) if w is None else w > 0
        alone = ~counted if self.links is None else ~counted & (self.links.group < 0)
        labels[alone] = squares[alone].argmin(axis=1)
        if w is not None:
            squares *= (w / w.max())[:, None]
        if self.links is not None:
            self.links.divide(squares, counted, self.least, self.most, prices, labels)
            return
        rows = slice(None) if counted.all() else np.flatnonzero(counted)
        costs, own = squares[rows], labels[rows]
        kernels.select("transport", *costs.shape).transport(costs, self.least, self.most, prices, own)
        labels[rows] = own


def in_parts(values: np.ndarray, source: Source) -> list[np.ndarray]:
    """Values of all rows (n, ...), in the parts of the source."""
    return np.split(values, np.cumsum([len(part) for part in source.room(0, np.int8)])[:-1])


def _put_costs(centers: np.ndarray, unit: float, chunk: Chunk, squares: np.ndarray) -> np.ndarray | None:
    """Squared distances to all centers, in units and in float64 whatever the rows are; the weights."""
    chunk, centers = alike(chunk, centers.astype(np.float64))
    squares[:] = kernels.for_centers(chunk.X, len(centers)).distances(chunk.X, centers)
    squares /= unit
    with np.errstate(over="ignore"):
        squares *= squares
    return chunk.w
