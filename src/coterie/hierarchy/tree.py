"""Dendrograms: check a linkage matrix; the structure of its tree, its banner coefficient and Newick text."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from coterie.core.arrays import Array
from coterie.errors import InputError, ParameterError


class Tree(NamedTuple):
    """The nodes of a tree: leaves 0 to n - 1, and node n + i for row i of the matrix. Parents have higher numbers."""

    left: Array  # (n - 1,) first child of each merge
    right: Array  # (n - 1,) second child
    height: Array  # (n - 1,)
    parent: Array  # (2 n - 1,) the root is its own parent
    size: Array  # (2 n - 1,) number of leaves below the node
    first: Array  # (2 n - 1,) position of the node's first leaf in the order of the leaves

    @property
    def n_leaves(self) -> int:
        return len(self.left) + 1

    @property
    def root(self) -> int:
        return len(self.parent) - 1

    def leaves(self) -> Array:
        """The leaves from left to right (n,)."""
        order = np.empty(self.n_leaves, np.int64)
        order[self.first[: self.n_leaves]] = np.arange(self.n_leaves)
        return order

    def siblings(self) -> Array:
        """The sibling of each node (2 n - 1,); the root is its own sibling."""
        sibling = np.arange(self.root + 1)
        sibling[self.left], sibling[self.right] = self.right, self.left
        return sibling


def as_tree(Z: Any) -> Tree:
    """Check the linkage matrix `Z`, and compute the structure of its tree."""
    Z = check_tree(Z)
    n = len(Z) + 1
    left, right = Z[:, 0].astype(np.int64), Z[:, 1].astype(np.int64)
    size = np.concatenate([np.ones(n, np.int64), Z[:, 3].astype(np.int64)])
    parent = np.arange(2 * n - 1)
    parent[left] = parent[right] = np.arange(n, 2 * n - 1)
    shift = np.zeros(2 * n - 1, np.int64)  # position of a node's first leaf minus that of its parent's first leaf
    shift[right] = size[left]
    return Tree(left, right, Z[:, 2].copy(), parent, size, path_sums(parent, shift))


def path_sums(parent: Array, amount: Array) -> Array:
    """For each node, the sum of `amount` over the node and its ancestors; roots must have the amount 0."""
    total, up = amount, parent
    while True:
        total = total + total[up]
        higher = up[up]
        if np.array_equal(higher, up):
            return total
        up = higher


def check_tree(Z: Any, name: str = "Z") -> Array:
    """Check that `Z` is a linkage matrix in SciPy's format, and return it as float64.

    Row i merges the clusters `Z[i, 0]` and `Z[i, 1]` at height `Z[i, 2]` into cluster n + i of `Z[i, 3]` leaves.
    Clusters 0 to n - 1 are the leaves. Heights may decrease from row to row.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.
    name : str, default='Z'
        Name of the argument in error messages.

    Returns
    -------
    array (n - 1, 4) of float64

    Raises
    ------
    InputError
        If `Z` is not a linkage matrix. The message states the first invalid row.

    Examples
    --------
    >>> from coterie.hierarchy import check_tree
    >>> check_tree([[0, 1, 0.5, 2], [2, 3, 1.0, 3]]).shape
    (2, 4)
    >>> check_tree([[0, 1, 0.5, 2], [2, 4, 1.0, 3]])
    Traceback (most recent call last):
    coterie.errors.InputError: Z[1] merges cluster 4, which does not exist yet: with 3 leaves it can be at most 3
    """
    try:
        Z = np.ascontiguousarray(Z, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a linkage matrix: numbers, one row of four for each merge") from None
    if Z.ndim != 2 or Z.shape[1] != 4:
        raise InputError(
            f"{name} must be a linkage matrix of shape (n - 1, 4), one row for each merge; its shape is {Z.shape}"
        )
    children, height, size = Z[:, :2], Z[:, 2], Z[:, 3]
    n, number = len(Z) + 1, len(Z) + 1 + np.arange(len(Z))
    _reject(~np.isfinite(Z).all(axis=1), lambda i: f"{name}[{i}] is {Z[i].tolist()}: all numbers must be finite")
    _reject(height < 0, lambda i: f"{name}[{i}] has the height {height[i]:g}: heights must be at least 0")
    _reject(
        ((children < 0) | (children != np.floor(children))).any(axis=1),
        lambda i: f"{name}[{i}] merges {children[i].tolist()}: clusters must be integers of at least 0",
    )
    _reject(
        (children >= number[:, None]).any(axis=1),
        lambda i: (
            f"{name}[{i}] merges cluster {children[i].max():.0f}, which does not exist yet: "
            f"with {n} leaves it can be at most {number[i] - 1}"
        ),
    )
    cluster, position = children.astype(np.int64).ravel(), np.arange(children.size)
    first = np.empty(2 * n - 1, np.int64)  # where each cluster is merged first
    first[cluster[::-1]] = position[::-1]
    _reject(
        (first[cluster] != position).reshape(children.shape).any(axis=1),
        lambda i: f"{name}[{i}] merges {children[i].tolist()}: one of them was already merged before",
    )
    sizes = np.concatenate([np.ones(n), size])
    expected = sizes[cluster].reshape(children.shape).sum(axis=1)
    _reject(
        size != expected,
        lambda i: f"{name}[{i}] has the size {size[i]:g}, but its two clusters have {expected[i]:g} leaves together",
    )
    return Z


def _reject(is_invalid: Any, message: Any) -> None:
    if is_invalid.any():
        raise InputError(message(int(np.flatnonzero(is_invalid)[0])))


def leaves_list(Z: Any) -> Array:
    """Return the leaves of a tree from left to right.

    The first cluster of each merge is placed to the left of the second.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.

    Returns
    -------
    array (n,) of int64

    Examples
    --------
    >>> from coterie.hierarchy import leaves_list
    >>> leaves_list([[2, 0, 0.5, 2], [1, 3, 1.0, 3]]).tolist()
    [1, 2, 0]
    """
    return as_tree(Z).leaves()


def banner_coefficient(Z: Any) -> float:
    r"""Compute the agglomerative coefficient of a tree of merges, or the divisive coefficient of a tree of splits.

    .. math:: \frac{1}{n} \sum_i \Bigl(1 - \frac{h(i)}{h}\Bigr)

    :math:`h(i)` is the height of the first merge of leaf :math:`i` (or of its last split), and :math:`h` the height of
    the whole tree. 0 means no structure; values near 1 mean compact clusters far apart. The coefficient increases with
    n: do not use it to compare data sets of different sizes. It is `ac` of R's `agnes`, and `dc` of `diana` [1]_.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.

    Returns
    -------
    float

    References
    ----------
    .. [1] L. Kaufman, P. J. Rousseeuw (1990), Finding groups in data, chapters 5 and 6, Wiley.
       https://doi.org/10.1002/9780470316801

    Examples
    --------
    >>> from coterie.hierarchy import banner_coefficient
    >>> banner_coefficient([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 10.0, 4]])
    0.85
    """
    tree = as_tree(Z)
    n = tree.n_leaves
    highest = tree.height.max(initial=0.0)
    if highest == 0:
        raise InputError("Z has no merge above height 0: the coefficient needs at least one positive height")
    return float(1 - (tree.height[tree.parent[:n] - n] / highest).mean())


# Write a tree as text in Newick format.

# Characters that need no quotes.
PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+/|*%&#@!?~^=<>$")


def to_newick(Z: Any, names: Iterable[Any] | None = None, lengths: bool = True) -> str:
    """Write a tree in Newick format, which phylogenetics and tree-drawing programs can read.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix.
    names : sequence of n, optional
        Names of the leaves; by default their indices. Names with other characters than letters, digits and some
        punctuation marks are put in single quotes, and quotes within them are doubled.
    lengths : bool, default=True
        Write branch lengths: half the difference of the heights of a node and its parent. The path between two leaves
        is then as long as their cophenetic distance. A length is negative if a merge is lower than one below it.

    Returns
    -------
    str

    Examples
    --------
    >>> from coterie.hierarchy import to_newick
    >>> to_newick([[0, 2, 1.0, 2], [1, 3, 4.0, 3]], names=["cat", "my dog", "lion"])
    "('my dog':2.0,(cat:0.5,lion:0.5):1.5);"
    >>> to_newick([[0, 2, 1.0, 2], [1, 3, 4.0, 3]], lengths=False)
    '(1,(0,2));'
    """
    tree = as_tree(Z)
    n = tree.n_leaves
    labels = [str(i) for i in range(n)] if names is None else [_quoted(str(name)) for name in names]
    if len(labels) != n:
        raise ParameterError(f"names has {len(labels)} entries, but the tree has {n} leaves: pass one name for each")
    branches = [""] * len(tree.parent)
    if lengths:
        height = np.concatenate([np.zeros(n), tree.height])
        half = (height[tree.parent] - height) / 2
        branches[:-1] = [f":{length!r}" for length in half.tolist()[:-1]]  # the root has no branch above it
    parts, stack = [], [(tree.root, "")]  # a node to write, and the text before it
    while stack:
        node, text = stack.pop()
        parts.append(text)
        if node < 0:
            continue
        if node < n:
            parts.append(labels[node] + branches[node])
            continue
        left, right = int(tree.left[node - n]), int(tree.right[node - n])
        stack += [(-1, ")" + branches[node]), (right, ","), (left, "(")]
    return "".join(parts) + ";"


def _quoted(name: str) -> str:
    return name if name and PLAIN.issuperset(name) else "'" + name.replace("'", "''") + "'"
