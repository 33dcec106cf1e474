"""K-means of series under dynamic time warping: the estimator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coterie.base import Partitional, Summary, callbacks
from coterie.core.arguments import not_negative, one_of, whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.distances.series import as_series, from_table
from coterie.distances.soft_dtw import as_gamma
from coterie.distances.windows import Mask, SakoeChiba, as_window
from coterie.kmeans.dtw_lloyd import Warped
from coterie.kmeans.kmeans import check_enough_rows
from coterie.kmeans.lloyd import warn_of_empty_clusters
from coterie.seeding import starts
from coterie.traces import Traced

METRICS = ("dtw", "softdtw", "euclidean")
STARTS = ("k-means++", "forgy", "random")
PARTS = 16  # into which the series are cut, at most: threads share them
PART_ROWS = 32  # series of a part, at least


def _is_consistent(model: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether every center is a series with as many channels as the rows had."""
    return all(_is_center(center, model["_channels"]) for center in model["cluster_centers_"])


def _is_center(center: Any, channels: int) -> bool:
    if not isinstance(center, np.ndarray) or center.dtype.kind != "f" or center.size == 0:
        return False
    return (center.ndim == 1 and channels == 1) or (center.ndim == 2 and center.shape[1] == channels)


@stored(
    "TimeSeriesKMeans",
    check=_is_consistent,
    cluster_centers_="float K * | float K * * | list K",
    _channels="positive",
    labels_="index<K *",
)
class TimeSeriesKMeans(Traced, Partitional):
    r"""K-means of series: `n_clusters` average series that are near to all series by dynamic time warping.

    .. math:: J = \sum_i w_i \min_k \mathrm{dtw}(x_i, \mu_k)^2

    Series join the nearest center; every center becomes, moment by moment, the mean of all that meets it on the best
    paths (DBA [1]_); in turn, until nothing changes. It is EM over additive sums, so that J never rises; the answer is
    a local optimum. With ``metric="softdtw"`` J is the sum of `soft_dtw`, and moments meet by their share in all paths
    [2]_: that does not raise J either.

    Do not use it where the moment at which something happens tells clusters apart: warping undoes it
    (``metric="euclidean"``, or a narrow `window`). Nor on series of different levels or scales, unless these are meant:
    standardise each first.

    Parameters
    ----------
    n_clusters : int, default=8
        How many centers.
    metric : {'dtw', 'softdtw', 'euclidean'}, default='dtw'
        'euclidean' does not warp, and needs series of one length.
    window : None, int, float or Itakura, default=None
        Which moments may meet, as in `coterie.distances.dtw`. A narrow one (0.1) is faster and often better.
    gamma : float, default=1.0
        How soft 'softdtw' is, in the unit of squared values.
    init : {'k-means++', 'forgy', 'random'}, or series
        Where the centers start: at series that are far from each other (by DTW), at series drawn at random, or as
        given, in a form that `fit` takes. A center is as long as the series it starts from.
    n_init : int or 'auto', default='auto'
        Starts, of which the best is kept; 'auto' is 10 for the random ones and 1 for the others.
    max_iter : int, default=100
        Iterations of one start at most.
    tol : float, default=1e-4
        A fit ends when the squared step of all centers is below `tol` times the mean variance of the moments, or when J
        falls no more.
    max_iter_barycenter : int, default=5
        Steps of averaging between two assignments, at most; each costs a k-th of one.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, length), or (k, length, channels); a list of such series if their lengths differ
        In the type of the data.
    labels_ : array (n,) of int32
        Always what `predict` says of the same series.
    inertia_ : float
        J at exactly `cluster_centers_`.
    history_ : array (iterations + 1,)
        J at the start and after every iteration of the best start.
    n_iter_ : int
        Iterations of the best start.
    converged_ : bool
        Whether it ended by itself.
    n_features_in_, feature_names_in_
        Of a table: its columns, which a table to predict must have, too. Series in a list may be longer or shorter.

    Notes
    -----
    An iteration costs at most n k tables of `dtw`, n more for each step of averaging. Lower bounds (Kim's, Keogh's)
    leave out centers that cannot be nearest, and tables end early that cannot win: labels are those of measuring
    everything. 'softdtw' has no such bounds, and its tables take fifty times as long. All is computed in float64.
    `transform` gives distances, of 'softdtw' its values. Centers without series start anew at the series that cost
    most. Dask arrays have a series a row.

    References
    ----------
    .. [1] F. Petitjean, A. Ketterlin & P. Gançarski (2011), A global averaging method for dynamic time warping, Pattern
       Recognition 44, 678-693. https://doi.org/10.1016/j.patcog.2010.09.013
    .. [2] M. Cuturi & M. Blondel (2017), Soft-DTW: a differentiable loss function for time-series, ICML.

    Examples
    --------
    >>> from coterie import TimeSeriesKMeans
    >>> early, late, flat = [0, 3, 0, 0, 0], [0, 0, 0, 3, 0, 0, 0], [1, 1, 1, 1]
    >>> model = TimeSeriesKMeans(n_clusters=2, random_state=0).fit([early, late, flat])
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2])
    True
    >>> model.inertia_
    0.0
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        metric="dtw",
        window=None,
        gamma=1.0,
        init="k-means++",
        n_init="auto",
        max_iter=100,
        tol=1e-4,
        max_iter_barycenter=5,
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.window = window
        self.gamma = gamma
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_iter_barycenter = max_iter_barycenter
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint

    _sparse = False
    _holes = True  # NaN after the end of a series

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the average series of `X`.

        Parameters
        ----------
        X : list of series, array (n, length) or (n, length, channels), frame, LazyFrame, path of a file, or Dask array
            Series of any lengths, (length,) or (length, channels) in a list; in an array shorter ones end in NaN.
        y : ignored
        sample_weight : array (n,), optional
            How much each series counts; a series of weight two is that series twice.
        """
        n_init, max_iter, watch = self._check_options()
        table, channels = as_table(X)
        source, engine, summary = super()._open(table, sample_weight, first=True)
        self._check_lengths(source, summary, source.shape[1])
        check_enough_rows(self.n_clusters, summary)
        model = replace(self._model(summary), channels=channels, start=self._start(source, channels))
        found, labels = self._descend(model, source, engine, n_init, max_iter, watch)
        vars(self).pop("n_features_in_", None)
        if table is X:
            self._learn_columns(X, source)
        self.cluster_centers_ = shaped(found.params, channels, deep=channels > 1 or getattr(X, "ndim", 2) == 3)
        self.labels_, self.inertia_ = labels, found.objective
        self.history_, self.n_iter_ = np.array(found.history), len(found.history) - 1
        self.converged_ = found.converged
        self._channels, self._n_features_out = channels, self.n_clusters
        warn_of_empty_clusters(found.stats, "X has too few distinct series for more")
        return self

    @property
    def _params(self) -> np.ndarray:
        return as_series(self.cluster_centers_).table()

    def _model(self, summary: Summary | None = None) -> Warped:
        window = SakoeChiba(0) if self.metric == "euclidean" else as_window(self.window)
        gamma = float(self.gamma) if self.metric == "softdtw" else None
        if summary is None:
            return Warped(len(self.cluster_centers_), channels=self._channels, window=window, gamma=gamma)
        tol = float(self.tol) * float(summary.variance.mean())
        steps = self.max_iter_barycenter
        return Warped(self.n_clusters, self.init, summary.unit, tol, window=window, gamma=gamma, steps=steps)

    def _open(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        table, channels = as_table(X)
        if channels != self._channels:
            raise InputError(f"X has {channels} channels, but TimeSeriesKMeans was fitted with {self._channels}")
        source, engine, summary = super()._open(table, sample_weight, first, y)
        self._check_lengths(source, summary, self._params.shape[1])
        return source, engine, summary

    def _ready(self, source: Source, engine: Engine, first: bool) -> Source:
        """Series in parts small enough for threads to share: each takes long."""
        gap = engine.sum(_first_gap, source).at
        if gap < np.inf:
            raise InputError(
                f"X[{int(gap)}] contains NaN before its end: fill it in, or drop that series "
                "(only the end of a series may be NaN: padding)"
            )
        if not hasattr(source, "chunk_rows"):
            return source
        return replace(source, chunk_rows=max(PART_ROWS, -(-source.shape[0] // PARTS)))

    @staticmethod
    def _check_columns(X: Any, source: Source, estimator: Any, reset: bool) -> None:
        """A table must have the columns of that of `fit`; series in other forms may be longer or shorter."""
        if not isinstance(X, Listed) and (reset or hasattr(estimator, "n_features_in_")):
            try:
                Partitional._check_columns(X, source, estimator, reset)
            except ValueError as error:
                raise InputError(f"{error}. Series of other lengths go into a list: list(X)") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # but after the end of a series
        return tags

    def _check_lengths(self, source: Source, summary: Summary, longest: int) -> None:
        if self.metric == "euclidean" and (summary.gaps or source.shape[1] != longest):
            raise InputError("metric='euclidean' needs series of one length: use metric='dtw', or cut them to one")

    def _check_options(self) -> tuple[int, int, Any]:
        whole_number("n_clusters", self.n_clusters, 1)
        whole_number("max_iter_barycenter", self.max_iter_barycenter, 1)
        one_of("metric", self.metric, METRICS)
        not_negative("tol", self.tol)
        as_gamma(self.gamma)
        if isinstance(as_window(self.window), Mask):
            raise ParameterError("window: a table of cells is for one pair of series, in dtw or dtw_path")
        watch = callbacks(self.callback, self.verbose)
        return starts(self.init, self.n_init, if_random=10), whole_number("max_iter", self.max_iter, 1), watch

    def _start(self, source: Source, channels: int) -> Any:
        if isinstance(self.init, str):
            return one_of("init", self.init, STARTS)
        if callable(self.init):
            raise ParameterError(f"init must be one of {', '.join(map(repr, STARTS))}, or series; got {self.init!r}")
        given = as_series(self.init, "init")
        if len(given) != self.n_clusters or given.channels != channels:
            raise ParameterError(
                f"init must be n_clusters={self.n_clusters} series of {channels} channels; "
                f"it is {len(given)} of {given.channels}"
            )
        table = given.table()
        if self.metric == "euclidean" and (table.shape[1] != source.shape[1] or np.isnan(table).any()):
            raise ParameterError("init must be series of the length of those in X for metric='euclidean'")
        wider = max(source.shape[1], table.shape[1])
        return np.pad(table, ((0, 0), (0, wider - table.shape[1])), constant_values=np.nan)


@dataclass(frozen=True)
class FirstGap(Stats):
    """Where the first series is that has NaN before its end, or nothing else."""

    rows: Any
    at: Any  # its number; infinite where there is none

    def __add__(self, other: FirstGap) -> FirstGap:
        return FirstGap(self.rows + other.rows, min(self.at, self.rows + other.at))


def _first_gap(chunk: Chunk) -> FirstGap:
    gone = np.isnan(chunk.X)
    bad = (gone[:, :-1] & ~gone[:, 1:]).any(axis=1) | gone.all(axis=1)
    return FirstGap(len(bad), int(np.argmax(bad)) if bad.any() else np.inf)


class Listed(np.ndarray):
    """A table made of series that came in another form: how wide it is means nothing."""


def as_table(X: Any) -> tuple[Any, int]:
    """Series as rows of a table, and their channels; what is a table is left to `as_source`."""
    listed = isinstance(X, list | tuple) and len(X) > 0 and all(map(_is_series, X))
    if listed or (isinstance(X, np.ndarray) and (X.ndim == 3 or (X.dtype == object and X.ndim == 1))):
        series = as_series(X)
        return series.table().view(Listed), series.channels
    return X, 1


def _is_series(x: Any) -> bool:
    return isinstance(x, list | tuple) or getattr(x, "ndim", 0) > 0


def shaped(table: np.ndarray, channels: int, deep: bool) -> Any:
    """Centers as a user wants them: an array if all are equally long, else a list."""
    series = from_table(np.ascontiguousarray(table), channels)
    centers = [np.array(series(i) if deep else series(i)[:, 0]) for i in range(len(series))]
    return np.stack(centers) if len({len(center) for center in centers}) == 1 else centers
