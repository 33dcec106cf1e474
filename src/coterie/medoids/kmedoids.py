"""The K-medoids estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from coterie import interrupts, machine
from coterie.base import ByDistance, callbacks
from coterie.core.arguments import as_rng, one_of, whole_number
from coterie.core.errors import FitInterruptedWarning, InputError, ParameterError
from coterie.core.progress import Progress
from coterie.core.scale import Powers, Scale, multiplied
from coterie.core.stored import stored
from coterie.data import opened
from coterie.data.memory import as_weights
from coterie.data.scale import unsafe_exponent
from coterie.distances.pairwise import strips
from coterie.medoids import fasterpam, medoid_search, medoid_seeding
from coterie.medoids.distance_table import Array, Kept, Made, sampled
from coterie.medoids.medoid_objects import Rows, Things, as_objects

EXACT_ROWS = 100_000  # beyond which distances that do not fit into memory are not made again and again


@stored("KMedoids", _medoids="<medoids.Columns> | <medoids.Rows>", medoid_indices_="index K", labels_="index<K *")
class KMedoids(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, ByDistance):
    r"""K-medoids: `n_clusters` of the rows themselves that are near to all rows, by any distance.

    .. math:: J = \sum_i w_i \min_k d(x_i, x_{m_k})

    Found by FasterPAM [1]_: a medoid is swapped for another row whenever that helps, until nothing does. Centers are
    rows, so that only distances are needed: any `metric`, or a matrix of distances between things that are no rows at
    all. Distances count as they are, not squared, so that outliers pull less than in K-means.

    With ``objective='silhouette'`` the medoids maximise the mean medoid silhouette, 1 less the distance to the nearest
    by that to the second nearest medoid [2]_, and ``n_clusters='auto'`` chooses their number by it.

    Do not use it where means make sense and n is large (`KMeans`, linear in n: this looks at n² distances), or for
    rings and chains (single linkage).

    Parameters
    ----------
    n_clusters : int or 'auto', default=8
        How many medoids; 'auto' is for objective='silhouette', from 2 to `max_clusters`.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. 'precomputed': `X` is the (n, n) matrix of distances.
    metric_params : dict or None
        Parameters of the metric.
    objective : {'deviation', 'silhouette'}, default='deviation'
        What to optimise.
    max_clusters : int, default=16
        For n_clusters='auto'.
    init : {'lab', 'build', 'k-medoids++', 'random'} or array (k,) of row numbers, default='lab'
        Where to start: 'build' takes the best row, then the one that helps most, and so on, in n² k steps and without
        chance; 'lab' does so with a sample of rows each time; 'k-medoids++' draws rows by their distance.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' is 3 for 'random' and before a search, else 1.
    search : {'auto', 'none', 'fast'}, default='auto'
        Search for a better optimum than swaps find: up to three medoids are replaced at random, and swaps go on from
        there. 'auto' does so 40 times for ``init='lab'``, and less often for more than 1,400 rows: it looks at about
        3e8 distances, so that there is no search for more than 9,000 rows. 'fast' does so 100 times. 'none' runs the
        `n_init` initialisations alone.
    max_iter : int, default=100
        Rounds through all rows of one start at most.
    approximation : {'auto', 'exact', 'sample'}, default='auto'
        'exact' looks at all n² distances, made anew in every round where they do not fit into memory. 'sample' judges
        every row as a medoid by its distances to a weighted sample of some 100 log(k n) rows [3]_. 'auto' is exact
        while the distances fit into half of the free memory or there are at most 100 000 rows; `approximation_` says
        which it was.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator
        A number gives the same answer every time.
    callback : callable or None
        Called after every round with a `coterie.core.Progress`; a true return ends the fit.
    verbose : int, default=0
        1 prints a line now and then, 2 one for every round.

    Attributes
    ----------
    medoid_indices_ : array (k,)
        The rows that are medoids.
    cluster_centers_ : array (k, d) or None
        Those rows; None where they are not rows of numbers.
    labels_ : array (n,) of int32
        The nearest medoid of every row, the first of several.
    inertia_ : float
        The sum of the weighted distances to the nearest medoid, of all rows.
    silhouette_ : float
        The mean medoid silhouette of all rows; 0 with one medoid.
    history_ : array
        What is minimised (distances, or 1 - silhouette, weighted and summed over the rows, or over the sample), at the
        start and after every round of the best start.
    n_iter_ : int
    converged_ : bool
    approximation_ : {'exact', 'sample'}

    Notes
    -----
    A round costs n² comparisons of distances, whatever k; some 3 to 10 rounds are usual.

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

    def __init__(
        self,
        n_clusters=8,
        *,
        metric="euclidean",
        metric_params=None,
        objective="deviation",
        max_clusters=16,
        init="lab",
        n_init="auto",
        search="auto",
        max_iter=100,
        approximation="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.metric_params = metric_params
        self.objective = objective
        self.max_clusters = max_clusters
        self.init = init
        self.n_init = n_init
        self.search = search
        self.max_iter = max_iter
        self.approximation = approximation
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the medoids of `X`.

        Parameters
        ----------
        X : array, frame or list of series; distances (n, n) for metric='precomputed'
            What to cluster.
        y : ignored
        sample_weight : array (n,), optional
            How much each row counts; a row of weight two is that row twice, one of weight 0 is no medoid.
        """
        n_init, max_iter, watch = self._check_options()
        X = opened(X)
        objects = as_objects(X, self._as_distance())
        everyone, scale = self._weights(sample_weight, len(objects))
        counted = np.flatnonzero(everyone)
        k, rng = self._how_many(len(counted)), as_rng(self.random_state)
        table, weights, approximation = self._table(objects, counted, everyone[counted], k, rng)
        effort = self._effort(table.shape)
        n_init = max(n_init, effort.starts) if isinstance(self.n_init, str) else n_init
        begins = self._starts(table, weights, k, n_init, counted, rng)
        jump = partial(medoid_search.improved, table=table, w=weights, jumps=effort.jumps, rng=rng)
        found = self._best(table, weights, begins, jump, max_iter, watch)
        medoids = counted[found.medoids]
        medoid_rows = objects.medoids(medoids)
        nearest, second, labels = self._nearest_two(objects, medoid_rows)
        self._check_columns(X, reset=True)
        self._medoids, self.medoid_indices_, self.cluster_centers_ = medoid_rows, medoids, medoid_rows.numbers
        self.labels_, self.approximation_ = labels, approximation
        sums = {"inertia_": float(everyone @ nearest), "history_": np.array(found.history)}
        sums = multiplied(sums, dict.fromkeys(sums, Powers(0, 1)), scale)
        self.inertia_, self.history_ = sums["inertia_"], sums["history_"]
        self.silhouette_ = _silhouette(nearest, second, everyone)
        self.n_iter_ = len(found.history) - 1
        self.converged_, self._n_features_out = found.converged, len(medoids)
        if not (found.converged or found.stopped):
            warnings.warn(
                f"KMedoids did not converge in max_iter={max_iter} rounds: raise max_iter",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the cluster of every row."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Array:
        """Fit, and return the distance of every row to every medoid."""
        return super().fit_transform(opened(X), y, **options)

    def predict(self, X: Any) -> Array:
        """The nearest medoid of every row (n,); for metric='precomputed' `X` has a column for each row of the fit."""
        return self._nearest_two(self._others(X), self._medoids)[2]

    def transform(self, X: Any) -> Array:
        """The distance of every row to every medoid (n, k)."""
        objects = self._others(X)
        return np.concatenate(list(self._in_strips(lambda a, b: objects.to(self._medoids, a, b), objects)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The distances to the nearest medoids, summed and negated: larger is better."""
        objects = self._others(X)
        w = as_weights(sample_weight, len(objects))
        nearest = self._nearest_two(objects, self._medoids)[0]
        return -float(nearest.sum() if w is None else w @ nearest)

    @staticmethod
    def _weights(sample_weight: Any, n: int) -> tuple[Array, Scale]:
        """Weights (n,), divided by a power of two where their sums could leave the range of numbers; and which."""
        w = as_weights(sample_weight, n)
        scale = Scale(0, 0 if w is None else unsafe_exponent(float(w.max()), w.dtype))
        return np.ones(n) if w is None else np.ldexp(w, -scale.weights), scale

    def _table(
        self, objects: Rows | Things, counted: Array, w: Array, k: int, rng: np.random.Generator
    ) -> tuple[Any, Array, str]:
        """The distances to look at, the weights of the objects they lead to, and whether those are all or a sample."""
        table: Any = objects.table(counted)
        if isinstance(table, Kept):
            return table, w, "exact"
        sample = self.approximation == "sample" or (
            self.approximation == "auto" and len(counted) > EXACT_ROWS and not _fits(table)
        )
        if sample:
            table, w = sampled(table, w, k, rng, self.n_jobs)
        return table.kept(self.n_jobs) if _fits(table) else table, w, "sample" if sample else "exact"

    def _starts(
        self, table: Any, w: Array, k: int, n_init: int, counted: Array, rng: np.random.Generator
    ) -> Iterator[Array]:
        if isinstance(self.init, str):
            method = medoid_seeding.METHODS[self.init]
            return (method(table, w, k, rng, self.n_jobs) for _ in range(n_init))
        return iter([_given(self.init, k, counted)])

    def _effort(self, shape: tuple[int, int]) -> medoid_search.Effort:
        """The effort that `search` means for a table of that shape."""
        kind = self.search
        if kind == "auto" and (not isinstance(self.init, str) or self.init != "lab"):
            kind = "none"
        return medoid_search.NO_SEARCH if self.n_clusters in ("auto", 1) else medoid_search.effort_of(kind, shape)

    def _best(
        self, table: Any, w: Array, begins: Iterator[Array], jump: Any, max_iter: int, watch: Any
    ) -> fasterpam.Found:
        best: fasterpam.Found | None = None
        run = -1
        with interrupts.deferred(), interrupts.outermost() as keeps:
            try:
                for run, medoids in enumerate(begins):
                    found = self._descend(table, w, medoids, max_iter, partial(_tell, watch, run))
                    if best is None or found.loss < best.loss:
                        best = found
                    if found.stopped:
                        break
                    interrupts.check()
                assert best is not None
                last = partial(_tell, watch, run + 1)
                if not found.stopped:
                    best = jump(best, descend=lambda medoids: self._descend(table, w, medoids, max_iter, last))
            except KeyboardInterrupt:
                if not keeps or best is None:
                    raise
                warnings.warn("interrupted: the best start so far is kept", FitInterruptedWarning, stacklevel=3)
        return best

    def _descend(self, table: Any, w: Array, medoids: Array, max_iter: int, watch: fasterpam.Watch) -> fasterpam.Found:
        if self.n_clusters == "auto":
            return fasterpam.descend_to_two(table, w, medoids, max_iter, self.n_jobs, watch)
        if len(medoids) == 1:
            return fasterpam.single(table, w, medoids, self.n_jobs)
        kind = fasterpam.Silhouettes if self.objective == "silhouette" else fasterpam.Deviations
        return fasterpam.descend(table, kind(table, w, medoids), max_iter, self.n_jobs, watch)

    def _nearest_two(self, objects: Any, medoids: Any) -> tuple[Array, Array, Array]:
        """Distances to the nearest and the second nearest medoid, infinite where there is but one; and the nearest."""
        pieces = list(self._in_strips(lambda a, b: _two_least(objects.to(medoids, a, b)), objects))
        nearest, second, labels = (np.concatenate(each) for each in zip(*pieces, strict=True))
        return nearest, second, labels

    def _in_strips(self, function: Any, objects: Any) -> Iterator[Any]:
        with machine.one_blas_thread:
            yield from machine.in_threads(function, strips(len(objects), 64), self.n_jobs)

    def _others(self, X: Any) -> Any:
        check_is_fitted(self)
        X = opened(X)
        return self._medoids.others(X, partial(self._check_columns, X, reset=False))

    def _how_many(self, n: int) -> int:
        if self.n_clusters == "auto":
            k = min(whole_number("max_clusters", self.max_clusters, 2), n)
            if n < 2:
                raise InputError(f"n_samples={n} row (of weight above 0) has no silhouette: there must be two at least")
            return k
        k = int(self.n_clusters)
        if n < k:
            raise InputError(f"n_samples={n} rows (of weight above 0) cannot make n_clusters={k}: ask for fewer")
        return k

    def _check_options(self) -> tuple[int, int, Any]:
        one_of("objective", self.objective, ("deviation", "silhouette"))
        if isinstance(self.n_clusters, str) and self.n_clusters == "auto":
            if self.objective != "silhouette":
                raise ParameterError("n_clusters='auto' needs objective='silhouette': more medoids always lie nearer")
        else:
            least = 2 if self.objective == "silhouette" else 1
            whole_number("n_clusters", self.n_clusters, least)
        one_of("search", self.search, ("auto", "none", "fast"))
        one_of("approximation", self.approximation, ("auto", "exact", "sample"))
        if self._given_distances and self.approximation == "sample":
            raise ParameterError("approximation='sample' needs rows; with metric='precomputed' all distances are there")
        if isinstance(self.init, str):
            one_of("init", self.init, tuple(medoid_seeding.METHODS))
        watch = callbacks(self.callback, self.verbose)
        n_init = self.n_init
        if isinstance(n_init, str) and n_init == "auto":
            n_init = 3 if isinstance(self.init, str) and self.init == "random" else 1
        return whole_number("n_init", n_init, 1), whole_number("max_iter", self.max_iter, 1), watch


def _tell(watch: Any, run: int, rounds: int, loss: float) -> Any:
    return watch(Progress("iteration", rounds, run=run, objective=loss))


def _given(init: Any, k: int, counted: Array) -> Array:
    """The medoids a user starts from, by their numbers among the rows that count."""
    try:
        rows = np.asarray(init)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.shape != (k,) or rows.dtype.kind not in "iu" or len(np.unique(rows)) < k:
        raise ParameterError(
            f"init must be {', '.join(map(repr, medoid_seeding.METHODS))} or the numbers of n_clusters={k} different rows; "
            f"got {init!r}"
        )
    places = np.searchsorted(counted, rows)
    if not np.array_equal(counted[np.minimum(places, len(counted) - 1)], rows):
        raise ParameterError(f"init must be numbers of rows of weight above 0, from 0 to {counted[-1]}; got {init!r}")
    return places


def _fits(table: Made) -> bool:
    return table.nbytes <= machine.free_memory() // 2


def _two_least(D: Array) -> tuple[Array, Array, Array]:
    labels = D.argmin(axis=1).astype(np.int32)
    nearest = D.min(axis=1).astype(np.float64)
    if D.shape[1] == 1:
        return nearest, np.full(len(D), np.inf), labels
    return nearest, np.partition(D, 1, axis=1)[:, 1].astype(np.float64), labels


def _silhouette(nearest: Array, second: Array, w: Array) -> float:
    if np.isinf(second).all():
        return 0.0
    return float(w @ (1 - np.divide(nearest, second, out=np.zeros(len(w)), where=nearest > 0)) / w.sum())
