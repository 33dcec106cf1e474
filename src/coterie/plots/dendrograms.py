"""A tree of merges, drawn: its top, however large it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.hierarchy.cut import cut
from coterie.hierarchy.tree import Tree, as_tree
from coterie.palette import INK, MARK, colours
from coterie.plots.display import Array, Display, caption, counted
from coterie.plots.rows import check_fitted

MERGES = 40  # that are drawn unless told otherwise
LABELS = 60  # leaves that are named


@dataclass(eq=False, repr=False)
class DendrogramDisplay(Display):
    """The last merges of a tree, as brackets; clusters below them that are not drawn are leaves with a size."""

    kind: ClassVar[str] = "dendrogram"
    size: ClassVar[tuple[float, float]] = (8.0, 4.6)
    x: Array  # (m, 4) of each bracket, from the foot of its left leg to that of its right one
    y: Array  # (m, 4)
    cluster: Array  # (m,) which one a merge is in; -1: above the cut
    leaves: list[str]  # (m + 1,) from left to right: a row's name, or the number of rows in brackets
    sizes: Array  # (m + 1,) rows of each leaf
    leaf_cluster: Array  # (m + 1,)
    k: int  # clusters of the cut; 1: there is none
    height: float | None  # where the cut is
    n: int  # rows of the tree

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        n_clusters: int | None = None,
        merges: int = MERGES,
        names: Any = None,
        ax: Any = None,
    ) -> Self:
        """Of a fitted estimator of trees, cut into its clusters or `n_clusters`; `X` is not looked at."""
        check_fitted(model)
        if getattr(model, "linkage_matrix_", None) is None:
            raise ParameterError(
                f"{type(model).__name__} has no tree of merges: use AgglomerativeClustering or linkage"
            )
        k = model.n_clusters_ if n_clusters is None else n_clusters
        return cls.from_result(model.linkage_matrix_, n_clusters=k, merges=merges, names=names, ax=ax)

    @classmethod
    def from_result(
        cls, Z: Any, *, n_clusters: int | None = None, merges: int = MERGES, names: Any = None, ax: Any = None
    ) -> Self:
        """Of a linkage matrix (n - 1, 4), cut into `n_clusters` if given."""
        tree = as_tree(Z)
        n = tree.n_leaves
        if n < 2:
            raise InputError("Z has no merge: a tree of one row has nothing to draw")
        k = 1 if n_clusters is None else whole_number("n_clusters", n_clusters, 1)
        if names is not None and len(names) != n:
            raise InputError(f"names must be one for each of the {n} rows; there are {len(names)}")
        labels = cut(Z, n_clusters=k)
        count = min(n - 1, max(whole_number("merges", merges, 1), k - 1))
        return cls._made(tree, count, labels, k, names)._on(ax)

    @classmethod
    def _made(cls, tree: Tree, count: int, labels: Array, k: int, names: Any) -> Self:
        n = tree.n_leaves
        first = n - 1 - count  # the first merge that is drawn
        children = np.stack([tree.left[first:], tree.right[first:]], axis=1)
        feet = np.sort(children[children < n + first])
        feet = feet[np.argsort(tree.first[feet], kind="stable")]
        place, height = np.zeros(2 * n - 1), np.zeros(2 * n - 1)
        place[feet] = np.arange(len(feet))
        height[n:] = tree.height
        low = np.where(np.isin(children, feet), 0.0, height[children])
        for i, (left, right) in enumerate(children.tolist()):
            place[n + first + i] = (place[left] + place[right]) / 2
        own = tree.height[first:]
        x = place[children][:, [0, 0, 1, 1]]
        y = np.stack([low[:, 0], own, own, low[:, 1]], axis=1)
        of = _cluster_of_nodes(tree, labels)
        sizes = tree.size[feet]
        rows = [str(j) if names is None else str(names[j]) for j in np.where(feet < n, feet, 0)]
        called = [name if size == 1 else f"({size:,})" for name, size in zip(rows, sizes, strict=True)]
        return cls(x, y, of[n + first :], called, sizes, of[feet], k, _cut_height(tree, k), n)

    def _figure_size(self) -> tuple[float, float]:
        return float(np.clip(2.0 + 0.16 * len(self.leaves), 6.4, 12.0)), self.size[1]

    def _draw(self, ax: Any) -> None:
        from matplotlib.collections import LineCollection

        shades = [*(colours(self.k) if self.k > 1 else [INK]), INK]
        line_colours = [shades[j] for j in self.cluster]
        lines = np.stack([self.x, self.y], axis=-1)
        self.brackets_ = ax.add_collection(LineCollection(list(lines), colors=line_colours, linewidths=1.3))
        top = float(self.y.max()) or 1.0
        ax.set_xlim(-0.8, len(self.leaves) - 0.2)
        ax.set_ylim(0, 1.05 * top)
        self.cut_ = None
        if self.height is not None:
            self.cut_ = ax.axhline(self.height, color=MARK, linestyle="--", linewidth=1.2, zorder=0)
        self._draw_leaves(ax)
        ax.set_ylabel("height of the merge")
        ax.spines[["top", "right", "bottom"]].set_visible(False)
        shown = len(self.y)
        told = counted(self.n) if shown == self.n - 1 else f"the last {counted(shown, 'merge')} of {counted(self.n)}"
        caption(ax, told if self.height is None else f"{told}, cut into {counted(self.k, 'cluster')}")

    def _draw_leaves(self, ax: Any) -> None:
        m = len(self.leaves)
        if m > LABELS:
            ax.set_xticks([])
            ax.set_xlabel(f"{m:,} branches, from left to right")
            return
        upright = m > 16 or max(map(len, self.leaves)) > 4
        ax.set_xticks(range(m), self.leaves, rotation=90 if upright else 0, fontsize=8 if m <= 40 else 7)
        ax.tick_params(axis="x", length=0)
        shades = colours(self.k) if self.k > 1 else [INK]
        for text, j in zip(ax.get_xticklabels(), self.leaf_cluster, strict=True):
            text.set_color(shades[j] if j >= 0 else INK)
        if (self.sizes > 1).any():
            ax.set_xlabel("row, or (number of rows)")


def _cluster_of_nodes(tree: Tree, labels: Array) -> Array:
    """The cluster that all leaves below a node are in (2 n - 1,); -1 where they are in several."""
    order = labels[tree.leaves()]
    last = tree.first + tree.size - 1
    changes = np.append(0, np.cumsum(order[1:] != order[:-1]))  # leaves of a cluster are neighbours
    one = changes[tree.first] == changes[last]
    found: Array = np.where(one, order[tree.first], -1)
    return found


def _cut_height(tree: Tree, k: int) -> float | None:
    """Half-way between the merge that leaves k clusters and the next one; None where no merge is undone."""
    if k < 2:
        return None
    heights = np.sort(tree.subtree_max(tree.height))
    n = tree.n_leaves
    above = float(heights[n - k])
    return (float(heights[n - k - 1]) + above) / 2 if k < n else above / 2


def dendrogram(
    result: Any, *, n_clusters: int | None = None, merges: int = MERGES, names: Any = None, ax: Any = None
) -> Any:
    """Draw a tree of merges: its last `merges`, each a bracket at its height, in the colours of the cut.

    Clusters below what is drawn are leaves with their number of rows in brackets, so a tree of a million rows reads as
    well as one of fifty.

    Parameters
    ----------
    result : fitted tree estimator, or linkage matrix (n - 1, 4)
    n_clusters : int, optional
        Where to cut; an estimator's own clusters by default, no cut of a matrix.
    merges : int, default=40
        How many of the last merges are drawn; at least those above the cut.
    names : texts (n,), optional
        Of the rows; their numbers by default.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from coterie import plots
    >>> from coterie.hierarchy import linkage
    >>> ax = plots.dendrogram(linkage([[0.0], [1.0], [5.0], [6.5]], "average"), n_clusters=2, names="abcd")
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['a', 'b', 'c', 'd']
    """
    how: dict[str, Any] = {"n_clusters": n_clusters, "merges": merges, "names": names, "ax": ax}
    if hasattr(result, "fit"):
        return DendrogramDisplay.from_estimator(result, **how).ax_
    return DendrogramDisplay.from_result(result, **how).ax_
