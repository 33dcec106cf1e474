"""K-means with clusters of given sizes, and links between rows."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np

from coterie.base import CENTERS_STORED, Summary
from coterie.core.errors import InputError, ParameterError
from coterie.core.protocols import Chunk, Source
from coterie.core.scale import ScaleError
from coterie.core.stored import stored
from coterie.kmeans.balanced_lloyd import Division, Transport, in_parts
from coterie.kmeans.center_estimator import Centers
from coterie.kmeans.kmeans import check_enough_rows
from coterie.kmeans.lloyd import Lloyd, warn_of_empty_clusters
from coterie.kmeans.pairwise_constraints import as_links, check_links
from coterie.seeding import check_start


@stored("BalancedKMeans", **CENTERS_STORED, cluster_sizes_="integer K")
class BalancedKMeans(Centers):
    r"""K-means whose clusters have sizes within bounds, and keep what is known of rows: together, or apart.

    .. math:: J = \sum_i w_i \lVert x_i - \mu_{z_i} \rVert^2, \qquad
       \text{size\_min}_k \le |\{i : z_i = k\}| \le \text{size\_max}_k

    All rows are divided among the centers at the least possible cost, a transport problem that is solved exactly
    [1]_, then centers move to the mean of their rows, until nothing changes. The objective never rises; the answer is a
    local optimum, so the start matters.

    Do not use it where sizes are not a rule but a wish: they cut through dense groups, and a row need not be in the
    cluster of its nearest center. `KMeans` is faster, and `BisectingKMeans` makes clusters of more even size without
    any bound.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    size_min, size_max : int, array (k,) or None, default=None
        How many rows a cluster has at least, and at most. With neither, sizes are as equal as can be: n / k rounded
        down and up. With one of them the other is no bound: ``size_min=0`` leaves the sizes free. Of an array, the
        clusters are in this order; unless `init` gives the centers, the one that is nearest to most rows gets the
        largest size.
    must_link, cannot_link : array (m, 2) of int or None, default=None
        Numbers of rows that are in the same cluster, and of rows that are not. Links of links are links.
    init : {'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array (k, d) or callable
        Where the centers start, as in `KMeans`.
    n_init : int or 'auto', default='auto'
        Starts, of which the best is kept; 'auto' is 10 for the random ones and 1 for the others.
    max_iter : int, default=300
        Iterations of one start at most.
    tol : float, default=1e-4
        A fit ends when the squared step of all centers is below `tol` times the mean variance of the columns.
    engine : {'auto', 'serial', 'threads'} or an engine, default='auto'
        Where to compute; rows must be in memory.
    callback : callable or None
        As in `KMeans`; the `params` it is told of are a `coterie.kmeans.balanced_lloyd.Division`.
    n_jobs, random_state, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        In the type of the data.
    labels_ : array (n,) of int32
        The division of the rows of the fit, which keeps sizes and links. `predict` knows neither: it gives new rows,
        and these, their nearest center.
    cluster_sizes_ : array (k,) of int
        Rows in each cluster.
    inertia_ : float
        The objective at exactly `cluster_centers_` and `labels_`. It is no less than ``-score(X)``, which sees the
        nearest centers.
    history_, n_iter_, converged_, n_features_in_, feature_names_in_
        As in `KMeans`.

    Notes
    -----
    Sizes count rows, not weights: a row cannot be split, and clusters of given weight would be bin packing, which
    nobody solves exactly at size. Weights count in the objective and in the means; so a row of weight two is not the
    row twice, which takes two places. Rows of weight zero take no place; they get the label of the nearest center,
    or what their links say.

    An iteration costs 2 n d k operations for the distances, about as much again for the transport, which begins with
    the prices of the last one, and 8 n k bytes. The transport is one thread's work. Linked rows cost more: wherever
    the cheapest clusters of all groups do not go together, an integer program over the groups (HiGHS) finds the best,
    exact to a millionth. A few hundred groups are no trouble; links of most rows under tight sizes may be.

    With ``size_min=0`` a cluster may lose all rows; it starts anew at the row that costs most, as in `KMeans`.

    References
    ----------
    .. [1] P. S. Bradley, K. P. Bennett, A. Demiriz (2000), Constrained k-means clustering, Microsoft Research
       MSR-TR-2000-65.
    .. [2] K. Wagstaff, C. Cardie, S. Rogers, S. Schroedl (2001), Constrained k-means clustering with background
       knowledge, ICML, 577-584.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import BalancedKMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [10.0], [11.0]])
    >>> model = BalancedKMeans(n_clusters=2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.cluster_sizes_.tolist()
    ([1.0, 8.0], [3, 3])
    >>> free = BalancedKMeans(2, size_min=0, cannot_link=[[4, 5]], random_state=0).fit(X)
    >>> bool(free.labels_[4] == free.labels_[5])
    False
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        size_min=None,
        size_max=None,
        must_link=None,
        cannot_link=None,
        init="k-means++",
        n_init="auto",
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
        self.size_min = size_min
        self.size_max = size_max
        self.must_link = must_link
        self.cannot_link = cannot_link
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centers and the clusters of `X`.

        Parameters
        ----------
        X : array, sparse matrix, frame, LazyFrame, or path of a file (n, d)
            The rows.
        y : ignored
        sample_weight : array (n,), optional
            How much each row counts in the objective and the means; in the sizes every row is one.
        """
        n_init, max_iter, watch = self._check_options()
        try:
            source, engine, summary = self._open(X, sample_weight, first=True)
        except ScaleError as error:
            return self._fit_rescaled(error, X, sample_weight)
        if source.engine == "dask":
            raise InputError("X is a Dask array: sizes join all rows, which must be in memory (X.compute() first)")
        check_enough_rows(self.n_clusters, summary)
        check_start(self.init, source, self.n_clusters)
        model = self._constrained(source, summary)
        found, labels = self._descend(model, source, engine, n_init, max_iter, watch)
        self._learn_columns(X, source)
        self.cluster_centers_, self.labels_ = found.params.centers, labels
        self.cluster_sizes_ = engine.sum(partial(_sizes, found.params), source)
        self.inertia_, self.history_ = found.objective, np.array(found.history)
        self.n_iter_, self.converged_ = len(found.history) - 1, found.converged
        self._n_features_out = self.n_clusters
        warn_of_empty_clusters(found.stats, "size_min=1 gives each a row, even where rows are alike")
        return self

    def _is_of_fit(self, X: Any, sample_weight: Any) -> bool:
        """Whether `X`, as many rows as those of the fit, are these in their order, with its weights: whether they cost
        what they did."""
        source, engine, _ = self._open(X, sample_weight, first=False)
        k, n = len(self.cluster_centers_), source.shape[0]
        free = Transport(k, np.zeros(k, np.int64), np.full(k, n))
        division = Division(self._params, in_parts(self.labels_, source), np.zeros(k))
        stats, _ = engine.scan(partial(free.e_step, division), source, None)
        cost = np.ldexp(free.objective(division, stats), 2 * self._scale.rows + self._scale.weights)
        return bool(np.isclose(cost, self.inertia_, rtol=1e-6))

    def _constrained(self, source: Source, summary: Summary) -> Transport:
        """The model of the fit: sizes and links are checked before any work."""
        w = source.w
        least, most = as_sizes(self.size_min, self.size_max, self.n_clusters, summary.rows)
        links = as_links(self.must_link, self.cannot_link, source.shape[0])
        check_links(links, np.ones(source.shape[0], bool) if w is None else w > 0, least, most)
        tol = float(self.tol) * float(summary.variance.mean())
        return Transport(self.n_clusters, least, most, links, self.init, summary.unit, tol)

    def _model(self, summary: Summary | None = None) -> Lloyd:
        """New rows go to their nearest center."""
        return Lloyd(len(self.cluster_centers_), bounds=False)


def as_sizes(size_min: Any, size_max: Any, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """How many of `n` rows each cluster has at least (k,), and at most."""
    if size_min is None and size_max is None:
        return np.full(k, n // k), np.full(k, -(-n // k))
    least = as_size("size_min", 0 if size_min is None else size_min, k)
    most = as_size("size_max", n if size_max is None else size_max, k)
    over = np.flatnonzero(least > most)
    if len(over):
        j = int(over[0])
        raise ParameterError(f"size_min must not be above size_max; cluster {j} has {least[j]} and {most[j]}")
    rows = f"X has {n} rows (of weight above 0)"
    if least.sum() > n:
        raise ParameterError(f"size_min asks for {least.sum()} rows in {k} clusters, but {rows}: lower it")
    if most.sum() < n:
        raise ParameterError(f"size_max leaves room for {most.sum()} rows in {k} clusters, but {rows}: raise it")
    return least, np.minimum(most, n)


def as_size(name: str, value: Any, k: int) -> np.ndarray:
    """One whole number for each of the `k` clusters."""
    wanted = f"{name} must be None, a whole number of at least 0, or {k} of them, one a cluster"
    try:
        sizes = np.asarray(value)
    except ValueError:
        raise ParameterError(f"{wanted}; got {value!r}") from None
    if sizes.dtype.kind not in "iu" or sizes.shape not in ((), (k,)) or (sizes < 0).any():
        shape = f"shape {sizes.shape}" if sizes.ndim and sizes.shape != (k,) else repr(value)
        raise ParameterError(f"{wanted}; got {shape}")
    return np.broadcast_to(sizes, k).astype(np.int64)


def _sizes(params: Division, chunk: Chunk) -> np.ndarray:
    """Rows in each cluster, of those that count."""
    labels = params.labels[chunk.part]
    counted = labels if chunk.w is None else labels[chunk.w > 0]
    return np.bincount(counted, minlength=len(params.centers))
