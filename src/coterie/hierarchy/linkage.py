"""The linkage matrix of agglomerative clustering."""

import warnings
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arguments import one_of
from coterie.core.arrays import Array
from coterie.core.progress import Callback, check_callback, report_to
from coterie.core.progress_bar import with_verbose
from coterie.data import opened
from coterie.data.scale_check import unsafe_exponent
from coterie.distances import Distance, as_distance, pairwise
from coterie.distances.distance import check_symmetric
from coterie.distances.euclidean import Euclidean, SquaredEuclidean
from coterie.distances.pairwise import check_values, fill, fit_and_prepare, strips
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import linkage_from_rows
from coterie.hierarchy.condensed import empty_matrix, is_precomputed, positive_weights, scaled_weights, symmetric_matrix
from coterie.hierarchy.linkage_from_rows import rescale_heights, scale_to_unit
from coterie.hierarchy.linkage_matrix import LinkageMatrix
from coterie.hierarchy.linkage_methods import METHODS, Method, ReportMerges
from coterie.hierarchy.optimal_leaf_ordering import optimal_leaf_ordering
from coterie.kernels.plain.linkage import AVERAGE, CENTROID, COMPLETE, WARD, Merges

LINEAR_MEMORY = ("'single'", "'ward'", "'centroid'", "'median'")


@with_verbose
def linkage(
    X: Any,
    method: str = "single",
    metric: Any = "euclidean",
    optimal_ordering: bool = False,
    *,
    sample_weight: Any = None,
    memory: str = "auto",
    n_jobs: int | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    **params: Any,
) -> np.ndarray:
    r"""Compute the linkage matrix: merge the two nearest clusters until one is left.

    At first every row is a cluster. `method` defines the distance between two clusters A and B:

    .. math::

       \begin{aligned}
       \text{single}   &: \min_{a \in A, b \in B} d(a, b) &
       \text{complete} &: \max_{a \in A, b \in B} d(a, b) \\
       \text{average}  &: \tfrac{1}{|A||B|} \sum_{a, b} d(a, b) &
       \text{weighted} &: \tfrac12 \bigl(d(A_1, B) + d(A_2, B)\bigr),\ A = A_1 \cup A_2 \\
       \text{centroid} &: \lVert \mu_A - \mu_B \rVert &
       \text{median}   &: \text{the same, } \mu_A = \tfrac12 (\mu_{A_1} + \mu_{A_2}) \\
       \text{ward}     &: \Bigl(\tfrac{2 |A| |B|}{|A| + |B|}\Bigr)^{1/2} \lVert \mu_A - \mu_B \rVert
       \end{aligned}

    The default 'single' is that of SciPy, so that the same call gives the same tree. It finds clusters of any shape,
    but joins two clusters if a chain of noise rows lies between them. For compact clusters, start with 'ward', the
    default of `AgglomerativeClustering`: each merge increases the sum of squares within clusters as little as possible.
    Do not use 'centroid' or 'median' if heights must not decrease: a merged cluster may be nearer to a third cluster
    than each of its parts was.

    Parameters
    ----------
    X : array or frame (n, d), or distances
        The rows. float32 input is computed in float32, which halves time and memory. An array with one dimension is a
        condensed distance matrix, as SciPy's `pdist` returns it; `metric` is then ignored. A symmetric matrix (n, n) of
        distances needs ``metric='precomputed'``: without it, its rows are clustered, with a warning. `X` is not
        modified.
    method : {'single', 'complete', 'average', 'weighted', 'centroid', 'median', 'ward'}, default='single'
        Distance between clusters, see the formulas above.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. 'ward', 'centroid' and 'median' use centers of clusters: rows require
        'euclidean' or 'mahalanobis', and precomputed distances are assumed to be Euclidean.
    optimal_ordering : bool, default=False
        Order the two clusters of each merge by `optimal_leaf_ordering`, so that adjacent leaves of a dendrogram are
        near to each other.
    sample_weight : array (n,), optional
        Weights of the rows, above 0. A row of weight 2 is equivalent to two equal rows that are already merged. Used by
        'average', 'centroid' and 'ward'. The last column of the result counts rows, not weights.
    memory : {'auto', 'linear', 'matrix'}, default='auto'
        Whether to compute the matrix of distances. 'single', 'ward', 'centroid' and 'median' of Euclidean rows do not
        need it. 'auto' computes it for many columns and few rows, where it is faster.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.
    callback : function, optional
        Called from time to time with a `coterie.core.progress.Progress`, whose `done` and `total` count merges. If it
        returns True, `KeyboardInterrupt` is raised, because a part of a tree is not a result.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every step.
    **params
        Parameters of the metric.

    Returns
    -------
    array (n - 1, 4)
        Linkage matrix in SciPy's format; notebooks show its dendrogram. Row i merges clusters ``Z[i, 0] < Z[i, 1]`` at
        height ``Z[i, 2]`` into cluster n + i of ``Z[i, 3]`` rows. Clusters 0 to n - 1 are the rows of X. With
        `optimal_ordering`, ``Z[i, 0]`` may be the larger number. The functions of `scipy.cluster.hierarchy` accept it.

    Notes
    -----
    ======================================  ============  =================================================
    method                                  memory        time
    ======================================  ============  =================================================
    single, ward; few columns               O(n d)        about O(n log n): tree of bounding boxes
    single, ward, centroid, median          O(n d)        O(n² d)
    complete, average, weighted; matrix     n² numbers    O(n²): nearest-neighbour chain [1]_
    centroid, median on a matrix            n² numbers    O(n²) in most cases: generic algorithm [2]_
    ======================================  ============  =================================================

    For the same float64 distances, 'complete', 'average' and 'weighted' return exactly SciPy's matrix, also for ties.
    The other methods may break ties, and near ties due to rounding, in another way. If the matrix of distances does not
    fit into memory, an error is raised before the computation starts. For Euclidean distances of up to 24 columns, only
    those rows of it are computed that are needed at the same time: a quarter or less in most cases.

    References
    ----------
    .. [1] Murtagh (1983), A survey of recent advances in hierarchical clustering algorithms, The Computer Journal
       26(4), https://doi.org/10.1093/comjnl/26.4.354
    .. [2] Müllner (2011), Modern hierarchical, agglomerative clustering algorithms, https://arxiv.org/abs/1109.2378

    Examples
    --------
    >>> from coterie.hierarchy import linkage
    >>> linkage([[0.0], [1.0], [5.0], [7.0]], "single")
    array([[0., 1., 1., 2.],
           [2., 3., 2., 2.],
           [4., 5., 4., 4.]])
    >>> from scipy.spatial.distance import pdist
    >>> linkage(pdist([[0.0], [1.0], [5.0]]), "average")
    array([[0. , 1. , 1. , 2. ],
           [2. , 3. , 4.5, 3. ]])
    """
    if not isinstance(method, str) or method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
    one_of("memory", memory, ("auto", "linear", "matrix"))
    machine.thread_count(n_jobs)  # rejects invalid values before the computation starts
    rule, callback = METHODS[method], check_callback(callback)
    X = opened(X)
    if is_precomputed(X, metric, params):
        if memory == "linear":
            raise ParameterError("memory='linear' does not support precomputed distances: use memory='auto'")
        D = symmetric_matrix(X)
        weight, exponent = scaled_weights(positive_weights(sample_weight, len(D)), D.dtype)
        merges = merge_distances(D, rule, weight, report_to(callback, "merge", len(D) - 1))
    else:
        merges, exponent = _merge_rows(
            X, as_distance(metric, **params), method, sample_weight, memory, n_jobs, callback
        )
    Z = _linkage_matrix(merges, rule, exponent)
    Z = optimal_leaf_ordering(Z, X, metric, n_jobs=n_jobs, **params) if optimal_ordering else Z
    return LinkageMatrix.of(Z, method)


