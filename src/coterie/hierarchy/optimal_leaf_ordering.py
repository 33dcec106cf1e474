"""Optimal leaf ordering."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.hierarchy.condensed import square_distances
from coterie.hierarchy.tree import Tree, as_tree, check_tree

PARALLEL = 1 << 22  # minimum number of comparisons in a merge that is split among threads


def optimal_leaf_ordering(
    Z: Any, X: Any, metric: Any = "euclidean", *, n_jobs: int | None = None, **params: Any
) -> Array:
    r"""Reorder the leaves of a tree so that adjacent leaves are as near to each other as possible.

    .. math:: \min_{\text{flips}} \sum_{t=1}^{n-1} d(x_{o(t)}, x_{o(t+1)})

    A tree does not define which of the two clusters of a merge is drawn on the left. Of all :math:`2^{n-1}` orders,
    this function finds the one with the smallest sum of distances between adjacent leaves, exactly [1]_.

    Parameters
    ----------
    Z, X, metric, n_jobs, **params
        As in `cophenetic_correlation`.

    Returns
    -------
    array (n - 1, 4)
        The linkage matrix of the same tree. `leaves_list` returns its order.

    Notes
    -----
    Takes two tables of n² numbers, and at most O(n³) operations, which are vectorised.

    References
    ----------
    .. [1] Z. Bar-Joseph, D. K. Gifford, T. S. Jaakkola (2001), Fast optimal leaf ordering for hierarchical clustering,
       Bioinformatics 17 (suppl. 1). https://doi.org/10.1093/bioinformatics/17.suppl_1.S22

    Examples
    --------
    >>> from coterie.hierarchy import leaves_list, optimal_leaf_ordering
    >>> X = [[0.0], [5.0], [1.0], [7.0]]
    >>> Z = [[0, 2, 1.0, 2], [3, 1, 2.0, 2], [4, 5, 4.0, 4]]
    >>> leaves_list(Z).tolist(), leaves_list(optimal_leaf_ordering(Z, X)).tolist()
    ([0, 2, 3, 1], [0, 2, 1, 3])
    """
    tree, ordered = as_tree(Z), check_tree(Z).copy()
    n = tree.n_leaves
    remedy = "cut the tree into clusters, and order the leaves of each cluster"
    machine.check_memory(24 * n * n, f"the {n} x {n} tables of an optimal leaf order", remedy)
    leaves = tree.leaves()
    D = square_distances(X, n, metric, params, n_jobs)[np.ix_(leaves, leaves)]
    position = np.empty(n, np.int64)
    position[_shortest_path(tree, D, _path_lengths(tree, D, n_jobs))] = np.arange(n)
    is_flipped = position[tree.first[tree.left]] > position[tree.first[tree.right]]
    ordered[is_flipped, 0], ordered[is_flipped, 1] = ordered[is_flipped, 1], ordered[is_flipped, 0]
    return ordered


def _path_lengths(tree: Tree, D: Array, n_jobs: int | None) -> Array:
    """The length (n, n) of the shortest path between two leaves through all leaves of their smallest common subtree."""
    n = tree.n_leaves
    step, M = kernels.select("dendrograms", n).path_lengths, np.zeros_like(D)

    def join(a: int, a_mid: int, b: int, b_mid: int, c: int, start: int, stop: int) -> None:
        step(D, a, a_mid, b, b_mid, c, start, stop, M, np.empty((3, 2, n), D.dtype))

    for bounds in _merge_bounds(tree):
        a, _, b, _, c = bounds
        work = (b - a) * (c - b) * (c - a)
        height = b - a if work <= PARALLEL else max(4, (b - a) // 64 * 4)
        pieces = [(*bounds, start, min(start + height, b)) for start in range(a, b, height)]
        machine.run_in_threads(join, pieces, n_jobs)
    return M


def _merge_bounds(tree: Tree) -> Iterator[tuple[int, int, int, int, int]]:
    """For each merge, the positions where its two clusters, and the second parts of these, begin and end."""
    n = tree.n_leaves
    begin = tree.first
    middle = begin.copy()  # a leaf has no parts
    middle[n:] = begin[tree.right]
    end = begin + tree.size
    bounds = np.stack([begin[tree.left], middle[tree.left], begin[tree.right], middle[tree.right], end[tree.right]])
    return (tuple(row) for row in bounds.T.tolist())


def _shortest_path(tree: Tree, D: Array, M: Array) -> list[int]:
    """The positions of the leaves in the tree, in the order of the shortest path."""
    n = tree.n_leaves
    if n == 1:
        return [0]
    bounds = list(_merge_bounds(tree))
    a, _, b, _, c = bounds[-1]
    first, last = np.unravel_index(int(M[a:b, b:c].argmin()), (b - a, c - b))
    path: list[int] = []
    stack = [(tree.root, a + int(first), b + int(last))]  # a node, and the two ends of its part of the path
    while stack:
        node, i, j = stack.pop()
        if node < n:
            path.append(i)
            continue
        one, other = int(tree.left[node - n]), int(tree.right[node - n])
        if i >= bounds[node - n][2]:
            one, other = other, one
        before, after = _possible_ends(tree, one, i), _possible_ends(tree, other, j)
        lengths = M[i, before][:, None] + D[before, after] + M[after, j]
        k, m = np.unravel_index(int(lengths.argmin()), lengths.shape)
        stack += [(other, after.start + int(m), j), (one, i, before.start + int(k))]
    return path


def _possible_ends(tree: Tree, node: int, leaf: int) -> slice:
    """Positions where a path through `node` from `leaf` can end: in the child that does not contain `leaf`."""
    n, begin = tree.n_leaves, int(tree.first[node])
    if node < n:
        return slice(begin, begin + 1)
    middle = int(tree.first[tree.right[node - n]])
    return slice(middle, begin + int(tree.size[node])) if leaf < middle else slice(begin, middle)
