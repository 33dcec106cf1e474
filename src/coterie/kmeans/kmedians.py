"""K-medians: centers that are medians of their rows, for distances that are not squared."""

from dataclasses import dataclass
from typing import Any, ClassVar

from coterie.base import CENTERS_STORED, Summary, powers_of_fit
from coterie.core.arguments import one_of
from coterie.core.scale import Powers
from coterie.core.stored import stored
from coterie.kmeans.center_estimator import CenterEstimator
from coterie.kmeans.median_models import Euclidean, Manhattan

METRICS = {"l1": Manhattan, "l2": Euclidean}


@stored(**CENTERS_STORED)
@dataclass(eq=False, repr=False, kw_only=True)
class KMedians(CenterEstimator):
    r"""K-medians clustering: find `n_clusters` centers that minimise the distances of the rows to them, not squared.

    .. math:: J = \sum_i w_i \min_k \lVert x_i - \mu_k \rVert

    With ``metric="l1"`` the norm is :math:`\sum_t |x_t - \mu_t|`, and centers are medians, column by column. With
    ``metric="l2"`` it is the Euclidean norm, and centers are geometric medians, found by Weiszfeld's algorithm [1]_
    with the correction of [2]_ for centers on rows. Each iteration assigns rows to their nearest center, then moves
    each center to the median of its rows. The objective never increases. The result is a local optimum.

    Use it for data with outliers. A row that is ten times as far has no more influence on a center, so a center breaks
    down only if half of its cluster is corrupted [3]_. But a row far from all others is costly, and may become a
    cluster of its own if that minimises the objective. Use `KMedoids` if centers must be rows, or if only distances are
    known. For normally distributed clusters without outliers, `KMeans` is faster and its centers vary less. With "l1",
    do not rotate the rows: the distance depends on the axes.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of centers.
    metric : {'l1', 'l2'}, default='l1'
        Distance, which also determines the kind of median.
    init : {'auto', 'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array or callable
        Initialisation method, or the initial centers, as in `KMeans`. Default: 'auto'. 'farthest' chooses outliers
        first.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' is 10 for 'forgy', 'random', 'random_partition' and
        callables, and 1 for the others. A search has more, up to 16 ('thorough': 64, or `n_init` if it is a number).
    search : {'auto', 'none', 'thorough'}, default='auto'
        Search for a better optimum than one initialisation finds. It runs several initialisations until some agree.
        Otherwise it swaps centers for rows and continues the iterations from there; then several centers jump at
        random, and the swaps start again. 'auto' takes about as long as two or three plain fits. It applies to dense
        or small sparse rows on the CPU if `n_init` is 'auto' and `init` is 'auto' or 'k-means++'; otherwise it is
        'none'. If rows x columns x clusters exceed about 2 million, a random sample of the rows is searched for the
        initial centers. 'thorough' searches up to about a hundred times as long, with any `init`. 'none' only runs the
        `n_init` initialisations. Work is counted, so the result does not depend on the speed of the machine. `history_`
        begins with the start from which the best solution was found.
    max_iter : int, default=300
        Maximum number of iterations of one run.
    tol : float, default=1e-4
        Relative tolerance. Iterations stop when the squared movement of all centers falls below `tol` times the mean
        variance of the columns. With "l1" they also stop when no row changes its cluster, with "l2" when the objective
        decreases by no more than rounding.
    engine, n_jobs, random_state, callback, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        Centers, in the dtype of the data.
    labels_ : array (n,) of int32
        Cluster of each row. `predict` returns the same labels for the same rows.
    objective_ : float
        J at exactly `cluster_centers_`. There is no `inertia_`, which would be a sum of squares.
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
    If half of the weight of a cluster falls between two values, the median is the mean of the two. Medians are exact
    and found by counting. An iteration with "l1" costs 3 n d k operations, a few passes of about 10 n d operations, and
    memory for the labels and 16 counts per cluster and column. With "l2" it costs one iteration of K-means and up to
    eleven passes of 6 n d operations, most of them steps of Weiszfeld's algorithm. Rows on a line may have many
    geometric medians; one of them is found. Empty clusters are moved as in `KMeans`. Sparse rows are rejected: sparsity
    would save little.

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

    metric: str = "l1"
    search: str = "auto"

    _sparse = False
    _objective = "objective_"
    _powers: ClassVar[dict[str, Powers]] = powers_of_fit("objective_", Powers(1, 1))

    def _model(self, summary: Summary | None = None) -> Manhattan | Euclidean:
        one_of("metric", self.metric, tuple(METRICS))
        if summary is None:
            return METRICS[self.metric](len(self.cluster_centers_))
        return METRICS[self.metric](self.n_clusters, self.init, summary.unit, summary.tolerance(self.tol))

    def _check_options(self) -> tuple[int, int, Any]:
        one_of("metric", self.metric, tuple(METRICS))
        return super()._check_options()
