"""Cophenetic distances: how high in the tree two leaves meet."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arguments import one_of
from coterie.core.errors import InputError
from coterie.distances.pairwise import strips
from coterie.hierarchy.condensed import UpperRows, as_square_or_condensed, row_start, upper_rows, upper_rows_of
from coterie.hierarchy.tree import Array, Tree, as_tree

REMEDY = "ask for dtype='float32', or for cophenetic_correlation, which keeps none of them"

ROUNDING = 1e-13  # numbers that differ by less, of their size, are taken for equal


def cophenet(Z: Any, Y: Any = None, *, dtype: Any = "float64", n_jobs: int | None = None) -> Any:
    """The heights at which all pairs of leaves are first together, and how well they agree with distances `Y`.

    Parameters
    ----------
    Z : array (n - 1, 4)
        The tree.
    Y : array (n (n - 1) / 2,) or (n, n), optional
        The distances that the tree was made of, condensed or square.
    dtype : {'float64', 'float32'}, default='float64'
        Of the result.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Returns
    -------
    d : array (n (n - 1) / 2,)
        Cophenetic distances, condensed: those of leaf 0 to all later ones, then those of leaf 1, and so on.
    (c, d)
        With `Y`: before that, their correlation with `Y`, as SciPy has it.

    Notes
    -----
    n² / 2 steps, in strips of rows on all threads.

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
    kind = np.dtype(one_of("dtype", np.dtype(dtype).name, ("float64", "float32")))
    pairs = row_start(n, n)
    machine.check_room(pairs * kind.itemsize, f"{pairs} cophenetic distances", REMEDY)
    found = np.empty(pairs, kind)
    step = partial(_rows_into, _Meetings(tree), found)
    for _ in machine.in_threads(step, strips(n, n), n_jobs):
        pass
    if Y is None:
        return found
    return _correlation(tree, upper_rows_of(as_square_or_condensed(Y, n, "Y"), n), n_jobs), found


def cophenetic_correlation(
    Z: Any, X: Any, metric: Any = "euclidean", *, n_jobs: int | None = None, **params: Any
) -> float:
    r"""How well a tree keeps the distances it was made of: the correlation of cophenetic distances with them.

    .. math:: \frac{\sum_{i<j} (d_{ij} - \bar d) (c_{ij} - \bar c)}
              {\sqrt{\sum_{i<j} (d_{ij} - \bar d)^2 \sum_{i<j} (c_{ij} - \bar c)^2}}

    Parameters
    ----------
    Z : array (n - 1, 4)
        The tree.
    X : array or frame (n, d); distances (n, n) or (n (n - 1) / 2,) for metric='precomputed'
        The rows it was made of.
    metric, **params
        As in `coterie.distances.pairwise`.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Notes
    -----
    n² / 2 distances of both kinds are made, strip by strip, and none is kept.

    Examples
    --------
    >>> from coterie.hierarchy import cophenetic_correlation
    >>> round(cophenetic_correlation([[0, 1, 1.0, 2], [2, 3, 8.5, 3]], [[0.0], [1.0], [9.0]]), 4)
    0.9934
    """
    tree = as_tree(Z)
    with machine.one_blas_thread:
        return _correlation(tree, upper_rows(X, tree.n_leaves, metric, params), n_jobs)


class _Meetings:
    """The heights at which some leaves of a tree meet all later ones."""

    def __init__(self, tree: Tree):
        self.n = tree.n_leaves
        self.where = tree.parent, tree.siblings(), tree.size, tree.first, tree.height

    def rows(self, start: int, stop: int, out: Array) -> None:
        line = np.empty(self.n, out.dtype)
        kernels.select("trees", self.n).cophenetic_rows(*self.where, start, stop, True, line, out)


def _rows_into(meetings: _Meetings, found: Array, start: int, stop: int) -> None:
    meetings.rows(start, stop, found[row_start(meetings.n, start) : row_start(meetings.n, stop)])


def _correlation(tree: Tree, distances: UpperRows, n_jobs: int | None) -> float:
    """Cophenetic distances need no look at pairs for their own mean and variance: merges and sizes tell them."""
    n = tree.n_leaves
    if n < 3:
        raise InputError(f"Z has {n} leaves: a correlation needs three at least")
    pairs = (tree.size[tree.left] * tree.size[tree.right]).astype(np.float64)
    meeting = float(pairs @ tree.height / pairs.sum())
    step = partial(_moments, _Meetings(tree), distances, meeting)
    bounds = [(start, min(stop, n - 1)) for start, stop in strips(n, n) if start < n - 1]
    count, mean, squares, excess, products = np.array(list(machine.in_threads(step, bounds, n_jobs))).T
    middle = float(count @ mean / count.sum())
    apart = float((squares + count * (mean - middle) ** 2).sum())
    together = float((products + (mean - middle) * excess).sum())
    spread = float(pairs @ (tree.height - meeting) ** 2)
    for what, variance, level in (("heights of Z", spread, meeting), ("distances", apart, middle)):
        if variance <= pairs.sum() * (ROUNDING * level) ** 2:
            raise InputError(f"all {what} are equal: they have no correlation with anything")
    return together / float(np.sqrt(spread * apart))


def _moments(meetings: _Meetings, distances: UpperRows, meeting: float, start: int, stop: int) -> tuple[float, ...]:
    """Of the pairs of a strip: their number, the mean of their distances and squares about it; cophenetic distances
    beyond `meeting`, summed, and summed times distances beyond their mean."""
    d = distances(start, stop).astype(np.float64)
    c = np.empty(len(d))
    meetings.rows(start, stop, c)
    c -= meeting
    mean = float(d.mean())
    d -= mean
    return float(len(d)), mean, float(d @ d), float(c.sum()), float(c @ d)
