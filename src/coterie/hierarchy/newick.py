"""Write a tree as text in Newick format."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from coterie.errors import ParameterError
from coterie.hierarchy.tree import as_tree

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
