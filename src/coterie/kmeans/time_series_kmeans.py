"""K-means for time series with dynamic time warping."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from coterie.base import Partitional, Summary
from coterie.base.estimator import COLUMNS
from coterie.core.arguments import one_of, whole_number
from coterie.core.attachments import detach
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import SQUARES, Powers, Scale, multiplied, times_power
from coterie.core.stats import FirstRow
from coterie.core.stored import stored
from coterie.distances.series import as_series, from_table
from coterie.distances.soft_dtw import as_gamma, gamma_in_units
from coterie.distances.windows import Mask, SakoeChiba, as_window
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.kmeans.center_estimator import check_enough_rows, checked_options
from coterie.kmeans.dtw_lloyd import DTWLloyd
from coterie.kmeans.lloyd import warn_of_empty_clusters
from coterie.traces import Traced

METRICS = ("dtw", "softdtw", "euclidean")
INIT_METHODS = ("k-means++", "forgy", "random")
PARTS = 16  # maximum number of parts, which threads process
PART_ROWS = 32  # minimum number of series of a part
PART_CELLS = 1 << 16  # pairs of time points up to which a part takes no longer than starting a thread


def _is_consistent(model: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether every center is a series with as many channels as the series of the fit."""
    return all(_is_center(center, model["_channels"]) for center in model["cluster_centers_"])


def _is_center(center: Any, channels: int) -> bool:
    if not isinstance(center, np.ndarray) or center.dtype.kind != "f" or center.size == 0:
        return False
    return (center.ndim == 1 and channels == 1) or (center.ndim == 2 and center.shape[1] == channels)


