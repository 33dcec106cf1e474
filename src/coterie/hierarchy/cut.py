"""Cut a tree into clusters: with labels from 0, or with the arguments and labels of SciPy."""

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster as labels_of_scipy
from scipy.cluster.hierarchy import maxdists

from coterie.core.arguments import not_negative, one_of, whole_number
from coterie.core.arrays import Array
from coterie.errors import InputError, ParameterError
from coterie.hierarchy.tree import Tree, as_tree, check_tree


def cut(Z: Any, n_clusters: Any = None, height: Any = None, inconsistency: Any = None, depth: int = 2) -> Array:
    """Cut a tree into clusters, by one of `n_clusters`, `height` and `inconsistency`.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix, as returned by `linkage`.
    n_clusters : int, optional
        Number of clusters. The result has exactly this number, even if merges have equal heights: of these, the later
        one is undone first.
    height : float, optional
        Maximum height of the merges within a cluster. Equivalently, the maximum cophenetic distance between two leaves
        of a cluster.
    inconsistency : float, optional
        Maximum inconsistency coefficient of the merges within a cluster, see `inconsistent`.
    depth : int, default=2
        Number of levels of merges used for `inconsistency`.

    Returns
    -------
    labels : array (n,) of int32
        Clusters, numbered by their first leaf: leaf 0 is in cluster 0.

    Notes
    -----
    With the linkages 'centroid' and 'median', and with connectivity constraints, a merge can be lower than a merge
    below it. The height of a cluster is then the maximum over all merges in it, as in SciPy's `fcluster`. If several
    merges have equal heights, `fcluster` with 'maxclust' returns fewer clusters than requested.

    Takes O(n) memory, and O(n log n) operations.

    Examples
    --------
    >>> from coterie.hierarchy import cut
    >>> Z = [[0, 2, 1.0, 2], [1, 3, 1.5, 2], [4, 5, 9.0, 4]]
    >>> cut(Z, n_clusters=2).tolist(), cut(Z, height=1.2).tolist()
    ([0, 1, 0, 1], [0, 1, 0, 2])
    """
    criteria = {"n_clusters": n_clusters, "height": height, "inconsistency": inconsistency}
    names = [name for name, value in criteria.items() if value is not None]
    if len(names) != 1:
        raise ParameterError(
            f"cut needs exactly one of n_clusters, height and inconsistency; got {', '.join(names) or 'none'}"
        )
    Z = check_tree(Z)
    if n_clusters is not None:
        return _exact_clusters(Z, _merge_ranks(Z), n_clusters)
    if height is not None:
        return number_by_first_row(_labels(Z, not_negative("height", height), "distance"))
    R = inconsistent(Z, whole_number("depth", depth, 1))
    return number_by_first_row(_labels(Z, not_negative("inconsistency", inconsistency), R=R))


def subtree_heights(Z: Array) -> Array:
    """The maximum height of each merge and all merges below it (n - 1,)."""
    return maxdists(Z) if len(Z) else Z[:, 2]


def clusters_below(Z: Array, values: Array, limit: float) -> Array:
    """Labels (n,) after the merges with `values` (n - 1,) up to `limit`; no merge may have less than one below it."""
    return number_by_first_row(_labels(Z, limit, "monocrit", monocrit=values))


def _labels(Z: Array, t: float, criterion: str = "inconsistent", **options: Any) -> Array:
    return labels_of_scipy(Z, t, criterion, **options) if len(Z) else np.ones(1, np.int32)


def number_by_first_row(cluster: Array) -> Array:
    """Renumber clusters (n,) from 0, in the order in which they first appear."""
    _, first, code = np.unique(cluster, return_index=True, return_inverse=True)
    label = np.empty(len(first), np.int32)
    label[np.argsort(first)] = np.arange(len(first))
    return label[code]


def _merge_ranks(Z: Array) -> Array:
    """Ranks (n - 1,) of the merges by height; the later one of equal heights, and a merge above another, is higher."""
    rank = np.empty(len(Z))
    rank[np.argsort(subtree_heights(Z), kind="stable")] = np.arange(len(Z))
    return rank


