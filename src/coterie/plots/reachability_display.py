"""Reachability plot: the distance at which each row is connected to the rows before it."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import not_negative
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.errors import InputError, ParameterError
from coterie.metrics.model_labels import check_fitted
from coterie.palette import MARK, NOISE, colours
from coterie.plots.display import Display, caption

BINS = 400  # bars of a figure


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
        ax.set_xlabel("rows, in the order of the tree")
        ax.set_ylabel("reachability distance")
        ax.spines[["top", "right"]].set_visible(False)
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