def _merge_rows(
    X: Any,
    distance: Distance,
    method: str,
    sample_weight: Any,
    memory: str,
    n_jobs: int | None,
    callback: Callback | None,
) -> tuple[Merges, int]:
    """The merges of rows, and the exponent of 2 by which their weights were divided."""
    rule = METHODS[method]
    distance, rows = _prepared(X, distance, method)
    weight, exponent = scaled_weights(positive_weights(sample_weight, len(rows)), rows.dtype)
    progress = report_to(callback, "merge", len(rows) - 1)
    if linkage_from_rows.is_supported(rule, distance) and linkage_from_rows.is_preferred(rows, memory):
        merges = linkage_from_rows.merge_rows(rows, rule, distance, weight, n_jobs, progress)
    elif rule.is_single and (memory == "linear" or (memory == "auto" and not linkage_from_rows.matrix_is_small(rows))):
        merges = linkage_from_rows.prim_by_rows(rows, distance, progress)
    elif memory == "linear":
        raise ParameterError(
            f"method={method!r} needs all distances: memory='linear' supports only {', '.join(LINEAR_MEMORY)}; "
            "use memory='auto'"
        )
    else:
        merges = merge_all_pairs(X, rows, rule, distance, weight, n_jobs, progress)
    return merges, exponent


def _prepared(X: Any, distance: Distance, method: str) -> tuple[Distance, Any]:
    """The distance, fitted to the rows, and the rows prepared for it."""
    check_symmetric(distance, "linkage needs d(x, y) = d(y, x)")
    if METHODS[method].squared and not (isinstance(distance, Euclidean) and distance.root):
        raise ParameterError(
            f"method={method!r} needs centers of clusters, which metric={distance.name!r} does not define: use "
            "metric='euclidean', or method='average'"
        )
    distance, rows, _ = fit_and_prepare(distance, X)
    if isinstance(distance, Euclidean) and distance.exponent_:  # the kernels choose their own unit
        rows = np.ldexp(rows, distance.exponent_)
        distance = distance.up_to_scale()
    if len(rows) < 2:
        raise InputError(f"X has {len(rows)} row: there is nothing to merge; pass at least 2")
    if isinstance(rows, np.ndarray) and rows.shape == (len(rows), len(rows)) and _looks_like_distances(np.asarray(X)):
        from scipy.cluster.hierarchy import ClusterWarning

        warnings.warn(
            f"X looks like a distance matrix of {len(rows)} rows, but its rows are clustered: pass "
            "metric='precomputed', or the condensed matrix squareform(X)",
            ClusterWarning,
            stacklevel=5,
        )
    return distance, rows


