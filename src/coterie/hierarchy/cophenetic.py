"""Cophenetic distances: the height of the lowest merge that contains two leaves."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arguments import one_of
from coterie.distances.pairwise import strips
from coterie.errors import InputError
from coterie.hierarchy.condensed import UpperRows, as_square_or_condensed, row_start, upper_rows, upper_rows_of
from coterie.hierarchy.tree import Tree, as_tree

REMEDY = "use dtype='float32', or cophenetic_correlation, which does not store the distances"

ROUNDING = 1e-13  # relative differences below this are attributed to rounding


def cophenet(Z: Any, Y: Any = None, *, dtype: Any = "float64", n_jobs: int | None = None) -> Any:
    """Compute the cophenetic distances of all pairs of leaves, and their correlation with the distances `Y`.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.
    Y : array (n (n - 1) / 2,) or (n, n), optional
        The distances from which the tree was computed, condensed or square.
    dtype : {'float64', 'float32'}, default='float64'
        Type of the result.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.

    Returns
    -------
    d : array (n (n - 1) / 2,)
        Condensed cophenetic distances: those of leaf 0 to all later leaves, then those of leaf 1, and so on.
    (c, d)
        If `Y` is given: the cophenetic correlation coefficient and the distances, as in SciPy.

    Notes
    -----
    Takes n² / 2 steps, in strips of rows on all threads.

    References
    ----------
    R. R. Sokal, F. J. Rohlf (1962), The comparison of dendrograms by objective methods, Taxon 11 (2).
    https://doi.org/10.2307/1217208

    Examples
    --------
    >>> from coterie.hierarchy import cophenet
    >>> cophenet([[0, 2, 1.0, 2], [1, 3, 4.0, 3]])
    array([4., 1., 4.])
    """
    tree = as_tree(Z)
    n = tree.n_leaves
    dtype = np.dtype(one_of("dtype", np.dtype(dtype).name, ("float64", "float32")))
    pairs = row_start(n, n)
    machine.check_memory(pairs * dtype.itemsize, f"{pairs} cophenetic distances", REMEDY)
    distances = np.empty(pairs, dtype)
    heights = _common_heights(tree)

    def strip(start: int, stop: int) -> None:
        heights(start, stop, distances[row_start(n, start) : row_start(n, stop)])

    machine.run_in_threads(strip, strips(n, n), n_jobs)
    if Y is None:
        return distances
    return _correlation(tree, upper_rows_of(as_square_or_condensed(Y, n, "Y"), n), n_jobs), distances


def cophenetic_correlation(
    Z: Any, X: Any, metric: Any = "euclidean", *, n_jobs: int | None = None, **params: Any
) -> float:
    r"""Compute the correlation between the cophenetic distances of a tree and the distances of its rows.

    .. math:: \frac{\sum_{i<j} (d_{ij} - \bar d) (c_{ij} - \bar c)}
              {\sqrt{\sum_{i<j} (d_{ij} - \bar d)^2 \sum_{i<j} (c_{ij} - \bar c)^2}}

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.
    X : array or frame (n, d); distances (n (n - 1) / 2,), or (n, n) for metric='precomputed'
        The rows or distances from which the tree was computed.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.
    **params
        Parameters of the metric.

    Returns
    -------
    float

    Notes
    -----
    Computes n² / 2 distances of both kinds in strips, and stores none of them.

    Examples
    --------
    >>> from coterie.hierarchy import cophenetic_correlation
    >>> round(cophenetic_correlation([[0, 1, 1.0, 2], [2, 3, 8.5, 3]], [[0.0], [1.0], [9.0]]), 4)
    0.9934
    """
    tree = as_tree(Z)
    with machine.one_blas_thread:
        return _correlation(tree, upper_rows(X, tree.n_leaves, metric, params), n_jobs)


def _common_heights(tree: Tree) -> Callable[[int, int, np.ndarray], None]:
    """A function that writes the heights of the lowest common ancestors of some leaves and all later leaves."""
    nodes = tree.parent, tree.siblings(), tree.size, tree.first, tree.height
    kernel = kernels.select("dendrograms", tree.n_leaves).cophenetic_rows

    def rows(start: int, stop: int, out: np.ndarray) -> None:
        kernel(*nodes, start, stop, np.empty(tree.n_leaves, out.dtype), out)

    return rows


def _correlation(tree: Tree, distances: UpperRows, n_jobs: int | None) -> float:
    """The correlation; moments of cophenetic distances follow from merges and sizes, without a pass over pairs."""
    n = tree.n_leaves
    if n < 3:
        raise InputError(f"Z has {n} leaves: a correlation needs at least 3")
    pairs = (tree.size[tree.left] * tree.size[tree.right]).astype(np.float64)
    mean_height = float(pairs @ tree.height / pairs.sum())
    step = partial(_moments, _common_heights(tree), distances, mean_height)
    bounds = [(start, min(stop, n - 1)) for start, stop in strips(n, n) if start < n - 1]
    count, mean, squares, excess, products = np.array(machine.run_in_threads(step, bounds, n_jobs)).T
    mean_distance = float(count @ mean / count.sum())
    distance_scatter = float((squares + count * (mean - mean_distance) ** 2).sum())
    co_scatter = float((products + (mean - mean_distance) * excess).sum())
    height_scatter = float(pairs @ (tree.height - mean_height) ** 2)
    checks = (("heights of Z", height_scatter, mean_height), ("distances", distance_scatter, mean_distance))
    for name, scatter, level in checks:
        if scatter <= pairs.sum() * (ROUNDING * level) ** 2:
            raise InputError(f"all {name} are equal: a correlation needs values that differ")
    return co_scatter / float(np.sqrt(height_scatter * distance_scatter))


def _moments(
    heights: Callable[[int, int, np.ndarray], None], distances: UpperRows, mean_height: float, start: int, stop: int
) -> tuple[float, ...]:
    """Moments of the pairs in a strip of rows.

    These are: their number; mean and scatter of the distances d; the sum of the cophenetic distances c minus
    `mean_height`; and the sum of products of these with d minus its mean.
    """
    d = distances(start, stop).astype(np.float64)
    c = np.empty(len(d))
    heights(start, stop, c)
    c -= mean_height
    mean = float(d.mean())
    d -= mean
    return float(len(d)), mean, float(d @ d), float(c.sum()), float(c @ d)