@stored(
    check=_is_consistent,
    cluster_centers_="float K * | float K * * | list K",
    _channels="positive",
    labels_="index<K *",
)
@dataclass(eq=False, repr=False, kw_only=True)
class TimeSeriesKMeans(Traced, Partitional):
    r"""K-means for time series: find `n_clusters` average series by dynamic time warping (DTW).

    .. math:: J = \sum_i w_i \min_k \mathrm{dtw}(x_i, \mu_k)^2

    Each iteration assigns series to the nearest center. Then each time step of a center becomes the mean of all values
    that are aligned with it on the optimal warping paths (DTW barycenter averaging, DBA [1]_). It stops when nothing
    changes. J never increases. The result is a local optimum. With ``metric="softdtw"`` J is the sum of `soft_dtw`, and
    values are weighted by their share in all paths [2]_; this does not increase J either.

    Use it for series whose shapes are similar but shifted or stretched in time. If the time of an event separates the
    clusters, warping removes that difference: use ``metric="euclidean"`` or a narrow `window`. Standardise each series
    first, unless differences in level or scale are meaningful.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of centers.
    metric : {'dtw', 'softdtw', 'euclidean'}, default='dtw'
        Distance. 'euclidean' does not warp and needs series of equal length.
    window : None, int, float or Itakura, default=None
        Constraint on the warping path, as in `coterie.distances.dtw`. A narrow window (0.1) is faster and often better.
    gamma : float, default=1.0
        Smoothing parameter of 'softdtw', in the unit of squared values.
    init : {'k-means++', 'forgy', 'random'}, or series
        Initialisation method, or the initial centers. Default: 'k-means++'. 'k-means++' chooses series that are far
        from each other by DTW. 'forgy' and 'random' choose random series. Initial centers have a form that `fit`
        accepts. A center keeps the length of the series it starts from.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' is 10 for 'forgy' and 'random', and 1 for the others.
    max_iter : int, default=100
        Maximum number of iterations of one run.
    tol : float, default=1e-4
        Relative tolerance. Iterations stop when the squared movement of all centers falls below `tol` times the mean
        variance of the time steps, or when J no longer decreases.
    max_iter_barycenter : int, default=5
        Maximum number of averaging steps between two assignments. A step costs 1 / k of an assignment.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, length), or (k, length, channels); a list of such series if their lengths differ
        Centers, in the dtype of the data.
    labels_ : array (n,) of int32
        Cluster of each series. `predict` returns the same labels for the same series.
    inertia_ : float
        J at exactly `cluster_centers_`.
    history_ : array (n_iter + 1,)
        J of the best run, initially and after every iteration.
    n_iter_ : int
        Number of iterations of the best run.
    converged_ : bool
        True if the best run converged before `max_iter`.
    n_features_in_, feature_names_in_
        Columns of a table; a table passed to `predict` must have the same columns. Series in a list may have other
        lengths.

    Notes
    -----
    An iteration costs at most n k computations of `dtw`, and n more for each averaging step. Lower bounds (Kim's,
    Keogh's) and early abandoning skip centers that cannot be nearest; the labels are the same as without them.
    'softdtw' has no such bounds, and one computation takes fifty times as long. All computations are in float64.
    `transform` returns distances, for 'softdtw' its values. Empty clusters are moved to the series with the largest
    cost. Dask arrays contain one series per row.

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

    init: Any = "k-means++"
    metric: str = "dtw"
    window: Any = None
    gamma: float = 1.0
    max_iter: int = 100
    max_iter_barycenter: int = 5
    checkpoint: Any = None

    _sparse = False
    _allows_missing = True  # shorter series are padded with NaN
    _allows_empty_columns = True  # all series can be shorter than the table

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the average series of `X`.

        Parameters
        ----------
        X : list of series, array (n, length) or (n, length, channels), frame, LazyFrame, path of a file, or Dask array
            Series to cluster. In a list each series has shape (length,) or (length, channels), and lengths may differ.
            In an array shorter series are padded with NaN at the end.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the series. A series of weight two has the effect of that series twice.

        Returns
        -------
        self : TimeSeriesKMeans
            The fitted estimator.
        """
        n_init, max_iter, callback = self._check_options()
        table, channels = as_table(X)
        scale = Scale(0, 0)
        try:
            source, engine, summary = super()._open(table, sample_weight, first=True)
        except ScaleError as error:
            scale = Scale(error.rows, error.weights)
            source, engine, summary = super()._open(*self._divided(table, sample_weight, scale), first=True)
        self._check_lengths(source, summary, source.shape[1])
        check_enough_rows(self.n_clusters, summary)
        start = self._start(source, channels, scale.rows)
        model = replace(self._model(summary, scale.rows), channels=channels, start=start)
        result, labels = self._descend(model, source, engine, n_init, max_iter, callback)
        detach(self, *COLUMNS)
        if table is X:
            self._learn_columns(X, source)
        self.cluster_centers_ = centers_as_arrays(
            times_power(scale.rows, result.params), channels, with_channels=channels > 1 or getattr(X, "ndim", 2) == 3
        )
        objectives = {"inertia_": result.objective, "history_": np.array(result.history)}
        self.inertia_, self.history_ = multiplied(objectives, self._powers, scale).values()
        self.labels_, self.n_iter_, self.converged_ = labels, len(result.history) - 1, result.converged
        self._store_scale(scale)
        self._channels, self._n_features_out = channels, self.n_clusters
        warn_of_empty_clusters(result.stats, "X has too few distinct series for more")
        return self

    @property
    def _params(self) -> np.ndarray:
        return times_power(-self._scale.rows, as_series(self.cluster_centers_).table())

    def _model(self, summary: Summary | None = None, exponent: int | None = None) -> DTWLloyd:
        """The model of rows that were divided by 2^exponent; the default is that of the fit."""
        window = SakoeChiba(0) if self.metric == "euclidean" else as_window(self.window)
        exponent = self._scale.rows if exponent is None else exponent
        gamma = gamma_in_units(float(self.gamma), exponent) if self.metric == "softdtw" else None
        if summary is None:
            return DTWLloyd(len(self.cluster_centers_), channels=int(self._channels), window=window, gamma=gamma)
        tol, steps = summary.tolerance(self.tol), self.max_iter_barycenter
        return DTWLloyd(self.n_clusters, self.init, summary.unit, tol, window=window, gamma=gamma, steps=steps)

    # rows and weights out of range

    _powers: ClassVar[dict[str, Powers]] = {"inertia_": SQUARES, "history_": SQUARES}

    @property
    def _powers_of_outputs(self) -> dict[str, float]:  # type: ignore[override]
        return {"distances": 2 if self.metric == "softdtw" else 1}

    def _open(self, X: Any, sample_weight: Any, first: bool, y: Any = None) -> tuple[Source, Engine, Summary]:
        table, channels = as_table(X)
        if channels != self._channels:
            raise InputError(f"X has {channels} channels, but TimeSeriesKMeans was fitted with {self._channels}")
        source, engine, summary = super()._open(table, sample_weight, first, y)
        self._check_lengths(source, summary, self._params.shape[1])
        return source, engine, summary

    def _prepare_rows(self, source: Any, engine: Engine, first: bool) -> Any:
        """Source with parts small enough for threads, because each series takes long."""
        invalid = engine.sum(_first_invalid, source).index
        if invalid < np.inf:
            raise InputError(
                f"X[{int(invalid)}] contains NaN before its end, but NaN may only pad the end of a series: impute the "
                "missing values, or remove that series"
            )
        if not hasattr(source, "chunk_rows"):
            return source
        n, d = source.shape
        return replace(source, chunk_rows=max(PART_ROWS, PART_CELLS // d**2, -(-n // PARTS)))

    @staticmethod
    def _check_columns(X: Any, source: Source, estimator: Any, reset: bool) -> None:
        """A table must have the columns of the fit; series in other forms may have other lengths."""
        if not isinstance(X, PaddedSeries) and (reset or hasattr(estimator, "n_features_in_")):
            try:
                Partitional._check_columns(X, source, estimator, reset)
            except ValueError as error:
                raise InputError(f"{error}. Pass series of other lengths as a list: list(X)") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # NaN is only allowed as padding
        return tags

    def _check_lengths(self, source: Source, summary: Summary, longest: int) -> None:
        if self.metric == "euclidean" and (summary.n_missing or source.shape[1] != longest):
            raise InputError(
                "metric='euclidean' needs series of equal length: use metric='dtw', or cut the series to one length"
            )

    def _check_options(self) -> tuple[int, int, Any]:
        options = checked_options(self)
        whole_number("max_iter_barycenter", self.max_iter_barycenter, 1)
        one_of("metric", self.metric, METRICS)
        as_gamma(self.gamma)
        if isinstance(as_window(self.window), Mask):
            raise ParameterError(
                "window must not be a mask of cells, which is for one pair of series (dtw, dtw_path): use None, an "
                "int, a float or Itakura"
            )
        return options

    def _start(self, source: Source, channels: int, exponent: int) -> Any:
        if isinstance(self.init, str):
            return one_of("init", self.init, INIT_METHODS)
        if callable(self.init):
            raise ParameterError(
                f"init must be one of {', '.join(map(repr, INIT_METHODS))}, or series; got {self.init!r}"
            )
        centers = as_series(self.init, "init")
        if len(centers) != self.n_clusters or centers.channels != channels:
            raise ParameterError(
                f"init must be n_clusters={self.n_clusters} series of {channels} channels; "
                f"got {len(centers)} series of {centers.channels} channels"
            )
        table = centers.table()
        if self.metric == "euclidean" and (table.shape[1] != source.shape[1] or np.isnan(table).any()):
            raise ParameterError("init must be series of the same length as those in X for metric='euclidean'")
        width = max(source.shape[1], table.shape[1])
        table = np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=np.nan)
        return times_power(-exponent, table)


def _first_invalid(chunk: Chunk) -> FirstRow:
    """The first series with NaN before its end, or with NaN only."""
    is_nan = np.isnan(chunk.X)
    return FirstRow.of((is_nan[:, :-1] & ~is_nan[:, 1:]).any(axis=1) | is_nan.all(axis=1))


class PaddedSeries(np.ndarray):
    """Table made of series in another form: its number of columns has no meaning."""


def as_table(X: Any) -> tuple[Any, int]:
    """Series as rows of a table, and their number of channels. A table is returned unchanged."""
    listed = isinstance(X, list | tuple) and len(X) > 0
    listed = listed and all(isinstance(x, list | tuple) or getattr(x, "ndim", 0) > 0 for x in X)
    if listed or (isinstance(X, np.ndarray) and (X.ndim == 3 or (X.dtype == object and X.ndim == 1))):
        series = as_series(X)
        return series.table().view(PaddedSeries), series.channels
    return X, 1


def centers_as_arrays(table: np.ndarray, channels: int, with_channels: bool) -> Any:
    """Centers as an array if all have equal length, otherwise as a list."""
    series = from_table(np.ascontiguousarray(table), channels)
    centers = [np.array(series(i) if with_channels else series(i)[:, 0]) for i in range(len(series))]
    return np.stack(centers) if len({len(center) for center in centers}) == 1 else centers
