"""The longest way up a tree without a merge: how many clusters a dendrogram shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arguments import one_of, whole_number
from coterie.hierarchy.tree import as_tree
from coterie.selection.text_table import aligned

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class DendrogramGap:
    """What `dendrogram_gap` found."""

    ks: Array  # (m,) numbers of clusters looked at, from 2 up
    jumps: Array  # (m,) from 0 to 1: how far the tree is without a merge while it has so many clusters
    low: Array  # (m,) the height of the merge that leaves so many clusters
    high: Array  # (m,) the height of the next one
    best: int  # the number of clusters of the largest jump
    clarity: float  # from 0 to 1: how much the largest jump is above the second largest

    @property
    def height(self) -> float | None:
        """Where to cut: half-way up the largest jump; None where there is none."""
        at = np.flatnonzero(self.ks == self.best)
        return float((self.low[at[0]] + self.high[at[0]]) / 2) if len(at) else None

    def table(self) -> list[dict[str, Any]]:
        """A row for each number of clusters."""
        columns = zip(self.ks, self.low, self.high, self.jumps, strict=True)
        return [
            {"k": int(k), "low": float(low), "high": float(high), "jump": float(jump)} for k, low, high, jump in columns
        ]

    def __str__(self) -> str:
        return f"{aligned(self.table())}\nlargest jump at {self.best} clusters, clarity {self.clarity:.3g}"


def dendrogram_gap(Z: Any, k_max: int | None = None, *, jump: str = "relative") -> DendrogramGap:
    r"""The number of clusters at which a tree of merges is cut across its largest jump of heights.

    Let :math:`h_1 \le \dots \le h_{n-1}` be the heights of the merges. A cut between :math:`h_{n-K}` and
    :math:`h_{n-K+1}` leaves K clusters. The jump of K is

    .. math:: \text{relative: } 1 - \frac{h_{n-K}}{h_{n-K+1}}, \qquad
              \text{absolute: } \frac{h_{n-K+1} - h_{n-K}}{h_{n-1}}

    and the K of the largest jump is `best`; of equal jumps the smaller K. The relative jump sees clusters within
    clusters, small ones beside large ones; the absolute one is what the eye takes from a drawing, and prefers few
    clusters.

    One cluster never wins: nothing is above the last merge to compare it with. The exception is a tree without any
    jump (all rows alike, or all equally far apart), where `best` is 1 and `clarity` 0. So do not use it to learn
    whether there are clusters at all: trees of noise have jumps too, though `clarity` is small then. Nor with single
    linkage and outliers, which are merged last, one by one, at great heights.

    Parameters
    ----------
    Z : array (n - 1, 4)
        The tree, as `coterie.hierarchy.linkage` or SciPy gives it.
    k_max : int, optional
        The most clusters to consider, at most n - 1; by default the root of n, at least 10: among the very first merges
        of a tree, ratios of heights are large by chance.
    jump : {'relative', 'absolute'}, default='relative'

    Returns
    -------
    DendrogramGap

    Notes
    -----
    Where a merge is lower than one below it (linkages 'centroid' and 'median'), it counts as high as the highest below
    it, as in `coterie.hierarchy.cut`; ``cut(Z, n_clusters=best)`` gives the clusters. A jump from height 0, of equal
    rows, is 1. Costs O(n log n).

    References
    ----------
    .. [1] R. Mojena (1977), Hierarchical grouping methods and stopping rules: an evaluation, Computer J. 20, 359-363.
       https://doi.org/10.1093/comjnl/20.4.359
    .. [2] G. W. Milligan & M. C. Cooper (1985), An examination of procedures for determining the number of clusters in
       a data set, Psychometrika 50, 159-179. https://doi.org/10.1007/BF02294245

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.hierarchy import linkage
    >>> from coterie.selection import dendrogram_gap
    >>> x = np.array([0.0, 1.0, 2.1, 20.0, 21.2, 40.0, 41.3])[:, None]
    >>> found = dendrogram_gap(linkage(x, "average"))
    >>> found.best, round(found.clarity, 2)
    (3, 0.53)
    """
    one_of("jump", jump, ("relative", "absolute"))
    tree = as_tree(Z)
    n = tree.n_leaves
    most = max(10, int(np.sqrt(n))) if k_max is None else whole_number("k_max", k_max, 2)
    heights = np.sort(tree.subtree_max(tree.height))
    ks = np.arange(2, min(most, n - 1) + 1)
    low, high = heights[n - ks - 1], heights[n - ks]
    above = high if jump == "relative" else np.full(len(ks), heights[-1] if n > 1 else 0.0)
    jumps = np.divide(high - low, above, out=np.zeros(len(ks)), where=above > 0)
    if jumps.max(initial=0.0) == 0:
        return DendrogramGap(ks, jumps, low, high, 1, 0.0)
    second, first = np.sort(np.append(jumps, 0.0))[-2:]
    return DendrogramGap(ks, jumps, low, high, int(ks[jumps.argmax()]), float(first - second))
