"""The K-means estimator."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from coterie.base import CENTERS, CENTERS_STORED, Partitional, Summary, callbacks
from coterie.core.arguments import as_rng, not_negative, one_of, whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.core.protocols import Engine, Source
from coterie.core.scale import ScaleError
from coterie.core.stored import stored
from coterie.kmeans.exact_kmeans import Exact, exact_if_possible
from coterie.kmeans.global_search import searched
from coterie.kmeans.lloyd import Lloyd, warn_of_empty_clusters
from coterie.kmeans.metric_weights import as_frozen, as_roots, in_units, scale_columns, scaled, trace_in_units
from coterie.kmeans.missing_lloyd import Observed, check_options_for_holes
from coterie.kmeans.search_budget import MULTIPLES, as_budget
from coterie.seeding import check_start, starts
from coterie.traces import Trace, Traced


@stored("KMeans", **CENTERS_STORED, _roots="none | real D", _scaled_centers="none | real K D")
class KMeans(Traced, Partitional):
    r"""K-means: `n_clusters` centers that are near to all rows.

    .. math:: J = \sum_i w_i \min_k \lVert x_i - \mu_k \rVert^2

    Rows join their nearest center, centers move to the mean of their rows, until nothing changes (Lloyd [1]_). The
    objective never rises; the answer is a local optimum, so the start matters.

    Do not use it for clusters of very different size or shape (`GaussianMixture`), for rings and moons (single
    linkage), where outliers must not pull (`KMedians`), or on columns of different units: scale them
    first.

    Parameters
    ----------
    n_clusters : int, default=8
        How many centers.
    init : {'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array (k, d) or callable
        Where they start. 'k-means++' is greedy, 'k-means||' takes few passes for any number of centers, 'random'
        is another name for 'forgy', 'farthest' leaves nothing to chance. A callable is called for every start as
        ``init(X, n_clusters, random_state)`` and returns centers.
    n_init : int or 'auto', default='auto'
        Starts, of which the best is kept; 'auto' is 10 for the random ones and 1 for the others.
    search : {'none', 'fast', 'global'}, default='none'
        Search for better optima than restarts find, from the best of the `n_init` runs on: 'fast' moves centers and
        single rows about, 'global' does so to a population of solutions. Never worse than 'none' with the same seed.
    search_budget : None, number or str, default=None
        How long: a number is multiples of the work of one k-means++ and Lloyd run, counted and not timed, so that the
        answer does not depend on speed or threads; None is 10 for 'fast' and 200 for 'global', and a tenth of a
        second's work where those are less. Text such as '2.5s' is seconds, and then the answer may differ from call
        to call.
    algorithm : {'auto', 'lloyd', 'bounds', 'elkan', 'exact'}, default='auto'
        'bounds' skips distances that the triangle inequality rules out, 'lloyd' computes them all, with the same result
        to the last bit. 'elkan' is another name for 'bounds'. 'exact' finds the global optimum, and ignores `init`,
        `n_init` and `search`: it solves one column always, several columns for a few dozen rows, or hundreds if
        clusters are well separated; it raises an error if it would take too long. 'auto' is exact for one dense column
        that fits in memory unless `init` gives the centers, and elsewhere uses bounds where they can pay. With missing
        values neither bounds nor 'exact' are available.
    max_iter : int, default=300
        Iterations of one start at most.
    tol : float, default=1e-4
        A fit ends when the squared step of all centers is below `tol` times the mean variance of the columns.
    metric_weights : array (d,) or None, default=None
        Weights of the columns: a squared distance is :math:`\sum_j v_j (x_j - \mu_j)^2`. Columns of weight 0 are not
        looked at, and their centers are the means of the rows; all centers are in the units of `X`. The rows are
        multiplied by the roots of the weights, in a copy of their own type: so a callable `init` and `callback` see
        them and their centers.
    frozen_centers : array (f, d) or None, default=None
        Centers that take rows and stay where they are; the other n_clusters - f are fitted beside them. They come
        first in `cluster_centers_`; k-means++, k-means|| and 'farthest' keep away from them; an array `init` is the
        others alone.
    missing : {'error', 'ignore'}, default='error'
        NaN: refuse it, naming the columns, or go by what is there of each row: distances are sums over the columns
        observed, and a center is in every column the mean of the values there are.
    engine : {'auto', 'serial', 'threads', 'dask'} or an engine, default='auto'
        Where to compute: threads for rows in memory, Dask for Dask arrays.
    n_jobs : int or None, default=None
        Threads; None is all cores (or OMP_NUM_THREADS). The result does not depend on it.
    random_state : None, int, RandomState or Generator
        A number gives the same answer every time, on any number of threads.
    callback : callable or None
        Called after every iteration with a `coterie.core.Progress`; a true return ends the fit.
    verbose : int, default=0
        1 prints a line now and then, with the time left where that can be told; 2 prints one every iteration.
    checkpoint : str, path or None, default=None
        File in which the state of the fit is saved about once a second. If the file exists, the fit resumes from it and
        returns the same result as an uninterrupted fit. The file is deleted when the fit completes.
    copy_x : bool, default=True
        Ignored: `X` is never changed. For compatibility with scikit-learn.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        In the type of the data.
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    inertia_ : float
        The objective at exactly `cluster_centers_`.
    history_ : array (iterations + 1,)
        The objective at the start and after every iteration of the best start.
    n_iter_ : int
        Iterations of the best start.
    converged_ : bool
        Whether it ended by itself.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An iteration costs 2 n d k operations, one pass over the rows, and 8 bytes a row beside them. Every label is the
    nearest center as float64 would find it, also for float32 rows far from the origin. Equally near centers: the
    first. An empty cluster starts anew at the row that costs most; if there are fewer distinct rows than clusters,
    the clusters left over stay empty, with a warning. Rows of weight zero count for nothing.

    With holes (`missing='ignore'`) an iteration costs 3 n d k operations. A row that becomes a center has the means of
    the columns in its holes; a row of which nothing was observed is refused. `transform` gives distances over the
    columns observed, not scaled up for what is missing.

    References
    ----------
    .. [1] S. P. Lloyd (1982), Least squares quantization in PCM, IEEE Transactions on Information Theory 28,
       129-137. https://doi.org/10.1109/TIT.1982.1056489

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

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        search="none",
        search_budget=None,
        algorithm="auto",
        max_iter=300,
        tol=1e-4,
        metric_weights=None,
        frozen_centers=None,
        missing="error",
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
        checkpoint=None,
        copy_x=True,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.search = search
        self.search_budget = search_budget
        self.algorithm = algorithm
        self.max_iter = max_iter
        self.tol = tol
        self.metric_weights = metric_weights
        self.frozen_centers = frozen_centers
        self.missing = missing
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.copy_x = copy_x

    _powers = CENTERS
    _powers_of_options: ClassVar[dict[str, int]] = {"init": 1, "frozen_centers": 1}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers of `X`.

        Parameters
        ----------
        X : array, sparse matrix, frame, LazyFrame, path of a file, or Dask array (n, d)
            The rows.
        y : ignored
        sample_weight : array (n,), optional
            How much each row counts; a row of weight two is that row twice.
        """
        n_init, max_iter, watch = self._check_options()
        try:
            source, engine, summary = self._open(X, sample_weight, first=True)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        if summary.gaps:
            check_options_for_holes(self.algorithm, self.search)
        model = self._model(summary)
        frozen = 0 if model.frozen is None else len(model.frozen)
        check_enough_rows(self.n_clusters - frozen, summary)
        check_start(self.init, source, self.n_clusters - frozen, frozen)
        roots = as_roots(self.metric_weights, source.shape[1])
        model = exact_if_possible(self.algorithm, scaled(model, roots), source)
        rng, store = as_rng(self.random_state), self._store(source, engine)
        if isinstance(model, Exact):
            n_init = 1
        elif self.search != "none":
            model, watch = searched(
                self.search, as_budget(self.search, self.search_budget), model, source, engine, summary,
                rng if store is None else store.chance(rng), n_init, max_iter, watch, store,
            )  # fmt: skip
            n_init = 1
        found, labels = self._descend(model, source, engine, n_init, max_iter, watch, rng, store)
        centers = in_units(model, found.params, roots, partial(self._given, X, sample_weight, first=True))
        if roots is not None and frozen:
            centers[:frozen] = self.frozen_centers
        self._learn_columns(X, source)
        self._roots, self._scaled_centers = roots, None if roots is None else found.params
        self.cluster_centers_, self.labels_ = centers, labels
        self.inertia_, self.history_ = found.objective, np.array(found.history)
        self.n_iter_, self.converged_ = len(found.history) - 1, found.converged
        self._n_features_out = self.n_clusters
        warn_of_empty_clusters(found.stats, "X has too few distinct rows for more", frozen)
        return self

    def _model(self, summary: Summary | None = None) -> Lloyd:
        """Rows without a hole are fitted as such; rows to answer for may have holes where those of the fit had none."""
        if summary is None:
            return (Observed if self._holes else Lloyd)(len(self.cluster_centers_), bounds=False)
        tol = float(self.tol) * float(summary.variance.mean())
        frozen = as_frozen(self.frozen_centers, self.n_clusters, len(summary.variance))
        given = (self.n_clusters, self.init, summary.unit, tol)
        if summary.gaps:
            return Observed(*given, bounds=False, frozen=frozen, fill=summary.mean)
        return Lloyd(*given, bounds=self.algorithm != "lloyd", frozen=frozen)

    @property
    def _holes(self) -> bool:
        return self.missing == "ignore"

    @property
    def _sparse(self) -> bool:
        return not self._holes  # the zeros that sparse rows leave out are values

    @property
    def _called(self) -> str:
        return "KMeans(missing='ignore')" if self._holes else "KMeans"

    @property
    def _params(self) -> np.ndarray:
        scaled_centers = getattr(self, "_scaled_centers", None)
        return self._in_fitted_units(self.cluster_centers_) if scaled_centers is None else scaled_centers

    def _ready(self, source: Source, engine: Engine, first: bool) -> Source:
        roots = as_roots(self.metric_weights, source.shape[1]) if first else getattr(self, "_roots", None)
        return source if roots is None else source.changed(partial(scale_columns, roots), engine)

    def _in_own_units(self, trace: Trace) -> Trace:
        """Columns that distances do not see are left out."""
        return trace if self._roots is None else trace_in_units(trace, self._roots)

    def _check_options(self) -> tuple[int, int, Any]:
        whole_number("n_clusters", self.n_clusters, 1)
        one_of("algorithm", self.algorithm, ("auto", "lloyd", "bounds", "elkan", "exact"))
        if one_of("search", self.search, ("none", *MULTIPLES)) != "none" or self.search_budget is not None:
            as_budget(self.search, self.search_budget)
        one_of("missing", self.missing, ("error", "ignore"))
        if self.frozen_centers is not None and self.search != "none":
            raise ParameterError(
                f"frozen_centers need search='none', for a search moves all; got search={self.search!r}"
            )
        not_negative("tol", self.tol)
        watch = callbacks(self.callback, self.verbose)
        if self.n_init not in ("auto", 1) and not isinstance(self.init, str) and not callable(self.init):
            warnings.warn(
                f"init gives the centers to start from: n_init={self.n_init!r} has no effect, set n_init=1",
                RuntimeWarning,
                stacklevel=3,
            )
        return starts(self.init, self.n_init, if_random=10), whole_number("max_iter", self.max_iter, 1), watch


def check_enough_rows(k: int, summary: Summary) -> None:
    if summary.rows < k:
        raise InputError(f"n_samples={summary.rows} rows (of weight above 0) cannot make n_clusters={k}: ask for fewer")
