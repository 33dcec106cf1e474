"""Dendrogram of the last merges of a hierarchical clustering."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import not_negative, whole_number
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.protocols import is_estimator
from coterie.errors import InputError, ParameterError
from coterie.hierarchy.cut import cut, subtree_heights
from coterie.hierarchy.tree import Tree, as_tree, check_tree
from coterie.metrics.model_labels import check_fitted
from coterie.palette import INK, MARK, NOISE, colours
from coterie.plots.display import Display, caption, label_axes

MERGES = 40  # merges that are drawn by default
LABELS = 60  # maximum number of leaves with labels


@dataclass(eq=False, repr=False)
class DendrogramDisplay(Display):
    """The last merges of a tree as brackets; clusters below them are leaves, labelled with their size."""

    kind: ClassVar[str] = "dendrogram"
    size: ClassVar[tuple[float, float]] = (8.0, 4.6)
    x: Array  # (m, 4) corners of each bracket, from the foot of its left leg to the foot of its right leg
    y: Array  # (m, 4)
    cluster: Array  # (m,) cluster of each merge; -1: above the cut
    leaves: list[str]  # (m + 1,) from left to right: the name of a row, or the number of rows in parentheses
    sizes: Array  # (m + 1,) number of rows of each leaf
    leaf_cluster: Array  # (m + 1,)
    k: int  # number of clusters of the cut; 1: no cut
    height: float | None  # height of the cut
    n: int  # number of rows

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, *, n_clusters: int | None = None, merges: int = MERGES, names: Any = None,
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """Dendrogram of a fitted hierarchical estimator, cut into its or `n_clusters` clusters; `X` is ignored."""
        check_fitted(model)
        if getattr(model, "linkage_matrix_", None) is None:
            raise ParameterError(
                f"{type(model).__name__} has no linkage_matrix_: use AgglomerativeClustering or hierarchy.linkage"
            )
        k = model.n_clusters_ if n_clusters is None else n_clusters
        return cls.from_result(model.linkage_matrix_, n_clusters=k, merges=merges, names=names, ax=ax)

    @classmethod
    def from_result(
        cls, Z: Any, *, n_clusters: int | None = None, merges: int = MERGES, names: Any = None, ax: Any = None
    ) -> Self:
        """Dendrogram of a linkage matrix (n - 1, 4), cut into `n_clusters` if given."""
        Z = check_tree(Z)
        n = len(Z) + 1
        if n < 2:
            raise InputError("Z has no merges: a dendrogram needs at least two rows")
        k = 1 if n_clusters is None else whole_number("n_clusters", n_clusters, 1)
        if names is not None and len(names) != n:
            raise InputError(f"names must have one entry for each of the {n} rows; got {len(names)}")
        labels = cut(Z, n_clusters=k)
        n_merges = min(n - 1, max(whole_number("merges", merges, 1), k - 1))
        return cls._build(Z, n_merges, labels, k, names)._plot_into(ax)

    @classmethod
    def _build(cls, Z: Array, n_merges: int, labels: Array, k: int, names: Any) -> Self:
        tree, n = as_tree(Z), len(Z) + 1
        first = n - 1 - n_merges  # index of the first merge that is drawn
        children = np.stack([tree.left[first:], tree.right[first:]], axis=1)
        leaves = np.sort(children[children < n + first])
        leaves = leaves[np.argsort(tree.first[leaves], kind="stable")]
        position, height = np.zeros(2 * n - 1), np.zeros(2 * n - 1)
        position[leaves] = np.arange(len(leaves))
        height[n:] = tree.height
        low = np.where(np.isin(children, leaves), 0.0, height[children])
        for i, (left, right) in enumerate(children.tolist()):
            position[n + first + i] = (position[left] + position[right]) / 2
        top = tree.height[first:]
        x = position[children][:, [0, 0, 1, 1]]
        y = np.stack([low[:, 0], top, top, low[:, 1]], axis=1)
        clusters = _cluster_of_nodes(tree, labels)
        sizes = tree.size[leaves]
        row_names = [str(j) if names is None else str(names[j]) for j in np.where(leaves < n, leaves, 0)]
        leaf_names = [name if size == 1 else f"({size:,})" for name, size in zip(row_names, sizes, strict=True)]
        return cls(x, y, clusters[n + first :], leaf_names, sizes, clusters[leaves], k, _cut_height(Z, k), n)

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
        text = count(self.n)
        if len(self.y) < self.n - 1:
            text = f"the last {count(len(self.y), 'merge')} of {text}"
        caption(ax, text if self.height is None else f"{text}, cut into {count(self.k, 'cluster')}")

    def _draw_leaves(self, ax: Any) -> None:
        m = len(self.leaves)
        if m > LABELS:
            ax.set_xticks([])
            ax.set_xlabel(f"{m:,} branches, from left to right")
            return
        is_vertical = m > 16 or max(map(len, self.leaves)) > 4
        ax.set_xticks(range(m), self.leaves, rotation=90 if is_vertical else 0, fontsize=8 if m <= 40 else 7)
        ax.tick_params(axis="x", length=0)
        shades = colours(self.k) if self.k > 1 else [INK]
        for text, j in zip(ax.get_xticklabels(), self.leaf_cluster, strict=True):
            text.set_color(shades[j] if j >= 0 else INK)
        if (self.sizes > 1).any():
            ax.set_xlabel("row, or (number of rows)")


def _cluster_of_nodes(tree: Tree, labels: Array) -> Array:
    """Return the cluster of all leaves below each node (2 n - 1,), or -1 if they are in several clusters."""
    order = labels[tree.leaves()]
    last = tree.first + tree.size - 1
    changes = np.append(0, np.cumsum(order[1:] != order[:-1]))  # the leaves of a cluster are contiguous
    is_one = changes[tree.first] == changes[last]
    return np.where(is_one, order[tree.first], -1)


def _cut_height(Z: Array, k: int) -> float | None:
    """Return the height half way between the merge that leaves k clusters and the next one; None if k = 1."""
    if k < 2:
        return None
    heights = np.sort(subtree_heights(Z))
    n = len(Z) + 1
    above = float(heights[n - k])
    return (float(heights[n - k - 1]) + above) / 2 if k < n else above / 2


def dendrogram(
    model: Any, *, n_clusters: int | None = None, merges: int = MERGES, names: Any = None, ax: Any = None
) -> Any:
    """Draw a dendrogram of the last merges of a hierarchical clustering, coloured by cluster.

    Each merge is a bracket at its height. Clusters below the drawn merges are leaves, labelled with their number of
    rows in parentheses, so trees of any size can be drawn.

    Parameters
    ----------
    model : fitted hierarchical estimator, or linkage matrix of shape (n - 1, 4)
        An estimator must have a `linkage_matrix_`.
    n_clusters : int or None, default=None
        Number of clusters of the cut. None: the clusters of the estimator; no cut for a linkage matrix.
    merges : int, default=40
        Number of the last merges that are drawn; all merges above the cut are always drawn.
    names : sequence of str of length n or None, default=None
        Names of the rows. None: their numbers.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    DendrogramDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import plots
    >>> from coterie.hierarchy import linkage
    >>> ax = plots.dendrogram(linkage([[0.0], [1.0], [5.0], [6.5]], "average"), n_clusters=2, names="abcd")
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['a', 'b', 'c', 'd']
    """
    options: dict[str, Any] = {"n_clusters": n_clusters, "merges": merges, "names": names, "ax": ax}
    if is_estimator(model):
        return DendrogramDisplay.from_estimator(model, **options)._drawn()
    return DendrogramDisplay.from_result(model, **options)._drawn()


# Trees of density-based clusters: reachability plot and condensed tree.

BINS = 400  # bars of a figure
BOXES = 60  # clusters that are drawn by default


@dataclass(eq=False, repr=False)
class ReachabilityDisplay(Display):
    """The rows in the order of the tree, in bars of one or several rows, coloured by cluster."""

    kind: ClassVar[str] = "reachability"
    size: ClassVar[tuple[float, float]] = (8.0, 3.6)
    edges: Array  # (b + 1,) positions of the first rows of the bars, and the number of rows
    heights: Array  # (b,) largest reachability distance of each bar
    labels: Array  # (b,) most frequent cluster of each bar; -1 is noise
    k: int  # number of clusters
    eps: float | None  # radius that is marked

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, eps: float | None = None, ax: Any = None) -> Self:
        """Reachability plot of a fitted `HDBSCAN`; `X` is ignored."""
        order = check_density_tree(model).ordering_
        reach, labels = model.reachability_[order], model.labels_[order]
        reach[0] = reach[1:].max()  # the first row is connected to none
        edges = np.unique(np.linspace(0, len(order), min(BINS, len(order)) + 1).astype(int))
        heights = np.maximum.reduceat(reach, edges[:-1])
        most_frequent = np.array([np.bincount(labels[a:b] + 1).argmax() - 1 for a, b in pairwise(edges)])
        radius = None if eps is None else not_negative("eps", eps)
        return cls(edges, heights, most_frequent, model.n_clusters_, radius)._plot_into(ax)

    def _draw(self, ax: Any) -> None:
        shades = [*colours(self.k), NOISE]
        bar_colours = [shades[j] for j in self.labels]
        self.bars_ = ax.bar(self.edges[:-1], self.heights, np.diff(self.edges), align="edge", color=bar_colours)
        self.radius_ = None
        if self.eps is not None:
            self.radius_ = ax.axhline(self.eps, color=MARK, linestyle="--", linewidth=1.2)
        ax.set_xlim(0, self.edges[-1])
        label_axes(ax, "rows, in the order of the tree", "reachability distance")
        caption(ax, f"{count(int(self.edges[-1]))}, {count(self.k, 'cluster')}; grey is noise")


def check_density_tree(model: Any) -> Any:
    """Return a fitted model with a condensed tree of at least two rows, or raise an error."""
    check_fitted(model)
    if getattr(model, "condensed_tree_", None) is None:
        raise ParameterError(f"{type(model).__name__} has no condensed_tree_: use HDBSCAN")
    if len(model.condensed_tree_.row_cluster) < 2:
        raise InputError("the tree has one row: the figure needs at least two rows of positive weight")
    return model


def reachability(model: Any, *, eps: float | None = None, ax: Any = None) -> Any:
    """Draw the reachability plot of a fitted `HDBSCAN`, coloured by cluster.

    The rows are in the order of the tree. Valleys are clusters, and deep valleys are dense clusters. The clusters of
    DBSCAN for a radius are the parts below it.

    Parameters
    ----------
    model : fitted HDBSCAN
        The model.
    eps : float or None, default=None
        Radius to mark with a line.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    ReachabilityDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import HDBSCAN, plots
    >>> from coterie.datasets import make_moons
    >>> model = HDBSCAN(15).fit(make_moons(200, noise=0.05, random_state=0)[0])
    >>> plots.reachability(model, eps=0.2).get_ylabel()
    'reachability distance'
    """
    return ReachabilityDisplay.from_estimator(model, eps=eps, ax=ax)._drawn()


@dataclass(eq=False, repr=False)
class CondensedTreeDisplay(Display):
    """The largest clusters as boxes: as wide as their rows, as high as the range of densities at which they exist."""

    kind: ClassVar[str] = "condensed tree"
    size: ClassVar[tuple[float, float]] = (8.0, 4.6)
    start: Array  # (m,) position of the first row of each cluster, in the order of the tree
    stop: Array  # (m,)
    birth: Array  # (m,) density at which the cluster is split off
    death: Array  # (m,) density at which it ends
    label: Array  # (m,) label of a selected cluster; -1: not selected
    k: int  # number of selected clusters
    n: int  # number of rows

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, max_clusters: int = BOXES, ax: Any = None) -> Self:
        """Condensed tree of a fitted `HDBSCAN`; `X` is ignored."""
        order = check_density_tree(model).ordering_
        tree, k = model.condensed_tree_, len(model.condensed_tree_.cluster_parent)
        position = np.empty(len(model.labels_), int)
        position[order] = np.arange(len(order))
        position = position[np.sort(order)]
        first, last = np.full(k, len(order)), np.zeros(k, int)
        np.minimum.at(first, tree.row_cluster, position)
        np.maximum.at(last, tree.row_cluster, position)
        for c in range(k - 1, 0, -1):
            up = tree.cluster_parent[c]
            first[up], last[up] = min(first[up], first[c]), max(last[up], last[c])
        label = np.full(k, -1)
        label[model._clusters] = np.arange(len(model._clusters))
        number = whole_number("max_clusters", max_clusters, 1)
        largest = np.sort(np.argsort(-tree.cluster_size, kind="stable")[:number])
        start, stop, birth, death, label = (
            values[largest] for values in (first, last + 1, tree.cluster_lambda, tree.deaths(), label)
        )
        return cls(start, stop, birth, death, label, model.n_clusters_, len(order))._plot_into(ax)

    def _draw(self, ax: Any) -> None:
        shades = [*colours(self.k), NOISE]
        self.boxes_ = ax.bar(
            self.start, self.death - self.birth, self.stop - self.start, self.birth, align="edge",
            color=[shades[j] for j in self.label], edgecolor=INK, linewidth=0.4,
        )  # fmt: skip
        ax.set_xlim(0, self.n)
        label_axes(ax, "rows, in the order of the tree", "density (1 / distance)")
        caption(ax, f"{count(self.n)}, {count(len(self.start), 'cluster')} of the tree; selected ones are coloured")


def condensed_tree(model: Any, *, max_clusters: int = BOXES, ax: Any = None) -> Any:
    """Draw the condensed tree of a fitted `HDBSCAN`: its clusters of all densities, with the selected ones in colour.

    A box is a cluster, from the density at which it is split off its parent to the density at which its last row leaves
    it, or at which it is split. The root is the box at the bottom.

    Parameters
    ----------
    model : fitted HDBSCAN
        The model.
    max_clusters : int, default=60
        Maximum number of clusters; the largest ones are drawn.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    CondensedTreeDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import HDBSCAN, plots
    >>> from coterie.datasets import make_moons
    >>> model = HDBSCAN(15).fit(make_moons(200, noise=0.05, random_state=0)[0])
    >>> int((plots.condensed_tree(model).label >= 0).sum())  # boxes in colour
    2
    """
    return CondensedTreeDisplay.from_estimator(model, max_clusters=max_clusters, ax=ax)._drawn()
