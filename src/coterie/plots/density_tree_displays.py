"""Trees of density-based clusters: reachability plot and condensed tree."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import not_negative, whole_number
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.errors import InputError, ParameterError
from coterie.metrics.model_labels import check_fitted
from coterie.palette import INK, MARK, NOISE, colours
from coterie.plots.display import Display, caption, label_axes

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
