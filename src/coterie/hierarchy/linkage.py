"""The linkage matrix of agglomerative clustering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.data import opened
from coterie.distances import Distance, as_distance
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import fit_and_prepare
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import linkage_from_matrix, linkage_from_rows
from coterie.hierarchy.linkage_input import positive_weights, scaled_weights, symmetric_matrix
from coterie.hierarchy.linkage_methods import METHODS, Method, Progress
from coterie.kernels.plain.linkage import WARD, Merges

Array = np.ndarray[Any, Any]

LINEAR_MEMORY = ("'single'", "'ward'", "'centroid'", "'median'")


def linkage(
    X: Any,
    method: str = "ward",
    metric: Any = "euclidean",
    *,
    sample_weight: Any = None,
    memory: str = "auto",
    n_jobs: int | None = None,
    callback: Callable[[int, int], Any] | None = None,
    **params: Any,
) -> Array:
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

    Start with 'ward' for compact clusters: each merge increases the sum of squares within clusters as little as
    possible. 'single' finds clusters of any shape, but joins two clusters if a chain of noise rows lies between them.
    Do not use 'centroid' or 'median' if heights must not decrease: a merged cluster may be nearer to a third cluster
    than each of its parts was.

    Parameters
    ----------
    X : array or frame (n, d), or distances
        The rows. float32 input is computed in float32, which halves time and memory. With ``metric='precomputed'``, a
        symmetric matrix (n, n) of distances, or SciPy's condensed vector. It is not modified.
    method : {'ward', 'single', 'complete', 'average', 'weighted', 'centroid', 'median'}, default='ward'
        Distance between clusters, see the formulas above.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. 'ward', 'centroid' and 'median' use centers of clusters: rows require
        'euclidean' or 'mahalanobis', and precomputed distances are assumed to be Euclidean.
    sample_weight : array (n,), optional
        Weights of the rows, above 0. A row of weight 2 is equivalent to two equal rows that are already merged. Used by
        'average', 'centroid' and 'ward'. The last column of the result counts rows, not weights.
    memory : {'auto', 'linear', 'matrix'}, default='auto'
        Whether to compute the matrix of distances. 'single', 'ward', 'centroid' and 'median' of Euclidean rows do not
        need it. 'auto' computes it for many columns and few rows, where it is faster.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.
    callback : function, optional
        Called from time to time as ``callback(merges_done, merges_total)``.
    **params
        Parameters of the metric.

    Returns
    -------
    array (n - 1, 4)
        Linkage matrix in SciPy's format. Row i merges clusters ``Z[i, 0] < Z[i, 1]`` at height ``Z[i, 2]`` into cluster
        n + i of ``Z[i, 3]`` rows. Clusters 0 to n - 1 are the rows of X. The functions of `scipy.cluster.hierarchy`
        accept it.

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
    fit into memory, an error is raised before the computation starts.

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
    """
    if not isinstance(method, str) or method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
    if memory not in ("auto", "linear", "matrix"):
        raise ParameterError(f"memory must be 'auto', 'linear' or 'matrix'; got {memory!r}")
    machine.thread_count(n_jobs)  # rejects invalid values before the computation starts
    rule = METHODS[method]
    X = opened(X)
    if isinstance(metric, str) and metric == "precomputed":
        if params or memory == "linear":
            raise ParameterError(
                "metric='precomputed' does not support metric parameters or memory='linear': leave these arguments out"
            )
        D = symmetric_matrix(X)
        weight, exponent = scaled_weights(positive_weights(sample_weight, len(D)), D.dtype)
        merges = linkage_from_matrix.merge_distances(D, rule, weight, _as_progress(callback, len(D) - 1))
        return _linkage_matrix(merges, rule, exponent)
    distance, rows = _prepared(X, as_distance(metric, **params), method)
    weight, exponent = scaled_weights(positive_weights(sample_weight, len(rows)), rows.dtype)
    progress = _as_progress(callback, len(rows) - 1)
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
        merges = linkage_from_matrix.merge_rows(X, rows, rule, distance, weight, n_jobs, progress)
    return _linkage_matrix(merges, rule, exponent)


def _prepared(X: Any, distance: Distance, method: str) -> tuple[Distance, Any]:
    """The distance, fitted to the rows, and the rows prepared for it."""
    if not distance.symmetric:
        raise ParameterError(
            f"metric={distance.name!r} is not symmetric: linkage needs d(x, y) = d(y, x); use a symmetric metric"
        )
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
    return distance, rows


def _as_progress(callback: Callable[[int, int], Any] | None, total: int) -> Progress:
    if callback is None:
        return lambda done: None
    if not callable(callback):
        raise ParameterError(
            f"callback must be None or a function of two numbers, merges_done and merges_total; got {callback!r}"
        )
    return lambda done: callback(done, total) and None


def _linkage_matrix(merges: Merges, rule: Method, exponent: int) -> Array:
    """Sort the merges by height, if heights never fall, and number the clusters in that order.

    Weights were divided by 2^exponent. Heights of Ward's method are proportional to the square root of the weights.
    """
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
    Z: Array = kernels.select("linkage", n, 1).linkage_matrix(merges, n)
    return Z
