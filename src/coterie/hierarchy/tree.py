"""A tree of merges: SciPy's matrix, checked, and what follows from it for every node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.core.errors import InputError

Array = np.ndarray[Any, Any]


class Tree(NamedTuple):
    """The nodes of a tree: leaves 0 to n - 1, and node n + i for row i of its matrix. Parents have higher numbers."""

    left: Array  # (n - 1,) the two children of every merge
    right: Array  # (n - 1,)
    height: Array  # (n - 1,)
    parent: Array  # (2 n - 1,) the root is its own
    size: Array  # (2 n - 1,) leaves below
    first: Array  # (2 n - 1,) where the leaves below begin, in the order of `leaves`

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
        """The other child of every node's parent (2 n - 1,); the root is its own."""
        sibling = np.arange(self.root + 1)
        sibling[self.left], sibling[self.right] = self.right, self.left
        return sibling

    def highest(self, values: Array) -> Array:
        """The largest of `values` (n - 1,) of a merge and of all merges below it (n - 1,).

        Steps of doubling length up the tree: as many as the logarithm of its depth, whatever its shape.
        """
        n = self.n_leaves
        found, up = np.array(values, dtype=np.float64), self.parent[n:] - n
        if (found <= found[up]).all():
            return found
        while True:
            np.maximum.at(found, up, found.copy())
            if (up == len(up) - 1).all():
                return found
            up = up[up]


def as_tree(Z: Any) -> Tree:
    """What the checked matrix `Z` says of every node."""
    Z = check_tree(Z)
    n = len(Z) + 1
    left, right = Z[:, 0].astype(np.int64), Z[:, 1].astype(np.int64)
    size = np.concatenate([np.ones(n, np.int64), Z[:, 3].astype(np.int64)])
    parent = np.arange(2 * n - 1)
    parent[left] = parent[right] = np.arange(n, 2 * n - 1)
    shift = np.zeros(2 * n - 1, np.int64)  # of a node's first leaf against that of its parent
    shift[right] = size[left]
    return Tree(left, right, Z[:, 2].copy(), parent, size, along_path(parent, shift))


def along_path(parent: Array, amount: Array) -> Array:
    """Sums of `amount` over a node and all nodes above it but those that are their own parents, whose amount is 0."""
    total, up = amount, parent
    while True:
        total = total + total[up]
        higher = up[up]
        if np.array_equal(higher, up):
            return total
        up = higher


def check_tree(Z: Any, name: str = "Z") -> Array:
    """`Z` as float64 if it is the matrix of a tree, as SciPy has them; else an error that says where it is not.

    Row i merges the clusters `Z[i, 0]` and `Z[i, 1]` at the height `Z[i, 2]` into cluster n + i of `Z[i, 3]` leaves;
    numbers below n are leaves. Heights need not rise.

    Examples
    --------
    >>> from coterie.hierarchy import check_tree
    >>> check_tree([[0, 1, 0.5, 2], [2, 3, 1.0, 3]]).shape
    (2, 4)
    >>> check_tree([[0, 1, 0.5, 2], [2, 4, 1.0, 3]])
    Traceback (most recent call last):
    coterie.core.errors.InputError: Z[1] merges cluster 4, which is not formed before: with 3 leaves it can be 3 at most
    """
    try:
        Z = np.ascontiguousarray(Z, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, a row of four for every merge of a tree") from None
    if Z.ndim != 2 or Z.shape[1] != 4:
        raise InputError(f"{name} must have a row of four numbers for every merge of a tree; its shape is {Z.shape}")
    children, height, size = Z[:, :2], Z[:, 2], Z[:, 3]
    n, formed = len(Z) + 1, len(Z) + 1 + np.arange(len(Z))
    _refuse(~np.isfinite(Z).all(axis=1), lambda i: f"{name}[{i}] holds {Z[i].tolist()}: all must be finite")
    _refuse(height < 0, lambda i: f"{name}[{i}] has the height {height[i]:g}: heights must be at least 0")
    _refuse(
        ((children < 0) | (children != np.floor(children))).any(axis=1),
        lambda i: f"{name}[{i}] merges {children[i].tolist()}: clusters are whole numbers from 0",
    )
    _refuse(
        (children >= formed[:, None]).any(axis=1),
        lambda i: (
            f"{name}[{i}] merges cluster {children[i].max():.0f}, which is not formed before: "
            f"with {n} leaves it can be {formed[i] - 1} at most"
        ),
    )
    again = np.ones(children.shape, bool)
    again.flat[np.unique(children, return_index=True)[1]] = False
    _refuse(
        again.any(axis=1),
        lambda i: f"{name}[{i}] merges {children[i].tolist()}, of which one was merged before",
    )
    sizes = np.concatenate([np.ones(n), size])
    below = sizes[children.astype(np.int64)].sum(axis=1)
    _refuse(
        size != below, lambda i: f"{name}[{i}] says its cluster has {size[i]:g} leaves: its two parts have {below[i]:g}"
    )
    return Z


def _refuse(wrong: Any, what: Any) -> None:
    if wrong.any():
        raise InputError(what(int(np.flatnonzero(wrong)[0])))


def leaves(Z: Any) -> Array:
    """The leaves of the tree `Z` from left to right (n,), a merge's first cluster left of its second.

    Examples
    --------
    >>> from coterie.hierarchy import leaves
    >>> leaves([[2, 0, 0.5, 2], [1, 3, 1.0, 3]]).tolist()
    [1, 2, 0]
    """
    return as_tree(Z).leaves()
