"""Clusters from a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.core.arguments import not_negative, whole_number
from coterie.core.errors import ParameterError
from coterie.hierarchy.tree import Array, Tree, as_tree


def cut(Z: Any, n_clusters: Any = None, height: Any = None, inconsistency: Any = None, depth: int = 2) -> Array:
    """The clusters of a tree when it is cut: give one of `n_clusters`, `height` and `inconsistency`.

    Parameters
    ----------
    Z : array (n - 1, 4)
        The tree, as `linkage` gives it.
    n_clusters : int
        How many clusters: exactly so many, also where merges are equally high (the later one is undone first).
    height : float
        A cluster is merged at `height` at most, and so is every part of it: its leaves are that near to each other in
        cophenetic distance.
    inconsistency : float
        A cluster is inconsistent (see `inconsistent`) by that much at most, and so is every part of it.
    depth : int, default=2
        How many levels of merges a merge is compared with, for `inconsistency`.

    Returns
    -------
    labels : array (n,) of int32
        Numbered by the first leaf of each cluster: leaf 0 is in cluster 0.

    Notes
    -----
    Where a merge is lower than one below it (linkages 'centroid' and 'median', or a graph of neighbours), a cluster
    counts as high as the highest merge in it, as in SciPy's `fcluster`; whose 'maxclust' gives fewer clusters where
    several merges are equally high.

    Takes O(n) memory and O(n) operations a step, in as many steps as the logarithm of the tree's depth.

    Examples
    --------
    >>> from coterie.hierarchy import cut
    >>> Z = [[0, 2, 1.0, 2], [1, 3, 1.5, 2], [4, 5, 9.0, 4]]
    >>> cut(Z, n_clusters=2).tolist(), cut(Z, height=1.2).tolist()
    ([0, 1, 0, 1], [0, 1, 0, 2])
    """
    given = {"n_clusters": n_clusters, "height": height, "inconsistency": inconsistency}
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) != 1:
        raise ParameterError(f"cut takes one of n_clusters, height and inconsistency; got {', '.join(asked) or 'none'}")
    tree = as_tree(Z)
    if n_clusters is not None:
        return clusters_below(tree, _lowest(tree, whole_number("n_clusters", n_clusters, 1)))
    if height is not None:
        return clusters_below(tree, tree.highest(tree.height) <= not_negative("height", height))
    scores = tree.highest(_inconsistencies(tree, whole_number("depth", depth, 1))[:, 3])
    return clusters_below(tree, scores <= not_negative("inconsistency", inconsistency))


def clusters_below(tree: Tree, kept: Array) -> Array:
    """Labels (n,) when the merges `kept` (n - 1,) are made, and the others, all above them, are not."""
    n = tree.n_leaves
    up = tree.parent.copy()
    lost = np.flatnonzero(~kept[tree.parent - n]) if n > 1 else np.arange(1)
    up[lost] = lost
    while not np.array_equal(up, higher := up[up]):
        up = higher
    return by_first_appearance(up[:n])


def by_first_appearance(cluster: Array) -> Array:
    """Clusters (n,), whatever they are called, as numbers from 0 in the order in which they first appear."""
    _, first, place = np.unique(cluster, return_index=True, return_inverse=True)
    label = np.empty(len(first), np.int32)
    label[np.argsort(first)] = np.arange(len(first))
    return label[place]


def _lowest(tree: Tree, n_clusters: int) -> Array:
    """All merges but the `n_clusters` - 1 that are highest; of those equally high the ones made last."""
    n = tree.n_leaves
    if n_clusters > n:
        raise ParameterError(f"n_clusters must be from 1 to {n}, the number of leaves; got {n_clusters}")
    kept = np.zeros(n - 1, bool)
    kept[np.argsort(tree.highest(tree.height), kind="stable")[: n - n_clusters]] = True
    return kept


def inconsistent(Z: Any, depth: int = 2) -> Array:
    """How much higher every merge is than those shortly below it.

    Parameters
    ----------
    Z : array (n - 1, 4)
        The tree.
    depth : int, default=2
        Levels of merges to look at: 1 is the merge itself, 2 also those of its children, and so on.

    Returns
    -------
    array (n - 1, 4)
        For every merge the mean and the standard deviation (n - 1 in the denominator) of the heights looked at, their
        number, and the inconsistency: how many standard deviations the merge is above the mean, 0 where there is none.

    Examples
    --------
    >>> from coterie.hierarchy import inconsistent
    >>> inconsistent([[0, 1, 1.0, 2], [2, 3, 1.0, 2], [4, 5, 4.0, 4]])[2].round(3).tolist()
    [2.0, 1.732, 3.0, 1.155]
    """
    return _inconsistencies(as_tree(Z), whole_number("depth", depth, 1))


def _inconsistencies(tree: Tree, depth: int) -> Array:
    n, m = tree.n_leaves, tree.n_leaves - 1
    above, below = _related(tree, depth)
    count = np.bincount(above, minlength=m).astype(np.float64)
    mean = np.bincount(above, tree.height[below], m) / np.maximum(count, 1)
    squares = np.bincount(above, (tree.height[below] - mean[above]) ** 2, m)
    spread = np.sqrt(squares / np.maximum(count - 1, 1))
    differs = np.bincount(above, tree.height[below] != tree.height[above], m) > 0
    spread = np.where(differs, spread, 0.0)  # the mean of equal heights may differ from them by rounding
    score = np.divide(tree.height - mean, spread, out=np.zeros(m), where=spread > 0)
    return np.stack([mean, spread, count, score], axis=1).reshape(n - 1, 4)


def _related(tree: Tree, depth: int) -> tuple[Array, Array]:
    """All pairs of a merge and one at most `depth` - 1 levels below it: no more than n times `depth`."""
    n = tree.n_leaves
    lower = upper = np.arange(n - 1)
    pairs = [(upper, lower)]
    for _ in range(depth - 1):
        moves = upper != n - 2  # the root has nothing above it
        lower, upper = lower[moves], tree.parent[upper[moves] + n] - n
        if len(lower) == 0:
            break
        pairs.append((upper, lower))
    above, below = (np.concatenate(each) for each in zip(*pairs, strict=True))
    return above, below
