"""K-medoids clustering."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from coterie import interrupts, machine
from coterie.base import DistanceEstimator, callbacks
from coterie.core import rounding
from coterie.core.arguments import as_rng, one_of, whole_number
from coterie.core.arrays import Array
from coterie.core.progress import Progress
from coterie.core.scale import Powers, Scale, multiplied
from coterie.core.search import Pool, kind_of, search
from coterie.core.stored import stored
from coterie.data import opened
from coterie.data.memory import as_weights
from coterie.data.scale_check import unsafe_exponent
from coterie.distances.pairwise import strips
from coterie.errors import InputError, ParameterError
from coterie.medoids import fasterpam, medoid_search
from coterie.medoids.distance_table import StoredDistances, sample_objects
from coterie.medoids.medoid_objects import DistanceRows, Rows, as_objects

EXACT_ROWS = 100_000  # with more rows, distances that do not fit in memory are sampled, not recomputed


@stored(_medoids="<medoids.Columns> | <medoids.Rows>", medoid_indices_="index K", labels_="index<K *")
@dataclass(eq=False, repr=False)
class KMedoids(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DistanceEstimator):
    r"""K-medoids clustering: choose `n_clusters` rows that minimise the distances of all rows to them.

    .. math:: J = \sum_i w_i \min_k d(x_i, x_{m_k})

    FasterPAM [1]_ swaps a medoid for another row whenever that lowers J, until no swap helps. The result is a local
    optimum. Centers are rows, so only distances are needed: any `metric`, or a matrix of distances between objects that
    are not numeric. Distances are not squared, so outliers have less influence than in K-means.

    With ``objective='silhouette'`` the medoids maximise the mean medoid silhouette: 1 minus the distance to the nearest
    medoid divided by that to the second nearest [2]_. ``n_clusters='auto'`` then chooses the number of clusters.

    Use it for arbitrary distances, and if centers must be rows. Use `KMeans` if means are meaningful and n is large: it
    is linear in n, while this uses n² distances. Use single linkage for rings and chains.

    Parameters
    ----------
    n_clusters : int or 'auto', default=8
        Number of medoids. 'auto' requires ``objective='silhouette'`` and chooses from 2 to `max_clusters`.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        Distance, see `coterie.distances.pairwise`. With 'precomputed', `X` is the distance matrix (n, n).
    metric_params : dict or None, default=None
        Parameters of the metric.
    objective : {'deviation', 'silhouette'}, default='deviation'
        Objective to optimise: the sum of distances, or the mean medoid silhouette.
    max_clusters : int, default=16
        Maximum number of clusters for ``n_clusters='auto'``.
    init : {'lab', 'build', 'k-medoids++', 'random'} or array (k,) of int, default='lab'
        Initialisation method, or the row indices of the initial medoids. 'build' chooses the best row, then repeatedly
        the row that lowers J most, in n² k steps; it is deterministic. 'lab' does the same with a random sample of the
        rows for each medoid. 'k-medoids++' draws rows in proportion to their distance.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' is 3 for 'random', otherwise 1; with a search it is
        0, because a search has its own starts.
    search : {'auto', 'none', 'thorough'}, default='auto'
        Search for a better optimum than the swaps of one initialisation find. It makes independent starts by
        'k-medoids++', and if few of them agree on the best solution, jumps that replace up to three of its medoids.
        'auto' does so for ``init='lab'``, until six starts are within 0.1 % of the best, or for the work of nine
        starts; it takes two to three times the time of a fit without search. For more than 400 rows, a random sample of
        at least 200 of them can become medoids at first, for the work of 18 starts, and the best two solutions are
        continued with all rows.
        'thorough' makes up to 80 starts and more jumps, with at least 1 000 rows, and continues with four solutions.
        'none' only runs the `n_init` initialisations. The earlier words 'fast' and 'global' mean 'thorough'.
    max_iter : int, default=100
        Maximum number of passes over all rows in one run.
    approximation : {'auto', 'exact', 'sample'}, default='auto'
        'exact' uses all n² distances; they are recomputed in every pass if they do not fit in memory. 'sample'
        evaluates every row as a medoid by its distances to a weighted random sample of about 100 log(k n) rows [3]_.
        'auto' is exact if the distances fit into half of the free memory or if there are at most 100 000 rows.
        `approximation_` is the method that was used.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Random state. With an int the result is the same in every call.
    callback : callable or None, default=None
        Called with a `coterie.core.Progress` after every pass over the rows, and from time to time during a search. A
        true return value stops the fit.
    verbose : int, default=0
        1 prints a line from time to time, 2 prints a line for every pass.

    Attributes
    ----------
    medoid_indices_ : array (k,)
        Row indices of the medoids.
    cluster_centers_ : array (k, d) or None
        Rows of the medoids; None if they are not numeric rows.
    labels_ : array (n,) of int32
        Nearest medoid of every row; the first of equally near ones.
    inertia_ : float
        Sum of the weighted distances of all rows to the nearest medoid.
    silhouette_ : float
        Mean medoid silhouette of all rows; 0 with one medoid.
    history_ : array (n_iter + 1,)
        Loss of the best run, initially and after every pass: distances or 1 - silhouette, weighted and summed over the
        rows, or over the sample. A run after a search starts from its result.
    n_iter_ : int
        Number of passes of the best run.
    converged_ : bool
        True if the best run converged before `max_iter`.
    approximation_ : {'exact', 'sample'}
        Method that was used.

    Notes
    -----
    A pass costs n² comparisons of distances, for any k. 3 to 10 passes are typical.

    References
    ----------
    .. [1] E. Schubert, P. J. Rousseeuw (2021), Fast and eager k-medoids clustering: O(k) runtime improvement of the
       PAM, CLARA, and CLARANS algorithms, Information Systems 101. https://doi.org/10.1016/j.is.2021.101804
    .. [2] L. Lenssen, E. Schubert (2024), Medoid silhouette clustering with automatic cluster number selection,
       Information Systems 120. https://doi.org/10.1016/j.is.2023.102290
    .. [3] A. de Mathelin et al. (2025), OneBatchPAM: a fast and frugal k-medoids algorithm, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMedoids
    >>> X = np.array([[1.0], [2.0], [3.0], [50.0], [51.0], [90.0]])
    >>> model = KMedoids(n_clusters=2, metric="manhattan").fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([2.0, 51.0], 42.0)
    >>> int(model.predict([[60.0]])[0]) == int(model.labels_[4])
    True
    """

    n_clusters: Any = 8
    _: KW_ONLY
    metric: Any = "euclidean"
    metric_params: dict[str, Any] | None = None
    objective: str = "deviation"
    max_clusters: int = 16
    init: Any = "lab"
    n_init: int | str = "auto"
    search: str = "auto"
    max_iter: int = 100
    approximation: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    callback: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the medoids of `X`.

        Parameters
        ----------
        X : array, frame or list of series; distances (n, n) for metric='precomputed'
            Objects to cluster.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows. A row of weight two has the effect of that row twice. A row of weight zero cannot be a
            medoid.

        Returns
        -------
        self : KMedoids
            The fitted estimator.
        """
        n_init, kind, max_iter, callback = self._check_options()
        X = opened(X)
        objects = as_objects(X, self._as_distance())
        sample_weights, scale = self._weights(sample_weight, len(objects))
        positive = np.flatnonzero(sample_weights)
        k, rng = self._checked_n_clusters(len(positive)), as_rng(self.random_state)
        table, weights, approximation = self._table(objects, positive, sample_weights[positive], k, rng)
        problem = self._problem(kind, table, weights, k, max_iter, rng)
        if n_init is None:
            n_init = 0 if problem is not None else 3 if isinstance(self.init, str) and self.init == "random" else 1
        initial_medoids = self._initial_medoids(table, weights, k, n_init, positive, rng)
        result = self._best(table, weights, initial_medoids, problem, max_iter, callback)
        medoids = positive[result.medoids]
        medoid_rows = objects.medoids(medoids)
        nearest, second, labels = self._nearest_two(objects, medoid_rows)
        self._check_columns(X, reset=True)
        self._medoids, self.medoid_indices_, self.cluster_centers_ = medoid_rows, medoids, medoid_rows.numbers
        self.labels_, self.approximation_ = labels, approximation
        sums = {"inertia_": float(sample_weights @ nearest), "history_": np.array(result.history)}
        sums = multiplied(sums, dict.fromkeys(sums, Powers(0, 1)), scale)
        self.inertia_, self.history_ = sums["inertia_"], sums["history_"]
        self.silhouette_ = _silhouette(nearest, second, sample_weights)
        self.n_iter_ = len(result.history) - 1
        self.converged_, self._n_features_out = result.converged, len(medoids)
        if not (result.converged or result.stopped):
            warnings.warn(
                f"KMedoids did not converge in max_iter={max_iter} passes: raise max_iter",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Array:
        """Fit and return the distance of every row to every medoid."""
        return super().fit_transform(opened(X), y, **options)

    def predict(self, X: Any) -> Array:
        """Nearest medoid of every row (n,). For metric='precomputed', `X` has a column for each row of the fit."""
        return self._nearest_two(self._new_objects(X), self._medoids)[2]

    def transform(self, X: Any) -> Array:
        """Distance of every row to every medoid (n, k)."""
        objects = self._new_objects(X)
        return np.concatenate(list(self._in_strips(lambda a, b: objects.to(self._medoids, a, b), objects)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Negative sum of the distances to the nearest medoids: larger is better."""
        objects = self._new_objects(X)
        w = as_weights(sample_weight, len(objects))
        nearest = self._nearest_two(objects, self._medoids)[0]
        return -float(nearest.sum() if w is None else w @ nearest)

    @staticmethod
    def _weights(sample_weight: Any, n: int) -> tuple[Array, Scale]:
        """Weights (n,), divided by a power of two if their sums could overflow or underflow, and that power."""
        w = as_weights(sample_weight, n)
        scale = Scale(0, 0 if w is None else unsafe_exponent(float(w.max()), w.dtype))
        return np.ones(n) if w is None else np.ldexp(w, -scale.weights), scale

    def _table(
        self, objects: Rows | DistanceRows, positive: Array, w: Array, k: int, rng: np.random.Generator
    ) -> tuple[Any, Array, str]:
        """Distances to use, the weights of the objects, and 'exact' or 'sample'."""
        table: Any = objects.table(positive)
        if isinstance(table, StoredDistances):
            return table, w, "exact"
        is_large = self.approximation == "auto" and len(positive) > EXACT_ROWS and not table.fits
        if self.approximation == "sample" or is_large:
            return *sample_objects(table, w, k, rng, self.n_jobs), "sample"
        return table.stored(self.n_jobs), w, "exact"

    def _initial_medoids(
        self, table: Any, w: Array, k: int, n_init: int, positive: Array, rng: np.random.Generator
    ) -> Iterator[Array]:
        """Medoids of every initialisation."""
        if not isinstance(self.init, str):
            yield _check_initial_medoids(self.init, k, positive)
            return
        for _ in range(n_init):
            yield medoid_search.METHODS[self.init](table, w, k, rng, self.n_jobs)

    def _problem(
        self, kind: str, table: Any, w: Array, k: int, max_iter: int, rng: np.random.Generator
    ) -> medoid_search.MedoidProblem | None:
        """The search for medoids, or None; 'auto' searches if no other option says how to start."""
        is_plain = kind == "none" or (kind == "auto" and not (isinstance(self.init, str) and self.init == "lab"))
        if is_plain or self.n_clusters == "auto" or k == 1:
            return None
        silhouette = self.objective == "silhouette"
        return medoid_search.MedoidProblem(table, w, k, silhouette, kind, max_iter, rng, self.n_jobs)

    def _best(
        self, table: Any, w: Array, initial_medoids: Iterator[Array],
        problem: medoid_search.MedoidProblem | None, max_iter: int, callback: Any,
    ) -> fasterpam.SwapResult:  # fmt: skip
        """Best result of all initialisations and of the search. After Ctrl-C it is the best one so far."""
        best: fasterpam.SwapResult | None = None
        pools: list[Pool] = []
        run, stopped = 0, False

        def watch(iteration: int, loss: float) -> bool:
            nonlocal stopped
            stopped |= bool(callback(Progress("iteration", iteration, run=run, objective=loss)))
            return stopped

        def watch_search(pool: Pool, share: float) -> bool:
            pools.append(pool)
            interrupts.check()
            return watch(len(pools), float(pool.objective[0]))

        def descend(all_medoids: Iterable[Array]) -> None:
            nonlocal best, run
            for medoids in all_medoids:
                result = self._descend(table, w, medoids, max_iter, watch)
                if best is None or rounding.is_lower(result.loss, best.loss):
                    best = result
                run += 1
                if stopped:
                    break
                interrupts.check()

        with interrupts.deferred(), interrupts.outermost() as is_outermost:
            try:
                descend(initial_medoids)
                if problem is not None and not stopped:
                    pool = search(problem, problem.effort, watch_search)
                    run += 1
                    descend(problem.finalists(pool))
            except KeyboardInterrupt as error:
                if best is None and problem is not None and pools:
                    state = fasterpam.State(table, w, problem.finalists(pools[-1])[0], problem.silhouette)
                    best = fasterpam.SwapResult(state.medoids, state.loss, (state.loss,), converged=False, stopped=True)
                interrupts.keep_result(error, is_outermost, has_result=best is not None)
        assert best is not None
        return best

    def _descend(
        self, table: Any, w: Array, medoids: Array, max_iter: int, callback: fasterpam.SwapCallback
    ) -> fasterpam.SwapResult:
        if self.n_clusters == "auto":
            return fasterpam.descend_to_two(table, w, medoids, max_iter, self.n_jobs, callback)
        if len(medoids) == 1:
            return fasterpam.single(table, w, medoids, self.n_jobs)
        state = fasterpam.State(table, w, medoids, self.objective == "silhouette")
        return fasterpam.descend(table, state, max_iter, self.n_jobs, callback)

    def _nearest_two(self, objects: Any, medoids: Any) -> tuple[Array, Array, Array]:
        """Distances to the nearest and second nearest medoid (inf if there is none), and the index of the nearest."""
        pieces = list(self._in_strips(lambda a, b: _two_nearest(objects.to(medoids, a, b)), objects))
        nearest, second, labels = (np.concatenate(each) for each in zip(*pieces, strict=True))
        return nearest, second, labels

    def _in_strips(self, function: Any, objects: Any) -> Iterator[Any]:
        with machine.one_blas_thread:
            yield from machine.in_threads(function, strips(len(objects), 64), self.n_jobs)

    def _new_objects(self, X: Any) -> Any:
        check_is_fitted(self)
        X = opened(X)
        return self._medoids.new_rows(X, partial(self._check_columns, X, reset=False))

    def _checked_n_clusters(self, n: int) -> int:
        if self.n_clusters == "auto":
            k = min(whole_number("max_clusters", self.max_clusters, 2), n)
            if n < 2:
                raise InputError(
                    f"n_samples={n} row (of weight above 0) is too few for n_clusters='auto', because a silhouette "
                    "needs two: pass at least two rows"
                )
            return k
        k = int(self.n_clusters)
        if n < k:
            raise InputError(
                f"n_samples={n} rows (of weight above 0) are fewer than n_clusters={k}: use n_clusters <= {n}"
            )
        return k

    def _check_options(self) -> tuple[int | None, str, int, Any]:
        one_of("objective", self.objective, ("deviation", "silhouette"))
        if isinstance(self.n_clusters, str) and self.n_clusters == "auto":
            if self.objective != "silhouette":
                raise ParameterError(
                    "n_clusters='auto' needs objective='silhouette', because more medoids always lower the sum of "
                    f"distances; got objective={self.objective!r}"
                )
        else:
            minimum = 2 if self.objective == "silhouette" else 1
            whole_number("n_clusters", self.n_clusters, minimum)
        kind = kind_of(self.search)
        one_of("approximation", self.approximation, ("auto", "exact", "sample"))
        if self._is_precomputed and self.approximation == "sample":
            raise ParameterError(
                "approximation='sample' needs rows, but metric='precomputed' has all distances: use "
                "approximation='exact'"
            )
        if isinstance(self.init, str):
            one_of("init", self.init, tuple(medoid_search.METHODS))
        callback = callbacks(self.callback, self.verbose)
        is_auto = isinstance(self.n_init, str) and self.n_init == "auto"
        n_init = None if is_auto else whole_number("n_init", self.n_init, 1)
        return n_init, kind, whole_number("max_iter", self.max_iter, 1), callback


def _check_initial_medoids(init: Any, k: int, positive: Array) -> Array:
    """Initial medoids as positions among the rows of positive weight."""
    try:
        rows = np.asarray(init)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.shape != (k,) or rows.dtype.kind not in "iu" or len(np.unique(rows)) < k:
        raise ParameterError(
            f"init must be {', '.join(map(repr, medoid_search.METHODS))} or the indices of n_clusters={k} different "
            f"rows; got {init!r}"
        )
    positions = np.searchsorted(positive, rows)
    if not np.array_equal(positive[np.minimum(positions, len(positive) - 1)], rows):
        raise ParameterError(f"init must be indices of rows of weight above 0, from 0 to {positive[-1]}; got {init!r}")
    return positions


def objects_of(estimator: KMedoids, X: Any) -> Any:
    """The rows of `X` with the distance of the estimator."""
    return as_objects(X, estimator._as_distance())


def _two_nearest(D: Array) -> tuple[Array, Array, Array]:
    labels, smallest = rounding.nearest(D), D.min(axis=1).astype(np.float64)
    if D.shape[1] == 1:
        return smallest, np.full(len(D), np.inf), labels
    return smallest, np.partition(D, 1, axis=1)[:, 1].astype(np.float64), labels


def _silhouette(nearest: Array, second: Array, w: Array) -> float:
    if np.isinf(second).all():
        return 0.0
    return float(w @ (1 - np.divide(nearest, second, out=np.zeros(len(w)), where=nearest > 0)) / w.sum())
