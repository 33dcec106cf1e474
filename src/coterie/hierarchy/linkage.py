"""Agglomerative clustering: the two nearest clusters become one, until one is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.errors import InputError, ParameterError
from coterie.data import opened
from coterie.distances import Distance, as_distance
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import fit_and_prepare
from coterie.hierarchy import given, matrix, points
from coterie.hierarchy.methods import METHODS, Method, Tell
from coterie.kernels.plain.linkage import WARD, Merges

Array = np.ndarray[Any, Any]

LEAN = ("'single'", "'ward'", "'centroid'", "'median'")


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
    r"""Merge the two nearest clusters, again and again, until one is left.

    Every row is a cluster at first. What "nearest" means for clusters A and B is the `method`:

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

    Ward's is the one to begin with for compact clusters: each merge makes the sum of squares rise as little as any can.
    'single' follows chains, and finds clusters of any form that noise does not bridge. Do not use 'centroid' and
    'median' where heights must not fall: a merged cluster may be nearer to a third than either part was.

    Parameters
    ----------
    X : array or frame (n, d), or distances
        The rows; float32 stays float32, which halves time and memory. With ``metric='precomputed'``, a symmetric matrix
        (n, n) of distances or SciPy's condensed vector of them; it is not changed.
    method : {'ward', 'single', 'complete', 'average', 'weighted', 'centroid', 'median'}, default='ward'
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. 'ward', 'centroid' and 'median' have centers, so rows need 'euclidean' (or
        'mahalanobis'); distances that are given are taken for Euclidean ones.
    sample_weight : array (n,), optional
        How many rows each stands for, above 0: a row of weight 2 is two equal rows that have merged. Matters to
        'average', 'centroid' and 'ward'. The last column of the result counts rows, not weights.
    memory : {'auto', 'linear', 'matrix'}, default='auto'
        'single', 'ward', 'centroid' and 'median' of Euclidean rows can do without the matrix of distances. 'auto' does
        so unless there are many columns and few rows, where the matrix is faster.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.
    callback : function, optional
        Called as ``callback(merges done, merges in all)`` now and then.
    **params
        Parameters of the metric.

    Returns
    -------
    array (n - 1, 4)
        SciPy's linkage matrix: row i is the merge of clusters ``Z[i, 0] < Z[i, 1]`` at height ``Z[i, 2]`` into cluster
        n + i, of ``Z[i, 3]`` rows. Clusters below n are the rows of X. All of `scipy.cluster.hierarchy` works on it.

    Notes
    -----
    ======================================  ============  =================================================
    method                                  memory        time
    ======================================  ============  =================================================
    single, ward; few columns               O(n d)        about O(n log n): a tree of boxes
    single, ward, centroid, median          O(n d)        O(n² d)
    complete, average, weighted, any given  n² numbers    O(n²): the chain of nearest neighbours [1]_
    centroid, median on a matrix            n² numbers    O(n²) mostly: the generic algorithm [2]_
    ======================================  ============  =================================================

    'complete', 'average' and 'weighted' of the same float64 distances give SciPy's matrix to the last bit, ties
    included. Elsewhere ties, and what rounding makes of them, may be broken otherwise. A matrix that does not fit into
    memory is refused.

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
    how = _method(method)
    if memory not in ("auto", "linear", "matrix"):
        raise ParameterError(f"memory must be 'auto', 'linear' or 'matrix'; got {memory!r}")
    machine.thread_count(n_jobs)  # refuses what is none
    X = opened(X)
    if isinstance(metric, str) and metric == "precomputed":
        if params or memory == "linear":
            raise ParameterError("metric='precomputed' is a matrix: it takes no parameters, and not memory='linear'")
        D = given.square(X)
        weight, exponent = given.in_range(given.positive_weights(sample_weight, len(D)), D.dtype)
        return _tree(matrix.of_distances(D, how, weight, _teller(callback, len(D) - 1)), how, exponent)
    distance, rows = _ready(X, as_distance(metric, **params), how, method)
    weight, exponent = given.in_range(given.positive_weights(sample_weight, len(rows)), rows.dtype)
    tell = _teller(callback, len(rows) - 1)
    if points.can(how, distance) and points.should(rows, memory):
        merges = points.merges(rows, how, distance, weight, n_jobs, tell)
    elif how.single and (memory == "linear" or (memory == "auto" and not points.fits(rows))):
        merges = points.row_by_row(rows, distance, tell)
    elif memory == "linear":
        raise ParameterError(f"method={method!r} needs all distances: memory='linear' is for {', '.join(LEAN)}")
    else:
        merges = matrix.of_rows(X, rows, how, distance, weight, n_jobs, tell)
    return _tree(merges, how, exponent)


def _method(name: Any) -> Method:
    if not isinstance(name, str) or name not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(map(repr, METHODS))}; got {name!r}")
    return METHODS[name]


def _ready(X: Any, distance: Distance, how: Method, method: str) -> tuple[Distance, Any]:
    """The distance, once it has learned from the rows, and the rows as it takes them."""
    if not distance.symmetric:
        raise ParameterError(f"metric={distance.name!r} is not symmetric: trees of merges need d(x, y) = d(y, x)")
    if how.squared and not (isinstance(distance, Euclidean) and distance.root):
        raise ParameterError(
            f"method={method!r} joins centers, which metric={distance.name!r} does not have: use metric='euclidean', "
            "or method='average'"
        )
    distance, rows, _ = fit_and_prepare(distance, X)
    if isinstance(distance, Euclidean) and distance.exponent_:  # merges choose a unit of their own
        rows = np.ldexp(rows, distance.exponent_)
        distance = distance.up_to_scale()
    if len(rows) < 2:
        raise InputError(f"X has {len(rows)} row: there is nothing to merge; pass at least 2")
    return distance, rows


def _teller(callback: Callable[[int, int], Any] | None, total: int) -> Tell:
    if callback is None:
        return lambda done: None
    if not callable(callback):
        raise ParameterError(f"callback must be a function of two numbers, merges done and in all; got {callback!r}")
    return lambda done: callback(done, total) and None


def _tree(merges: Merges, how: Method, exponent: int) -> Array:
    """SciPy's matrix: merges by their height, if they rise, and clusters numbered in that order.

    Weights were divided by 2^exponent, with whose root the heights of Ward's method grow.
    """
    n = len(merges.height) + 1
    if how.kind == WARD and exponent:
        merges = merges._replace(height=points.in_units(merges.height, exponent // 2))
    if not np.isfinite(merges.height).all():
        raise InputError("distances of X are too large for its numbers: scale the columns, or pass float64")
    if how.rises:
        order = np.argsort(merges.height, kind="stable")
        merges = Merges(*(values[order] for values in merges))
    tree: Array = kernels.select("linkage", n, 1).labelled(merges, n)
    return tree
