"""The K-means estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from coterie.base import Partitional, Summary, callbacks, not_negative, one_of, whole_number
from coterie.core.errors import InputError
from coterie.kmeans.lloyd import Lloyd, warn_of_empty_clusters
from coterie.seeding import check_start, starts


class KMeans(Partitional):
    r"""K-means: `n_clusters` centers that are near to all rows.

    .. math:: J = \sum_i w_i \min_k \lVert x_i - \mu_k \rVert^2

    Rows join their nearest center, centers move to the mean of their rows, until nothing changes (Lloyd [1]_). The
    objective never rises; the answer is a local optimum, so the start matters.

    Do not use it for clusters of very different size or shape (`GaussianMixture`), for rings and moons (single
    linkage), where outliers must not pull (`KMedians`, `KMedoids`), or on columns of different units: scale them
    first.

    Parameters
    ----------
    n_clusters : int, default=8
        How many centers.
    init : {'k-means++', 'forgy', 'random', 'random_partition', 'farthest'}, array (k, d) or callable
        Where they start. 'k-means++' is greedy, 'random' another name for 'forgy', 'farthest' leaves nothing to
        chance. A callable is called for every start as ``init(X, n_clusters, random_state)`` and
        returns centers.
    n_init : int or 'auto', default='auto'
        Starts, of which the best is kept; 'auto' is 10 for the random ones and 1 for the others.
    search : {'none'}, default='none'
        Search for better optima than restarts find. Not there yet: only 'none'.
    algorithm : {'auto', 'lloyd', 'bounds'}, default='auto'
        'bounds' skips distances that the triangle inequality rules out, 'lloyd' takes them all; 'auto' uses bounds
        where they can pay. The result is the same to the last bit.
    max_iter : int, default=300
        Iterations of one start at most.
    tol : float, default=1e-4
        A fit ends when the squared step of all centers is below `tol` times the mean variance of the columns.
    metric_weights : None
        Weights of the columns. Not there yet: multiply the columns by the square roots of their weights.
    missing : {'error'}, default='error'
        What to do with NaN. Not there yet: only 'error', which names the columns.
    engine : {'auto', 'serial', 'threads', 'dask'} or an engine, default='auto'
        Where to compute: threads for rows in memory, Dask for Dask arrays.
    n_jobs : int or None, default=None
        Threads; None is all cores (or OMP_NUM_THREADS). The result does not depend on it.
    random_state : None, int, RandomState or Generator
        A number gives the same answer every time, on any number of threads.
    callback : callable or None
        Called after every iteration with a `coterie.core.loop.Progress`; a true return ends the fit.
    verbose : int, default=0
        1 prints every iteration.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        In the type of the data.
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    inertia_ : float
        The objective at exactly `cluster_centers_`.
    history_ : array (n_iter_ + 1,)
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
        algorithm="auto",
        max_iter=300,
        tol=1e-4,
        metric_weights=None,
        missing="error",
        engine="auto",
        n_jobs=None,
        random_state=None,
        callback=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.search = search
        self.algorithm = algorithm
        self.max_iter = max_iter
        self.tol = tol
        self.metric_weights = metric_weights
        self.missing = missing
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers of `X`.

        Parameters
        ----------
        X : array, sparse matrix, frame, path of an .npy file, or Dask array (n, d)
            The rows.
        y : ignored
        sample_weight : array (n,), optional
            How much each row counts; a row of weight two is that row twice.
        """
        n_init, max_iter, watch = self._check_options()
        source, engine, summary = self._open(X, sample_weight, first=True)
        check_enough_rows(self.n_clusters, summary)
        check_start(self.init, source, self.n_clusters)
        model = self._model(summary)
        found, labels = self._descend(model, source, engine, n_init, max_iter, watch)
        self._learn_columns(X, source)
        self.cluster_centers_, self.labels_ = found.params, labels
        self.inertia_, self.history_ = found.objective, np.array(found.history)
        self.n_iter_, self.converged_ = len(found.history) - 1, found.converged
        self._n_features_out = self.n_clusters
        warn_of_empty_clusters(found.stats, "X has too few distinct rows for more")
        return self

    def _model(self, summary: Summary | None = None) -> Lloyd:
        if summary is None:
            return Lloyd(len(self.cluster_centers_), bounds=False)
        tol = float(self.tol) * float(summary.variance.mean())
        return Lloyd(self.n_clusters, self.init, summary.unit, tol, bounds=self.algorithm != "lloyd")

    @property
    def _params(self) -> np.ndarray:
        return self.cluster_centers_

    def _check_options(self) -> tuple[int, int, Any]:
        whole_number("n_clusters", self.n_clusters, 1)
        one_of("algorithm", self.algorithm, ("auto", "lloyd", "bounds"))
        one_of("search", self.search, ("none",))
        one_of("missing", self.missing, ("error",))
        one_of("metric_weights", self.metric_weights, (None,))
        not_negative("tol", self.tol)
        watch = callbacks(self.callback, self.verbose)
        return starts(self.init, self.n_init, if_random=10), whole_number("max_iter", self.max_iter, 1), watch


def check_enough_rows(k: int, summary: Summary) -> None:
    if summary.rows < k:
        raise InputError(f"n_samples={summary.rows} rows (of weight above 0) cannot make n_clusters={k}: ask for fewer")
