"""Number of clusters from the largest jump between the merge heights of a dendrogram."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arguments import one_of, whole_number
from coterie.core.repr_html import ReprHTMLMixin
from coterie.hierarchy.cut import subtree_heights
from coterie.hierarchy.tree import check_tree
from coterie.selection.text_table import aligned, as_rows


@dataclass(frozen=True, repr=False)
class DendrogramGap(ReprHTMLMixin):
    """Result of `dendrogram_gap`."""

    ks: np.ndarray  # (m,) numbers of clusters, from 2
    jumps: np.ndarray  # (m,) jump of the merge heights at each K, from 0 to 1
    low: np.ndarray  # (m,) height of the merge that leaves K clusters
    high: np.ndarray  # (m,) height of the next merge
    best: int  # K of the largest jump
    clarity: float  # difference between the largest and the second largest jump, from 0 to 1

    @property
    def height(self) -> float | None:
        """Height at which to cut the tree: the middle of the largest jump; None if there is no jump."""
        positions = np.flatnonzero(self.ks == self.best)
        return float((self.low[positions[0]] + self.high[positions[0]]) / 2) if len(positions) else None

    def table(self) -> list[dict[str, Any]]:
        """One row per number of clusters."""
        return as_rows({"k": self.ks, "low": self.low, "high": self.high, "jump": self.jumps})

    def __str__(self) -> str:
        return f"{aligned(self.table())}\nlargest jump at {self.best} clusters, clarity {self.clarity:.3g}"


def dendrogram_gap(Z: Any, k_max: int | None = None, *, jump: str = "relative") -> DendrogramGap:
    r"""Choose the number of clusters by the largest jump between the merge heights of a tree.

    Let :math:`h_1 \le \dots \le h_{n-1}` be the heights of the merges. A cut between :math:`h_{n-K}` and
    :math:`h_{n-K+1}` leaves K clusters. The jump of K is

    .. math:: \text{relative: } 1 - \frac{h_{n-K}}{h_{n-K+1}}, \qquad
              \text{absolute: } \frac{h_{n-K+1} - h_{n-K}}{h_{n-1}}

    and `best` is the K of the largest jump; of equal jumps, the smaller K. The relative jump detects nested clusters
    and small clusters beside large ones. The absolute jump is the longest vertical distance in a drawing of the tree.
    It prefers few clusters.

    The result is never one cluster, because there is no merge above the last one to compare with. The only exception is
    a tree without any jump (all rows equal, or all equally far apart): then `best` is 1 and `clarity` is 0. So do not
    use it to test whether there are clusters: trees of noise also have jumps, though `clarity` is small then. Do not
    use it with single linkage and outliers, because outliers are merged last, one by one, at great heights.

    Parameters
    ----------
    Z : array (n - 1, 4)
        Linkage matrix, from `coterie.hierarchy.linkage` or SciPy.
    k_max : int or None, default=None
        Maximum number of clusters; values above n - 1 are reduced to it. None uses the square root of n, at least 10.
        Larger K are risky, because ratios between the heights of the first merges can be large by chance.
    jump : {'relative', 'absolute'}, default='relative'
        Definition of the jump, as above.

    Returns
    -------
    DendrogramGap
        Has `best`, `clarity`, `height`, `jumps` and `table()`.

    Notes
    -----
    If a merge is lower than one below it (linkages 'centroid' and 'median'), it gets the height of the highest merge
    below it, as in `coterie.hierarchy.cut`. ``cut(Z, n_clusters=best)`` returns the clusters. A jump from height 0,
    that is from equal rows, is 1. The cost is O(n log n).

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
    >>> result = dendrogram_gap(linkage(x, "average"))
    >>> result.best, round(result.clarity, 2)
    (3, 0.53)
    """
    one_of("jump", jump, ("relative", "absolute"))
    Z = check_tree(Z)
    n = len(Z) + 1
    max_clusters = max(10, int(np.sqrt(n))) if k_max is None else whole_number("k_max", k_max, 2)
    heights = np.sort(subtree_heights(Z))
    ks = np.arange(2, min(max_clusters, n - 1) + 1)
    low, high = heights[n - ks - 1], heights[n - ks]
    scale = high if jump == "relative" else np.full(len(ks), heights[-1] if n > 1 else 0.0)
    jumps = np.divide(high - low, scale, out=np.zeros(len(ks)), where=scale > 0)
    if jumps.max(initial=0.0) == 0:
        return DendrogramGap(ks, jumps, low, high, 1, 0.0)
    second, first = np.sort(np.append(jumps, 0.0))[-2:]
    return DendrogramGap(ks, jumps, low, high, int(ks[jumps.argmax()]), float(first - second))
