"""The K-means estimator."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone

from coterie.base import CENTERS_STORED, Summary
from coterie.core import loop
from coterie.core.arguments import as_numbers, one_of
from coterie.core.arrays import is_sparse
from coterie.core.checkpoint import Store
from coterie.core.progress import Callback
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.search import Effort, kind_of
from coterie.core.stats import WeightedSums
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.kernels.membership import membership
from coterie.kmeans.center_estimator import CenterEstimator, check_enough_rows
from coterie.kmeans.center_search import Start, as_budget, thorough_means
from coterie.kmeans.device_lloyd import on_device
from coterie.kmeans.exact_kmeans import Exact, exact_if_possible
from coterie.kmeans.lloyd import Lloyd
from coterie.kmeans.missing_lloyd import MissingLloyd, check_options_with_missing
from coterie.seeding import check_start
from coterie.traces import Trace


@stored(**CENTERS_STORED, _roots="none | real D", _scaled_centers="none | real K D")
@dataclass(eq=False, repr=False, kw_only=True)
class KMeans(CenterEstimator):
    r"""K-means clustering: find `n_clusters` centers that minimise the squared distances of the rows to them.

    .. math:: J = \sum_i w_i \min_k \lVert x_i - \mu_k \rVert^2

    Lloyd's algorithm [1]_ repeats two steps: assign each row to its nearest center, then move each center to the mean
    of its rows. It stops when nothing changes. The objective never increases. The result is a local optimum and depends
    on the initial centers.

    Use it for numeric rows whose clusters are compact and of similar size. Use `GaussianMixture` for clusters of very
    different size or shape, single linkage for rings and moons, and `KMedians` for data with outliers. Standardise
    columns that have different units.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of centers.
    init : {'auto', 'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array or callable
        Initialisation method, or the initial centers (k, d). 'auto' (default) is 'k-means++', the greedy variant. For
        large tables that is 'k-means||', which takes the time of a few iterations for any number of centers: if rows x
        columns x `n_clusters` is above 2**24. The choice of rows does not depend on the blocks of the data. 'random' is
        another name for 'forgy'.
        'farthest' is deterministic. A callable is called for every initialisation as ``init(X, n_clusters,
        random_state)`` and returns centers.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' is 10 for 'forgy', 'random', 'random_partition' and
        callables, and 1 for the others. A search has more, up to 16 ('thorough': 64, or `n_init` if it is a number).
    search : {'auto', 'none', 'thorough'}, default='auto'
        Search for a better optimum than one initialisation finds. 'auto' takes about as long as a single run of
        k-means++ and Lloyd: it runs several of them until some agree, swaps centers for rows, and usually ends below
        the best of 25 random starts. It applies to dense or small sparse rows without missing values, on the CPU, if
        `n_init` is 'auto', `init` is 'auto' or 'k-means++', and there are no `frozen_centers`; otherwise it is 'none'.
        If rows x columns x clusters exceed about 2 million, a random sample of the rows is searched for the initial
        centers. 'thorough' searches longer, with any `init` and up to 33 million values: it also moves single rows, and
        recombines the centers of a population of solutions. 'none' only runs the `n_init` initialisations. `history_`
        begins with the start from which 'auto' found the best solution.
    search_budget : None, number or str, default=None
        Length of a thorough search. A number is a multiple of the work of one k-means++ and Lloyd run. Work is counted,
        not timed, so the result does not depend on the speed of the machine or the number of threads. None is 500, and
        up to a second or two of work for small tables; the search also ends after 20 `n_clusters` jumps without a gain.
        Text such as '2.5s' is seconds; the result may then differ between calls.
    algorithm : {'auto', 'lloyd', 'bounds', 'elkan', 'exact'}, default='auto'
        'lloyd' computes all distances. 'bounds' skips distances that the triangle inequality rules out; the result is
        identical to the last bit. 'elkan' is another name for 'bounds'. 'exact' finds the global optimum and ignores
        `init`, `n_init` and `search`. It always solves one column. It solves several columns for a few dozen rows, or
        hundreds if clusters are well separated, and raises an error if it would take too long. 'auto' is exact for one
        dense column that fits in memory, unless `init` gives the centers; otherwise it uses bounds where they can save
        time. With missing values neither 'bounds' nor 'exact' is available.
    max_iter : int, default=300
        Maximum number of iterations of one run.
    tol : float, default=1e-4
        Relative tolerance. Iterations stop when the squared movement of all centers falls below `tol` times the mean
        variance of the columns.
    metric_weights : array (d,) or None, default=None
        Weights of the columns. A squared distance is :math:`\sum_j v_j (x_j - \mu_j)^2`. Columns of weight 0 do not
        influence the distances; their centers are the means of the rows. All centers are in the units of `X`. The rows
        are multiplied by the square roots of the weights, in a copy of the same type. A callable `init` and `callback`
        receive these scaled rows and their centers.
    frozen_centers : array (f, d) or None, default=None
        Fixed centers: rows are assigned to them, but they do not move. The other ``n_clusters - f`` centers are fitted.
        Fixed centers come first in `cluster_centers_`. 'k-means++', 'k-means||' and 'farthest' choose initial centers
        away from them. An array `init` contains the other centers only.
    missing : {'error', 'ignore'}, default='error'
        How to treat NaN. 'error' raises an error that names the columns. 'ignore' uses the observed values: a distance
        is a sum over the observed columns of the row, and a center is, in every column, the mean of the observed
        values.
    device : {'auto', 'cpu', 'cuda'}, default='auto'
        Where the fit runs. 'auto' is the GPU for PyTorch tensors on a GPU. It is also the GPU for dense arrays if there
        is one that supports all options, and n d k is at least 2^32; otherwise the CPU. 'cuda' copies `X` to the GPU
        once, or part by part in every pass if it is larger than the memory of the GPU. Labels are the same on both
        devices, for the same centers. A GPU needs PyTorch, and supports neither sparse rows nor
        missing values, 'exact' and 'bounds', searches, checkpoints and traces.
    engine : {'auto', 'serial', 'threads', 'dask', 'ray'} or an engine, default='auto'
        Engine that runs the passes. 'auto' uses threads for rows in memory, Dask for Dask arrays, and the GPU for rows
        on it.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or OMP_NUM_THREADS if set. The result does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Random state. With an int the result is the same in every call, for any number of threads.
    callback : callable or None, default=None
        Called after every iteration with a `coterie.core.Progress`. A true return value stops the fit.
    verbose : int, default=0
        1 shows a progress bar with the remaining time, if it can be estimated. 2 prints a line for every iteration.
    checkpoint : str, Path or None, default=None
        File in which the state of the fit is saved about once a second. If the file exists, the fit resumes from it and
        returns the same result as an uninterrupted fit. The file is deleted when the fit completes.
    copy_x : bool, default=True
        Ignored, because `X` is never modified. For compatibility with scikit-learn.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        Centers, in the dtype of the data.
    labels_ : array (n,) of int32
        Cluster of each row. `predict` returns the same labels for the same rows.
    inertia_ : float
        Objective at exactly `cluster_centers_`.
    history_ : array (n_iter + 1,)
        Objective of the best run, initially and after every iteration.
    n_iter_ : int
        Number of iterations of the best run.
    converged_ : bool
        True if the best run converged before `max_iter`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An iteration costs 2 n d k operations and one pass over the rows. It needs 8 bytes per row in addition to the data.
    Every label is the nearest center as float64 would find it, also for float32 rows far from the origin. Of equally
    near centers, the first is chosen. An empty cluster is moved to the row with the largest cost. If there are fewer
    distinct rows than clusters, the remaining clusters stay empty, with a warning. Rows of weight zero have no effect.

    With missing values (``missing='ignore'``) an iteration costs 3 n d k operations. If a row becomes a center, its
    missing values are replaced by the means of the columns. A row without any observed value raises an error.
    `transform` returns distances over the observed columns, not rescaled for the missing ones.

    References
    ----------
    .. [1] S. P. Lloyd (1982), Least squares quantization in PCM, IEEE Transactions on Information Theory 28, 129-137.
       https://doi.org/10.1109/TIT.1982.1056489

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.inertia_
    16.0
    >>> sorted(model.cluster_centers_.tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    >>> bool(model.predict([[0, 0]])[0] == model.labels_[0])
    True
    """

    search: str = "auto"
    search_budget: Any = None
    algorithm: str = "auto"
    metric_weights: Any = None
    frozen_centers: Any = None
    missing: str = "error"
    device: str = "auto"
    copy_x: bool = True

    _powers_of_options: ClassVar[dict[str, int]] = {"init": 1, "frozen_centers": 1}

    @property
    def _not_on_device(self) -> dict[str, str]:
        is_exact = self.algorithm in ("exact", "bounds", "elkan")
        rejected = {"algorithm": "algorithm='lloyd'"} if is_exact else {}
        return {**rejected, "search": "search='auto'"} if kind_of(self.search) == "thorough" else rejected

    @property
    def _n_frozen(self) -> int:  # type: ignore[override]
        return 0 if self.frozen_centers is None else len(self.frozen_centers)

    def _fit_model(self, source: Source, summary: Summary) -> Lloyd:
        if summary.n_missing:
            check_options_with_missing(self.algorithm, self.search)
        model = on_device(self._model(summary), source)
        check_enough_rows(self.n_clusters, summary, self._n_frozen)
        check_start(self.init, source, self.n_clusters - self._n_frozen, self._n_frozen)
        roots = as_roots(self.metric_weights, source.shape[1])
        return exact_if_possible(self.algorithm, scaled(model, roots), source)

    def _search(
        self, model: Any, source: Source, engine: Engine, summary: Summary, rng: np.random.Generator, n_init: int,
        max_iter: int, callback: Callback, store: Store | None,
    ) -> Start:  # fmt: skip
        if isinstance(model, Exact):
            return Start(model, 1, max_iter, callback)
        return super()._search(model, source, engine, summary, rng, n_init, max_iter, callback, store)

    def _effort(self, kind: str) -> Effort:
        if kind == "thorough":
            return thorough_means(self.search_budget, self.n_clusters)
        effort = super()._effort(kind)  # less, because a single start of K-means is that much faster
        return replace(effort, runs=0.2 * effort.runs, work=0.2 * effort.work)

    def _store_result(self, model: Any, result: loop.Fit, labels: Any, source: Any, X: Any, sample_weight: Any) -> None:
        roots = as_roots(self.metric_weights, source.shape[1])
        params = np.asarray(result.params)  # from the GPU if the fit ran there
        centers = in_units(model, params, roots, partial(self._open_rows, X, sample_weight, first=True))
        if roots is not None and self._n_frozen:
            centers[: self._n_frozen] = self.frozen_centers
        super()._store_result(model, result, labels, source, X, sample_weight)
        self._roots, self._scaled_centers = roots, None if roots is None else params
        self.cluster_centers_ = centers

    def _model(self, summary: Summary | None = None) -> Lloyd:
        """Model of a fit (with `summary`), or of later calls, whose rows may have missing values in any case."""
        if summary is None:
            return (MissingLloyd if self._allows_missing else Lloyd)(len(self.cluster_centers_), bounds=False)
        frozen = as_frozen(self.frozen_centers, self.n_clusters, len(summary.variance))
        options = (self.n_clusters, self.init, summary.unit, summary.tolerance(self.tol))
        if summary.n_missing:
            return MissingLloyd(*options, bounds=False, frozen=frozen, fill=summary.mean)
        return Lloyd(*options, bounds=self.algorithm != "lloyd", frozen=frozen, n_total=summary.rows)

    @property
    def _allows_missing(self) -> bool:
        return self.missing == "ignore"

    @property
    def _sparse(self) -> bool:
        return not self._allows_missing  # the zeros that a sparse matrix omits are observed values, not missing ones

    @property
    def _name_in_errors(self) -> str:
        return "KMeans(missing='ignore')" if self._allows_missing else "KMeans"

    @property
    def _params(self) -> np.ndarray:
        scaled_centers = getattr(self, "_scaled_centers", None)
        return self._in_fitted_units(self.cluster_centers_) if scaled_centers is None else scaled_centers

    def _prepare_rows(self, source: Source, engine: Engine, first: bool) -> Source:
        roots = as_roots(self.metric_weights, source.shape[1]) if first else getattr(self, "_roots", None)
        return source if roots is None else source.map_rows(partial(scale_columns, roots), engine)

    def _in_user_units(self, trace: Trace) -> Trace:
        """Trace in the units of `X`, without the columns of weight 0."""
        return trace if self._roots is None else trace_in_units(trace, self._roots)

    def _check_options(self) -> tuple[int, int, Any]:
        one_of("algorithm", self.algorithm, ("auto", "lloyd", "bounds", "elkan", "exact"))
        one_of("missing", self.missing, ("error", "ignore"))
        one_of("copy_x", self.copy_x, (True, False))
        options = super()._check_options()
        if self.search_budget is not None:
            as_budget(self.search_budget)
        if kind_of(self.search) != "thorough" and self.search_budget is not None:
            raise ParameterError(
                f"search_budget={self.search_budget!r} has no effect with search={self.search!r}: set "
                "search='thorough', or remove it"
            )
        if self.frozen_centers is not None and kind_of(self.search) == "thorough":
            raise ParameterError(
                "frozen_centers require search='auto' or 'none', because a thorough search moves every center; got "
                f"search={self.search!r}"
            )
        if self.n_init not in ("auto", 1) and not isinstance(self.init, str) and not callable(self.init):
            warnings.warn(
                f"init contains the initial centers, so n_init={self.n_init!r} has no effect: set n_init=1",
                RuntimeWarning,
                stacklevel=3,
            )
        return options


def as_frozen(frozen_centers: Any, k: int, d: int) -> np.ndarray | None:
    """Fixed centers as an array (f, d), or None if there are none."""
    if frozen_centers is None:
        return None
    centers = as_numbers("frozen_centers", frozen_centers, f"None or numbers (f, {d})")
    if centers.ndim != 2 or centers.shape[1] != d or not 1 <= len(centers) <= k:
        raise ParameterError(
            f"frozen_centers must be None or 1 to n_clusters={k} centers of {d} columns; its shape is {centers.shape}"
        )
    if not np.isfinite(centers).all():
        raise ParameterError("frozen_centers contains NaN or infinity: every center needs finite coordinates")
    return centers


def sweep_models(
    estimator: CenterEstimator, ks: list[int], X: Any, sample_weight: Any
) -> tuple[dict[int, Any], Source, Engine, int, int]:
    """Models for ascending numbers of clusters, the rows and engine they share, `n_init` and `max_iter`."""
    n_init, max_iter, _ = estimator._check_options()
    source, engine, summary = estimator._open(X, sample_weight, first=True)
    check_enough_rows(ks[-1], summary)
    models = {k: clone(estimator).set_params(n_clusters=k)._model(summary) for k in ks}
    if isinstance(estimator, KMeans):
        roots = as_roots(estimator.metric_weights, source.shape[1])
        models = {
            k: exact_if_possible(estimator.algorithm, scaled(model, roots), source) for k, model in models.items()
        }
    return models, source, engine, n_init, max_iter


# Weights of the columns, and conversion of centers between scaled and original columns.


def as_roots(metric_weights: Any, d: int) -> np.ndarray | None:
    """Square roots of the column weights (d,), or None if there are no weights."""
    if metric_weights is None:
        return None
    expected = f"None or {d} numbers >= 0, one per column, not all 0"
    weights = as_numbers("metric_weights", metric_weights, expected)
    if weights.shape != (d,):
        shape = f"its shape is {weights.shape}" if weights.ndim else f"got {metric_weights!r}"
        raise ParameterError(f"metric_weights must be {expected}; {shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ParameterError(f"metric_weights must be {expected}; got {weights.tolist()}")
    return np.sqrt(weights)


def scale_columns(roots: np.ndarray, X: Any) -> Any:
    """Multiply every column by its root, in the dtype of `X`."""
    if is_sparse(X):
        return type(X)(((X.data * roots[X.indices]).astype(X.dtype), X.indices, X.indptr), shape=X.shape)
    return (X * roots).astype(X.dtype)


def scaled(model: Lloyd, roots: np.ndarray | None) -> Lloyd:
    """Model for rows whose columns are multiplied by `roots`."""
    if roots is None:
        return model
    is_method = isinstance(model.start, str) or callable(model.start)
    start = model.start if is_method else np.asarray(model.start, dtype=np.float64) * roots
    return replace(model, start=start, frozen=None if model.frozen is None else model.frozen * roots)


def in_units(
    model: Lloyd, centers: np.ndarray, roots: np.ndarray | None, open_rows: Callable[[], tuple[Source, Engine, Summary]]
) -> np.ndarray:
    """Centers of scaled rows in the original units; columns of weight 0 get the means of the clusters."""
    if roots is None:
        return centers
    result = centers / np.where(roots > 0, roots, 1)
    if (roots == 0).any():
        source, engine, summary = open_rows()
        sums = engine.sum(partial(zero_weight_sums, model, roots, centers), source)
        filled = sums.weight > 0
        means = sums.sum_x / np.where(filled, sums.weight, 1)
        result[:, roots == 0] = np.where(filled, means, summary.mean[roots == 0])
    return result.astype(centers.dtype)


def trace_in_units(trace: Trace, roots: np.ndarray) -> Trace:
    """Trace in the units of the original rows, without columns of weight 0."""
    has_weight = roots > 0
    steps = [replace(step, centers=step.centers[:, has_weight] / roots[has_weight]) for step in trace.steps]
    columns = [name for name, included in zip(trace.columns, has_weight, strict=True) if included]
    return replace(trace, steps=steps, rows=trace.rows[:, has_weight] / roots[has_weight], columns=columns)


def zero_weight_sums(model: Lloyd, roots: np.ndarray, centers: np.ndarray, chunk: Chunk) -> WeightedSums:
    """Sums over clusters of the columns whose root is 0. `centers` are centers of scaled rows."""
    labels = model.assign(centers, chunk._replace(X=scale_columns(roots, chunk.X)))
    members = membership(labels, len(centers), chunk.w)
    X = chunk.X[:, np.flatnonzero(roots == 0)].astype(np.float64)
    if sparse.issparse(X):
        return WeightedSums(np.repeat(members.sum(axis=1)[:, None], X.shape[1], axis=1), (members @ X).toarray())
    is_observed = ~np.isnan(X)
    return WeightedSums(members @ is_observed.astype(np.float64), members @ np.where(is_observed, X, 0.0))
