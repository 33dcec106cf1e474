"""The order of leaves that leads from neighbour to neighbour along short ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.hierarchy.condensed import square_distances
from coterie.hierarchy.tree import Array, Tree, as_tree, check_tree

SHARED = 1 << 22  # comparisons in one merge that are worth more than one thread


def leaf_order(Z: Any, X: Any, metric: Any = "euclidean", *, n_jobs: int | None = None, **params: Any) -> Array:
    r"""The tree `Z` with the parts of every merge in the best order: that of the shortest line through all leaves.

    .. math:: \min_{\text{flips}} \sum_{t=1}^{n-1} d(x_{o(t)}, x_{o(t+1)})

    A tree leaves open which part of a merge is drawn left. Of all :math:`2^{n-1}` drawings this finds the one in which
    leaves that are neighbours are nearest to each other, exactly [1]_.

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

    Returns
    -------
    array (n - 1, 4)
        The same tree; `leaves` of it are the order.

    Notes
    -----
    Keeps two tables of n² numbers, and takes O(n³) operations at most, by vector code.

    References
    ----------
    .. [1] Z. Bar-Joseph, D. K. Gifford, T. S. Jaakkola (2001), Fast optimal leaf ordering for hierarchical clustering,
       Bioinformatics 17 (suppl. 1). https://doi.org/10.1093/bioinformatics/17.suppl_1.S22

    Examples
    --------
    >>> from coterie.hierarchy import leaf_order, leaves
    >>> X = [[0.0], [5.0], [1.0], [7.0]]
    >>> Z = [[0, 2, 1.0, 2], [3, 1, 2.0, 2], [4, 5, 4.0, 4]]
    >>> leaves(Z).tolist(), leaves(leaf_order(Z, X)).tolist()
    ([0, 2, 3, 1], [0, 2, 1, 3])
    """
    tree, ordered = as_tree(Z), check_tree(Z).copy()
    n = tree.n_leaves
    machine.check_room(
        24 * n * n, f"the {n} x {n} tables of an optimal leaf order", "order the leaves of a cut's clusters"
    )
    now = tree.leaves()
    D = square_distances(X, n, metric, params, n_jobs)[np.ix_(now, now)]
    place = np.empty(n, np.int64)
    place[_shortest_line(tree, D, _line_lengths(tree, D, n_jobs))] = np.arange(n)
    flipped = place[tree.first[tree.left]] > place[tree.first[tree.right]]
    ordered[flipped, 0], ordered[flipped, 1] = ordered[flipped, 1], ordered[flipped, 0]
    return ordered


def _line_lengths(tree: Tree, D: Array, n_jobs: int | None) -> Array:
    """Of two leaves: the shortest line from one to the other through all leaves of the subtree in which they meet."""
    n = tree.n_leaves
    step, M = kernels.select("trees", n).join_ends, np.zeros_like(D)

    def join(a: int, a_mid: int, b: int, b_mid: int, c: int, start: int, stop: int) -> None:
        step(D, a, a_mid, b, b_mid, c, start, stop, M, np.empty((3, 2, n), D.dtype))

    for bounds in _merges(tree):
        a, _, b, _, c = bounds
        whole = (b - a) * (c - b) * (c - a)
        height = b - a if whole <= SHARED else max(4, (b - a) // 64 * 4)
        pieces = [(*bounds, start, min(start + height, b)) for start in range(a, b, height)]
        for _ in machine.in_threads(join, pieces, n_jobs):
            pass
    return M


def _merges(tree: Tree) -> Iterator[tuple[int, int, int, int, int]]:
    """Every merge by where its parts, and their own second parts, begin and end."""
    n = tree.n_leaves
    begin = tree.first
    middle = begin.copy()  # a leaf has no second part
    middle[n:] = begin[tree.right]
    end = begin + tree.size
    bounds = np.stack([begin[tree.left], middle[tree.left], begin[tree.right], middle[tree.right], end[tree.right]])
    return (tuple(row) for row in bounds.T.tolist())


def _shortest_line(tree: Tree, D: Array, M: Array) -> list[int]:
    """The places in the tree of the leaves along the shortest line."""
    n = tree.n_leaves
    if n == 1:
        return [0]
    bounds = list(_merges(tree))
    a, _, b, _, c = bounds[-1]
    first, last = np.unravel_index(int(M[a:b, b:c].argmin()), (b - a, c - b))
    line: list[int] = []
    waiting = [(tree.root, a + int(first), b + int(last))]  # nodes from the front of the line on, with their ends
    while waiting:
        node, i, j = waiting.pop()
        if node < n:
            line.append(i)
            continue
        one, other = int(tree.left[node - n]), int(tree.right[node - n])
        if i >= bounds[node - n][2]:
            one, other = other, one
        before, after = _may_end(tree, one, i), _may_end(tree, other, j)
        lengths = M[i, before][:, None] + D[before, after] + M[after, j]
        k, m = np.unravel_index(int(lengths.argmin()), lengths.shape)
        waiting += [(other, after.start + int(m), j), (one, i, before.start + int(k))]
    return line


def _may_end(tree: Tree, node: int, leaf: int) -> slice:
    """Where a line through `node` can end that begins at `leaf`: in the half that does not hold it."""
    n, begin = tree.n_leaves, int(tree.first[node])
    if node < n:
        return slice(begin, begin + 1)
    middle = int(tree.first[tree.right[node - n]])
    return slice(middle, begin + int(tree.size[node])) if leaf < middle else slice(begin, middle)
