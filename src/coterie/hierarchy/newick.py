"""A tree as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie.core.errors import ParameterError
from coterie.hierarchy.tree import Tree, as_tree

PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+/|*%&#@!?~^=<>$")


def to_newick(Z: Any, names: Iterable[Any] | None = None, lengths: bool = True) -> str:
    """The tree `Z` in Newick's format, which programs that draw trees read.

    Parameters
    ----------
    Z : array (n - 1, 4)
        The tree.
    names : sequence of n, optional
        What the leaves are called; their numbers by default. A name of other signs than letters, digits and a few
        more is put in quotes, with quotes in it doubled.
    lengths : bool, default=True
        Write lengths of branches: half of the difference of heights, so that the way from leaf to leaf is as long as
        their cophenetic distance. Where a merge is lower than one below it, that is negative.

    Examples
    --------
    >>> from coterie.hierarchy import to_newick
    >>> to_newick([[0, 2, 1.0, 2], [1, 3, 4.0, 3]], names=["cat", "my dog", "lion"])
    "('my dog':2.0,(cat:0.5,lion:0.5):1.5);"
    >>> to_newick([[0, 2, 1.0, 2], [1, 3, 4.0, 3]], lengths=False)
    '(1,(0,2));'
    """
    tree = as_tree(Z)
    labels = _labels(names, tree.n_leaves)
    ends = _branches(tree) if lengths else [""] * len(tree.parent)
    parts, waiting = [], [(tree.root, "")]  # what is yet to be written: a node, and what stands before it
    while waiting:
        node, before = waiting.pop()
        parts.append(before)
        if node < 0:
            continue
        if node < tree.n_leaves:
            parts.append(labels[node] + ends[node])
            continue
        left, right = int(tree.left[node - tree.n_leaves]), int(tree.right[node - tree.n_leaves])
        waiting += [(-1, ")" + ends[node]), (right, ","), (left, "(")]
    return "".join(parts) + ";"


def _branches(tree: Tree) -> list[str]:
    """What follows every node: a colon and the length of the branch above it; nothing after the root."""
    height = np.concatenate([np.zeros(tree.n_leaves), tree.height])
    half = (height[tree.parent] - height) / 2
    return [f":{length!r}" for length in half.tolist()[:-1]] + [""]


def _labels(names: Iterable[Any] | None, n: int) -> list[str]:
    if names is None:
        return [str(i) for i in range(n)]
    labels = [_quoted(str(name)) for name in names]
    if len(labels) != n:
        raise ParameterError(f"names must be {n}, one for each leaf; got {len(labels)}")
    return labels


def _quoted(name: str) -> str:
    return name if name and PLAIN.issuperset(name) else "'" + name.replace("'", "''") + "'"