def _exact_clusters(Z: Array, rank: Array, n_clusters: Any) -> Array:
    """Labels after all merges except the `n_clusters` - 1 highest."""
    n, k = len(Z) + 1, whole_number("n_clusters", n_clusters, 1)
    if k > n:
        raise ParameterError(f"n_clusters must be from 1 to {n}, the number of leaves; got {k}")
    return clusters_below(Z, rank, n - k - 1)


def inconsistent(Z: Any, d: int = 2) -> Array:
    """Compare the height of each merge with the heights of the merges shortly below it.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.
    d : int, default=2
        Number of levels: 1 is the merge itself, 2 includes the merges of its children, and so on.

    Returns
    -------
    array (n - 1, 4)
        For each merge: mean and standard deviation (with n - 1 in the denominator) of the heights on these levels,
        their number, and the inconsistency coefficient. The coefficient is the number of standard deviations between
        the height of the merge and the mean, or 0 if the standard deviation is 0.

    Examples
    --------
    >>> from coterie.hierarchy import inconsistent
    >>> inconsistent([[0, 1, 1.0, 2], [2, 3, 1.0, 2], [4, 5, 4.0, 4]])[2].round(3).tolist()
    [2.0, 1.732, 3.0, 1.155]
    """
    return _inconsistencies(as_tree(Z), whole_number("d", d, 1))


def _inconsistencies(tree: Tree, depth: int) -> Array:
    """The result of `inconsistent`."""
    n, m = tree.n_leaves, tree.n_leaves - 1
    upper, lower = _merge_pairs(tree, depth)
    count = np.bincount(upper, minlength=m).astype(np.float64)
    mean = np.bincount(upper, tree.height[lower], m) / np.maximum(count, 1)
    squares = np.bincount(upper, (tree.height[lower] - mean[upper]) ** 2, m)
    std = np.sqrt(squares / np.maximum(count - 1, 1))
    has_spread = np.bincount(upper, tree.height[lower] != tree.height[upper], m) > 0
    std = np.where(has_spread, std, 0.0)  # the mean of equal heights may differ from them by rounding
    score = np.divide(tree.height - mean, std, out=np.zeros(m), where=std > 0)
    return np.stack([mean, std, count, score], axis=1).reshape(n - 1, 4)


def _merge_pairs(tree: Tree, depth: int) -> tuple[Array, Array]:
    """All pairs of a merge and one at most `depth` - 1 levels below it: at most n times `depth` pairs."""
    n = tree.n_leaves
    lower = upper = np.arange(n - 1)
    pairs = [(upper, lower)]
    for _ in range(depth - 1):
        has_parent = upper != n - 2  # the last merge is the root
        lower, upper = lower[has_parent], tree.parent[upper[has_parent] + n] - n
        if len(lower) == 0:
            break
        pairs.append((upper, lower))
    uppers, lowers = (np.concatenate(each) for each in zip(*pairs, strict=True))
    return uppers, lowers


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
    return _labels(Z, t, criterion, R=R, monocrit=monocrit)


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
    Z = check_tree(Z)
    n, rank = len(Z) + 1, _merge_ranks(Z)
    if height is not None:
        heights = [not_negative("height", each) for each in np.atleast_1d(height)]
        n_clusters = n - np.searchsorted(np.sort(subtree_heights(Z)), heights)
    counts = range(n, 0, -1) if n_clusters is None else np.atleast_1d(n_clusters).tolist()
    return np.stack([_exact_clusters(Z, rank, k) for k in counts], axis=1)


def _checked(values: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Values of the merges, in an array of this shape."""
    array = np.asarray(values, dtype=np.float64) if values is not None else np.empty(0)
    if array.shape != shape:
        raise InputError(
            f"{name} must be an array of shape {shape}, one row for each merge; its shape is {array.shape}"
        )
    return array
