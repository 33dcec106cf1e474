"""Spherical K-means: clustering by direction, with rows and centers of unit length."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from coterie import kernels
from coterie.base import CENTERS_STORED, Summary, powers_of_fit
from coterie.core.arrays import is_sparse
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import Powers
from coterie.core.stored import stored
from coterie.errors import InputError, ParameterError
from coterie.kmeans.center_estimator import CenterEstimator
from coterie.kmeans.center_model import KMeansStats
from coterie.kmeans.lloyd import Lloyd
from coterie.seeding import forgy

BLOCK = 2048  # rows that are normalised at a time, so that their float64 copy stays in the cache


@dataclass(frozen=True)
class Spherical(Lloyd):
    r"""Minimises :math:`\sum_i w_i (1 - \max_k \langle x_i, c_k \rangle)` over centers of unit length.

    For rows of unit length, :math:`1 - \langle x, c \rangle = \|x - c\|^2 / 2`. Passes, initialisations and bounds are
    therefore those of `Lloyd`; only the M-step differs. `SphericalKMeans` cites the papers.
    """

    center_kind = "directions"

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        centers = super().init(source, engine, rng)
        is_zero = ~centers.any(axis=1)
        if is_zero.any() and not isinstance(self.start, str):
            raise ParameterError(
                "init has a center that is zero in every column and has no direction: use nonzero centers"
            )
        if is_zero.any():  # mean of random rows whose directions cancel: use a random row instead
            centers[is_zero] = forgy(source, engine, rng, len(centers), self.unit)[is_zero]
        return unit_rows(centers)

    def m_step(self, centers: np.ndarray, stats: KMeansStats) -> np.ndarray:
        """Direction of the sum of the rows. If it is zero, every direction is equally good, and the center stays."""
        sum_x = stats.sum_dx + stats.weight[:, None] * centers
        has_direction = self._free((stats.weight > 0) & sum_x.any(axis=1))
        new_centers = centers.copy()
        new_centers[has_direction] = unit_rows(sum_x[has_direction])
        return new_centers

    def objective(self, centers: np.ndarray, stats: KMeansStats) -> float:
        return super().objective(centers, stats) / 2

    def has_converged(self, before: np.ndarray, after: np.ndarray, *rest: Any) -> bool:
        """Ignore movements within rounding: parallel rows of different lengths can differ in the last bit."""
        step = np.abs(after - before).max()
        return bool(step <= 4 * np.finfo(after.dtype).eps) or super().has_converged(before, after, *rest)

    def carry(self, before: np.ndarray, after: np.ndarray, stats: KMeansStats) -> KMeansStats:
        """Statistics after the M-step. A direction is not a mean: differences from it do not add up to zero."""
        shift = stats.weight[:, None] * (before.astype(np.float64) - after)
        return KMeansStats(stats.weight, stats.sum_dx + shift, np.zeros_like(stats.cost), 0)

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        """Cosine distances, from 0 to 2."""
        return super().distances(centers, chunk) ** 2 / 2


@stored(**CENTERS_STORED)
@dataclass(eq=False, repr=False, kw_only=True)
class SphericalKMeans(CenterEstimator):
    r"""Spherical K-means: find `n_clusters` directions that minimise the cosine distances of the rows to them.

    .. math:: J = \sum_i w_i \min_k (1 - \cos(x_i, \mu_k)), \qquad \lVert \mu_k \rVert = 1

    Each iteration assigns rows to the center at the smallest angle, then moves each center to the direction of the sum
    of its normalised rows [1]_ [2]_. It stops when nothing changes. It is K-means on rows of unit length with centers
    of unit length.

    Use it for text and other data in which only the proportions of the columns matter: the lengths of the rows have no
    effect. Use `KMeans` if lengths or the origin are meaningful. It is not suitable for rows that are centered at zero
    in few columns, or if opposite directions are equivalent.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of centers.
    init : {'auto', 'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array or callable
        Initialisation method, or the initial centers, as in `KMeans`. Default: 'auto'. Only the directions of an
        array matter. A callable receives rows of unit length.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. As in `KMeans`.
    search : {'auto', 'none', 'thorough'}, default='auto'
        Search for a better optimum than one initialisation finds, by many starts and by swapping centers for rows, as
        in `KMedians`. 'none' only runs the `n_init` initialisations.
    max_iter : int, default=300
        Maximum number of iterations of one run.
    tol : float, default=1e-4
        Relative tolerance. Iterations stop when the squared movement of all centers falls below `tol` times the mean
        variance of the columns, for rows of unit length.
    device, engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        Centers of unit length, in the dtype of the data.
    labels_ : array (n,) of int32
        Cluster of each row. `predict` returns the same labels for the same rows.
    inertia_ : float
        Objective at exactly `cluster_centers_`: the sum of the weighted cosine distances of the rows to their centers.
    history_, n_iter_, converged_, n_features_in_, feature_names_in_
        As in `KMeans`.

    Notes
    -----
    Cost, bounds, empty clusters and results for any number of threads are as in `KMeans`. The passes run on a copy of
    the rows at unit length in the same dtype. For sparse rows only the values are copied; a Dask array is copied block
    by block. Sparse rows stay sparse. `transform` returns cosine distances. A row of zeros has no direction and raises
    an error.

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

    search: str = "auto"
    device: str = "auto"

    _remedy = "X has too few distinct directions for more"
    _powers: ClassVar[dict[str, Powers]] = powers_of_fit("inertia_", Powers(0, 1), centers=Powers(0, 0))
    _powers_of_options: ClassVar[dict[str, int]] = {}
    _powers_of_outputs: ClassVar[dict[str, int]] = {}
    _rescales = False  # every row is divided by its own length, so any scale is safe

    def _model(self, summary: Summary | None = None) -> Spherical:
        if summary is None:
            return Spherical(len(self.cluster_centers_), bounds=False)
        return Spherical(self.n_clusters, self.init, summary.unit, summary.tolerance(self.tol), n_total=summary.rows)

    def _fit_model(self, source: Source, summary: Summary) -> Spherical:
        model = super()._fit_model(source, summary)
        return replace(model, bounds=False) if source.engine == "cuda" else model

    def _prepare_rows(self, source: Source, engine: Engine, first: bool) -> Source:
        zeros = int(engine.sum(_zero_rows, source))
        if zeros:
            raise InputError(
                f"{zeros} rows of X are zero in every column and have no direction: remove them, or use KMeans"
            )
        return source.map_rows(unit_rows, engine)


def unit_rows(X: Any) -> Any:
    """Nonzero rows at unit length. Rows whose squares could overflow are first divided by a power of two."""
    if kernels.is_on_device(X):
        return kernels.for_centers(X, 1).unit_rows(X)
    if is_sparse(X):
        wide, counts = X.data.astype(np.float64), np.diff(X.indptr)
        exponent = np.frexp(np.maximum.reduceat(np.abs(wide), X.indptr[:-1]))[1]
        wide = np.ldexp(wide, -np.repeat(exponent, counts))
        wide /= np.repeat(np.sqrt(np.add.reduceat(wide * wide, X.indptr[:-1])), counts)
        return type(X)((wide.astype(X.dtype), X.indices, X.indptr), shape=X.shape)
    out = np.empty_like(X)
    for start in range(0, len(X), BLOCK):
        wide = X[start : start + BLOCK].astype(np.float64)
        squares = np.einsum("ij,ij->i", wide, wide)
        is_extreme = ~((squares > 1e-280) & (squares < 1e280))
        if is_extreme.any():
            extreme = wide[is_extreme]
            extreme = np.ldexp(extreme, -np.frexp(np.abs(extreme).max(axis=1, keepdims=True))[1])
            wide[is_extreme], squares[is_extreme] = extreme, np.einsum("ij,ij->i", extreme, extreme)
        wide /= np.sqrt(squares)[:, None]
        out[start : start + BLOCK] = wide
    return out


def _zero_rows(chunk: Chunk) -> int:
    X = chunk.X
    if is_sparse(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[X.data != 0]
        return X.shape[0] - int(np.count_nonzero(np.bincount(rows, minlength=X.shape[0])))
    return int(np.count_nonzero(~X.any(axis=1)))
