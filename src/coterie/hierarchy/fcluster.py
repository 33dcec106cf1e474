"""Flat clusters of a tree, with the arguments and labels of SciPy."""

from typing import Any

import numpy as np
from scipy.cluster import hierarchy

from coterie.core.arguments import not_negative, one_of, whole_number
from coterie.errors import InputError, ParameterError
from coterie.hierarchy.cut import cut, inconsistent
from coterie.hierarchy.tree import as_tree, check_tree

CRITERIA = ("inconsistent", "distance", "maxclust", "monocrit", "maxclust_monocrit")


def fcluster(
    Z: Any, t: float, criterion: str = "inconsistent", depth: int = 2, R: Any = None, monocrit: Any = None
) -> np.ndarray:
    """Cut a tree into clusters: SciPy's `fcluster`, with the same labels.

    `cut` does the same with one argument for each criterion, labels from 0, and always the number of clusters that was
    asked for.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.
    t : float
        Threshold of the criterion, or maximum number of clusters.
    criterion : {'inconsistent', 'distance', 'maxclust', 'monocrit', 'maxclust_monocrit'}, default='inconsistent'
        'inconsistent': merges with an inconsistency coefficient of at most `t`, as all merges below them.
        'distance': merges at most as high as `t`.
        'maxclust': the lowest height at which there are at most `t` clusters.
        'monocrit', 'maxclust_monocrit': the same as the last two with `monocrit` instead of heights.
    depth : int, default=2
        Number of levels of merges for 'inconsistent'.
    R : array (n - 1, 4), optional
        Result of `inconsistent` for 'inconsistent'; computed if None.
    monocrit : array (n - 1,), optional
        Value of each merge, at least as large as those of the merges below it.

    Returns
    -------
    labels : array (n,) of int32
        Clusters, numbered from 1.

    Examples
    --------
    >>> from coterie.hierarchy import fcluster
    >>> Z = [[0, 2, 1.0, 2], [1, 3, 1.5, 2], [4, 5, 9.0, 4]]
    >>> fcluster(Z, 2, "maxclust").tolist(), fcluster(Z, 1.2, "distance").tolist()
    ([1, 2, 1, 2], [1, 2, 1, 3])
    """
    one_of("criterion", criterion, CRITERIA)
    Z, t = check_tree(Z), not_negative("t", t)
    n = len(Z) + 1
    if criterion.startswith("maxclust"):
        t = whole_number("t", int(t), 1)
    if criterion.endswith("monocrit"):
        monocrit = _checked(monocrit, (n - 1,), "monocrit")
    elif criterion == "inconsistent":
        R = inconsistent(Z, depth) if R is None else _checked(R, (n - 1, 4), "R")
    return hierarchy.fcluster(Z, t, criterion, R=R, monocrit=monocrit) if n > 1 else np.ones(1, np.int32)


def cut_tree(Z: Any, n_clusters: Any = None, height: Any = None) -> np.ndarray:
    """Cut a tree into several numbers of clusters, or at several heights: SciPy's `cut_tree`.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.
    n_clusters : int or array of int, optional
        Numbers of clusters. By default n, n - 1, ..., 1.
    height : float or array of float, optional
        Heights. Merges below a height are made; those at this height are not, other than in `cut` and `fcluster`.

    Returns
    -------
    labels : array (n, cuts) of int32
        One column for each cut. Clusters are numbered from 0 by their first leaf.

    Examples
    --------
    >>> from coterie.hierarchy import cut_tree
    >>> cut_tree([[0, 2, 1.0, 2], [1, 3, 1.5, 2], [4, 5, 9.0, 4]], n_clusters=[3, 2]).T.tolist()
    [[0, 1, 0, 2], [0, 1, 0, 1]]
    """
    if n_clusters is not None and height is not None:
        raise ParameterError("cut_tree takes one of n_clusters and height; got both: leave one of them out")
    tree = as_tree(Z)
    n = tree.n_leaves
    if height is not None:
        n_clusters = n - np.searchsorted(
            np.sort(tree.subtree_max(tree.height)), [not_negative("height", each) for each in np.atleast_1d(height)]
        )
    counts = range(n, 0, -1) if n_clusters is None else np.atleast_1d(n_clusters).tolist()
    return np.stack([cut(Z, n_clusters=k) for k in counts], axis=1)


def _checked(values: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Values of the merges, in an array of this shape."""
    array = np.asarray(values, dtype=np.float64) if values is not None else np.empty(0)
    if array.shape != shape:
        raise InputError(
            f"{name} must be an array of shape {shape}, one row for each merge; its shape is {array.shape}"
        )
    return array