def _looks_like_distances(X: np.ndarray) -> bool:
    """Whether a square matrix is symmetric and not negative, with a zero diagonal."""
    return not np.diagonal(X).any() and bool((X >= 0).all() and X.any() and np.allclose(X, X.T))


def _linkage_matrix(merges: Merges, rule: Method, exponent: int) -> np.ndarray:
    """Sort merges by height if heights never fall, and number clusters; weights were divided by 2^exponent."""
    n = len(merges.height) + 1
    if rule.kind == WARD and exponent:
        merges = merges._replace(height=linkage_from_rows.rescale_heights(merges.height, exponent // 2))
    if not np.isfinite(merges.height).all():
        raise InputError(
            "distances between rows of X are not finite in the type of X: divide the columns by their scale, or pass "
            "float64"
        )
    if rule.is_monotone:
        order = np.argsort(merges.height, kind="stable")
        merges = Merges(*(values[order] for values in merges))
    return kernels.select("linkage", n, 1).linkage_matrix(merges, n)


# Agglomerative clustering with a full matrix of distances.

# Up to this number of columns, distances are computed when they are needed: in less memory, and not slower.
FEW_COLUMNS = 24


def merge_all_pairs(
    X: Any, rows: Any, method: Method, distance: Distance, weight: Array, n_jobs: int | None, progress: ReportMerges
) -> Merges:
    """Compute the distances of the rows of `X`, and merge; `rows` are these rows prepared for the distance."""
    D = empty_matrix(len(rows), rows.dtype)
    if isinstance(distance, Euclidean) and distance.root:
        unit_rows, exponent = scale_to_unit(rows)
        if method.kind in (COMPLETE, AVERAGE) and rows.shape[1] <= FEW_COLUMNS:
            kernel = kernels.select("linkage", *rows.shape)
            merges: Merges = kernel.nearest_neighbour_chain_of_rows(
                unit_rows, D, weight, method.kind, method.equal, progress
            )
            return merges._replace(height=rescale_heights(merges.height, exponent))
        fill(SquaredEuclidean() if method.squared else Euclidean(), unit_rows, unit_rows, D, n_jobs)
    else:
        pairwise(X, metric=distance, out=D, n_jobs=n_jobs)
        check_values(D, "distances")
        exponent = _scale_distances(D, method)
    d = rows.shape[1] if isinstance(rows, np.ndarray) else len(rows)
    return _merge(D, method, weight, exponent, d, progress)


def merge_distances(D: Array, method: Method, weight: Array, progress: ReportMerges) -> Merges:
    """Merge by precomputed distances, which are overwritten."""
    exponent = _scale_distances(D, method)
    if method.squared:
        np.multiply(D, D, out=D)
    return _merge(D, method, weight, exponent, 1, progress)


def _merge(D: Array, method: Method, weight: Array, exponent: int, d: int, progress: ReportMerges) -> Merges:
    """Merge by `D`, distances of rows with `d` columns divided by 2^exponent; squared if the method needs it."""
    kernel = kernels.select("linkage", len(D), d)
    if method.is_single:
        merges: Merges = kernel.prim(D)
        progress(len(D) - 1)
    elif method.kind == CENTROID:
        merges = kernel.generic_linkage(D, weight, method.equal, progress)
    else:
        if method.kind == WARD and (weight != 1).any():
            _weight_squares(D, weight)
        merges = kernel.nearest_neighbour_chain(D, weight, method.kind, method.equal, progress)
    height = np.sqrt(merges.height) if method.squared else merges.height
    return merges._replace(height=rescale_heights(height, exponent))


def _scale_distances(D: Array, method: Method) -> int:
    """Divide distances by a power of 2 if a method adds them and sums could overflow; return the exponent."""
    if method.kind in (None, COMPLETE):
        return 0
    largest = float(D.max(initial=0.0))
    exponent = int(np.frexp(largest)[1]) if method.squared else unsafe_exponent(largest, D.dtype)
    if exponent:
        np.ldexp(D, -exponent, out=D)
    return exponent


def _weight_squares(D: Array, weight: Array) -> None:
    """Replace squared distances of rows by Ward's distances of clusters that have these weights."""
    for start, stop in strips(*D.shape):
        w = weight[start:stop, None]
        D[start:stop] *= (2 * w * (weight / (w + weight))).astype(D.dtype)
