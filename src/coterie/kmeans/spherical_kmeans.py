"""K-means on directions: rows and centers of unit length, near where the angle between them is small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coterie.base import CENTERS_STORED, Summary
from coterie.core.errors import InputError, ParameterError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import Powers
from coterie.core.stored import stored
from coterie.kmeans.center_estimator import Centers
from coterie.kmeans.lloyd import KMeansStats, Lloyd
from coterie.seeding import forgy

BLOCK = 2048  # rows made of unit length at a time: their float64 copy stays in the cache


@dataclass(frozen=True)
class Spherical(Lloyd):
    r"""Minimises :math:`\sum_i w_i (1 - \max_k \langle x_i, c_k \rangle)` over centers of unit length [1]_.

    For rows of unit length :math:`1 - \langle x, c \rangle = \|x - c\|^2 / 2`, so that Lloyd's passes, starts and
    bounds serve as they are; only the M-step differs.

    .. [1] Dhillon & Modha (2001), Concept decompositions for large sparse text data using clustering, Mach. Learn. 42.
    """

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        centers = super().init(source, engine, rng)
        zero = ~centers.any(axis=1)
        if zero.any() and not isinstance(self.start, str):
            raise ParameterError("init has a center that is zero in every column: it points nowhere")
        if zero.any():  # the mean of random rows whose directions cancel: a random row takes its place
            centers[zero] = forgy(source, engine, rng, len(centers), self.unit)[zero]
        return unit_rows(centers)

    def m_step(self, centers: np.ndarray, stats: KMeansStats) -> np.ndarray:
        """The direction of the sum of the rows; where they cancel out every direction is as good: the old one stays."""
        sum_x = stats.sum_dx + stats.weight[:, None] * centers
        pointing = self._free((stats.weight > 0) & sum_x.any(axis=1))
        made = centers.copy()
        made[pointing] = unit_rows(sum_x[pointing])
        return made

    def objective(self, centers: np.ndarray, stats: KMeansStats) -> float:
        return super().objective(centers, stats) / 2

    def settled(self, before: np.ndarray, after: np.ndarray, *rest: Any) -> bool:
        """Steps within rounding are none: parallel rows of different lengths can differ in the last bit."""
        step = np.abs(after - before).max()
        return bool(step <= 4 * np.finfo(after.dtype).eps) or super().settled(before, after, *rest)

    def carry(self, before: np.ndarray, after: np.ndarray, stats: KMeansStats) -> KMeansStats:
        """A direction is no mean: the differences from it do not add up to nothing."""
        moved = stats.weight[:, None] * (before.astype(np.float64) - after)
        return KMeansStats(stats.weight, stats.sum_dx + moved, np.zeros_like(stats.cost), 0)

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        """Cosine distances, from 0 to 2."""
        return super().distances(centers, chunk) ** 2 / 2


@stored("SphericalKMeans", **CENTERS_STORED)
class SphericalKMeans(Centers):
    r"""Spherical K-means: `n_clusters` directions that are near to the directions of all rows.

    .. math:: J = \sum_i w_i \min_k (1 - \cos(x_i, \mu_k)), \qquad \lVert \mu_k \rVert = 1

    Rows join the center at the smallest angle, centers turn to the sum of their rows' directions, until nothing changes
    [1]_ [2]_. Lengths count for nothing: a long text is as near as a short one about the same things. It is K-means on
    rows of unit length whose centers keep to unit length, too.

    Do not use it where lengths or the origin mean something (`KMeans`), for rows that are centered around zero in few
    columns, where directions say little, or where opposite directions are alike.

    Parameters
    ----------
    n_clusters : int, default=8
        How many centers.
    init : {'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array (k, d) or callable
        Where they start, as in `KMeans`; of an array only the directions count, and a callable is given the rows at
        unit length.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' depends on `init` and `search` as in `KMedians`.
    search : {'auto', 'none', 'fast'}, default='auto'
        Search for a better optimum than initialisations find, by swaps of centers for rows, as in `KMedians`. 'none'
        runs the `n_init` initialisations alone.
    max_iter : int, default=300
        Iterations of one start at most.
    tol : float, default=1e-4
        A fit ends when the squared step of all centers is below `tol` times the mean variance of the columns, rows
        taken at unit length.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        Of unit length, in the type of the data.
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    inertia_ : float
        The objective at exactly `cluster_centers_`: the cosine distances of all rows to their centers, added up.
    history_, n_iter_, converged_, n_features_in_, feature_names_in_
        As in `KMeans`.

    Notes
    -----
    Cost, bounds, empty clusters and the same bits on any number of threads as in `KMeans`, whose passes these are, on a
    copy of the rows at unit length in their own type (of sparse rows the values alone; of a Dask array a block at a
    time). Sparse rows stay sparse. `transform` gives cosine distances. A row of zeros has no direction: it is refused.

    References
    ----------
    .. [1] I. S. Dhillon, D. S. Modha (2001), Concept decompositions for large sparse text data using clustering,
       Machine Learning 42, 143-175. https://doi.org/10.1023/A:1007612920971
    .. [2] K. Hornik, I. Feinerer, M. Kober, C. Buchta (2012), Spherical k-means clustering, Journal of Statistical
       Software 50(10). https://doi.org/10.18637/jss.v050.i10

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import SphericalKMeans
    >>> X = np.array([[1, 0], [9, 0], [0, 2], [0, 5]])
    >>> model = SphericalKMeans(n_clusters=2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist())
    [[0.0, 1.0], [1.0, 0.0]]
    >>> model.inertia_
    0.0
    >>> bool(model.predict([[100, 1]])[0] == model.labels_[0])
    True
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        search="auto",
        max_iter=300,
        tol=1e-4,
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.search = search
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint

    _distinct = "directions"
    _powers: ClassVar[dict[str, Powers]] = {
        "cluster_centers_": Powers(0, 0),
        "inertia_": Powers(0, 1),
        "history_": Powers(0, 1),
    }
    _powers_of_options: ClassVar[dict[str, int]] = {}
    _powers_of_answers: ClassVar[dict[str, int]] = {}
    _rescales = False  # every row is divided by its own length, and rows may be very long and very short

    def _model(self, summary: Summary | None = None) -> Spherical:
        if summary is None:
            return Spherical(len(self.cluster_centers_), bounds=False)
        tol = float(self.tol) * float(summary.variance.mean())
        return Spherical(self.n_clusters, self.init, summary.unit, tol)

    def _ready(self, source: Source, engine: Engine, first: bool) -> Source:
        zeros = int(engine.sum(_zero_rows, source))
        if zeros:
            raise InputError(
                f"{zeros} rows of X are zero in every column and have no direction: drop them, "
                "or use KMeans, which needs none"
            )
        return source.changed(unit_rows, engine)


def unit_rows(X: Any) -> Any:
    """The rows, none of them zero, at unit length; by way of their largest values where squares would not do."""
    if hasattr(X, "indptr"):
        wide, counts = X.data.astype(np.float64), np.diff(X.indptr)
        wide /= np.repeat(np.maximum.reduceat(np.abs(wide), X.indptr[:-1]), counts)
        wide /= np.repeat(np.sqrt(np.add.reduceat(wide * wide, X.indptr[:-1])), counts)
        return type(X)((wide.astype(X.dtype), X.indices, X.indptr), shape=X.shape)
    out = np.empty_like(X)
    for start in range(0, len(X), BLOCK):
        wide = X[start : start + BLOCK].astype(np.float64)
        squares = np.einsum("ij,ij->i", wide, wide)
        odd = ~((squares > 1e-280) & (squares < 1e280))
        if odd.any():
            wide[odd] /= np.abs(wide[odd]).max(axis=1, keepdims=True)
            squares[odd] = np.einsum("ij,ij->i", wide[odd], wide[odd])
        wide /= np.sqrt(squares)[:, None]
        out[start : start + BLOCK] = wide
    return out


def _zero_rows(chunk: Chunk) -> int:
    X = chunk.X
    if hasattr(X, "indptr"):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[X.data != 0]
        return X.shape[0] - int(np.count_nonzero(np.bincount(rows, minlength=X.shape[0])))
    return int(np.count_nonzero(~X.any(axis=1)))
