"""K-medians: centers that are medians of their rows, under distances that are not squared."""

from __future__ import annotations

from typing import Any, ClassVar

from coterie.base import CENTERS_STORED, Summary
from coterie.core.arguments import one_of
from coterie.core.scale import LENGTHS, Powers
from coterie.core.stored import stored
from coterie.kmeans.center_estimator import Centers
from coterie.kmeans.median_models import Euclidean, Manhattan

METRICS = {"l1": Manhattan, "l2": Euclidean}


@stored("KMedians", **CENTERS_STORED)
class KMedians(Centers):
    r"""K-medians: `n_clusters` centers that are near to all rows, with no more heed to the far ones than to the near.

    .. math:: J = \sum_i w_i \min_k \lVert x_i - \mu_k \rVert

    The norm is :math:`\sum_t |x_t - \mu_t|` for ``metric="l1"``, and centers are medians, column by column; for
    ``metric="l2"`` it is the Euclidean one, not squared, and centers are geometric medians, by Weiszfeld's steps [1]_
    with the care of [2]_ for centers on rows. Rows join their nearest center, centers move to medians of their rows,
    in turn. The objective never rises; the answer is a local optimum.

    A row that lies ten times as far pulls no harder, so half of a cluster must go astray before its center does [3]_.
    Yet a row that is far from everything is costly, and may get a cluster of its own where that is the best use of one.

    Do not use it where centers must be rows, or only distances are known (`KMedoids`); for clusters of normal rows
    without outliers `KMeans` is faster and its centers vary less. With "l1", rows must not be turned: distances along
    the columns are not those along other axes.

    Parameters
    ----------
    n_clusters : int, default=8
        How many centers.
    metric : {'l1', 'l2'}, default='l1'
        The distance, and with it the median.
    init : {'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array (k, d) or callable
        Where the centers start, as in `KMeans`. 'farthest' takes outliers first.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' is 10 for 'forgy', 'random', 'random_partition' and
        callables, 3 before a search (2 on a sample of the rows, 5 if "fast"), else 1.
    search : {'auto', 'none', 'fast'}, default='auto'
        Search for a better optimum than initialisations find. One to three centers are swapped for rows, and the
        iterations continue from there; then several centers jump at random, and the swaps start again. 'auto' is a
        short search for ``init='k-means++'``, about 0.1 to 0.5 seconds. For a large table it searches a random sample
        of the rows for the initial centers, unless `n_init` is a number. 'fast' searches longer, and up to 16 million
        values. 'none' runs the `n_init` initialisations alone. A fit that resumes from a `checkpoint` repeats the
        search.
    max_iter : int, default=300
        Iterations of one start at most.
    tol : float, default=1e-4
        A fit ends when the squared step of all centers is below `tol` times the mean variance of the columns; with
        "l1" also when no row changes its cluster, with "l2" when the objective falls no more but for rounding.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        In the type of the data.
    labels_ : array (n,) of int32
        Always what `predict` says of the same rows.
    objective_ : float
        J at exactly `cluster_centers_`. There is no `inertia_`, which would be squares.
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
    Where the half of a cluster's weight falls between two values, the median is the mean of the two. Medians are found
    exactly, by counting: an iteration with "l1" costs 3 n d k operations and a few passes of about 10 n d, and 16
    counts a cluster and column beside the labels; with "l2" one of K-means and up to eleven passes of 6 n d, most of
    them a step of Weiszfeld's. Rows on a line may have many geometric medians, of which one is found. Empty clusters
    start anew as in `KMeans`. Sparse rows are refused: their zeros would save little.

    References
    ----------
    .. [1] E. Weiszfeld & F. Plastria (2009), On the point for which the sum of the distances to n given points is
       minimum, Annals of Operations Research 167, 7-41. https://doi.org/10.1007/s10479-008-0352-z
    .. [2] Y. Vardi & C.-H. Zhang (2000), The multivariate L1-median and associated data depth, PNAS 97, 1423-1426.
       https://doi.org/10.1073/pnas.97.4.1423
    .. [3] H. P. Lopuhaä & P. J. Rousseeuw (1991), Breakdown points of affine equivariant estimators of multivariate
       location and covariance matrices, Annals of Statistics 19, 229-248. https://doi.org/10.1214/aos/1176347978

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMedians
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0], [10, 90]])
    >>> model = KMedians(n_clusters=2, init=X[[0, 3]]).fit(X)
    >>> model.cluster_centers_.tolist()
    [[1.0, 2.0], [10.0, 3.0]]
    >>> model.objective_
    96.0
    >>> model.transform([[9, 1]]).tolist()
    [[9.0, 3.0]]
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        metric="l1",
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
        self.metric = metric
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

    _sparse = False
    _objective = "objective_"
    _powers: ClassVar[dict[str, Powers]] = {
        "cluster_centers_": LENGTHS,
        "objective_": Powers(1, 1),
        "history_": Powers(1, 1),
    }

    def _model(self, summary: Summary | None = None) -> Manhattan | Euclidean:
        if summary is None:
            return METRICS[self.metric](len(self.cluster_centers_))
        tol = float(self.tol) * float(summary.variance.mean())
        return METRICS[self.metric](self.n_clusters, self.init, summary.unit, tol)

    def _check_options(self) -> tuple[int, int, Any]:
        one_of("metric", self.metric, tuple(METRICS))
        return super()._check_options()
