"""Scatter plot of clusters."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import in_order, one_of
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.distances import pairwise
from coterie.errors import ParameterError
from coterie.plots.cloud import Cloud
from coterie.plots.display import caption, drawn_display
from coterie.plots.neighbour_map import ROWS, Trust, is_worthwhile, neighbour_map, principal_coordinates, sample_of_map
from coterie.plots.projection import Groups, Rows, RowsDisplay, View
from coterie.selection.criteria import metric_of

MAPS = ("axes", "neighbours", "auto")


@dataclass(eq=False, repr=False)
class ClustersDisplay(RowsDisplay):
    """Rows coloured by cluster, on two columns, principal axes or a neighbour map; one column as a histogram."""

    kind: ClassVar[str] = "clusters"
    cloud: Cloud
    trust: Trust | None = None  # of a neighbour map

    @classmethod
    def _build(cls, rows: Rows, groups: Groups, model: Any, columns: Any = None, map: str = "axes") -> Self:
        one_of("map", map, MAPS)
        if columns is not None and map != "axes":
            raise ParameterError(f"columns={columns!r} and map={map!r} both choose the axes: leave out one of them")
        metric = {"metric": "euclidean"} if model is None else metric_of(model)
        if metric["metric"] == "precomputed":
            return cls._of_distances(rows, groups, map)
        view = View.of(rows, columns)
        if map == "axes" or (map == "auto" and not is_worthwhile(view.share, len(rows.X))):
            return cls(Cloud.of(rows, groups, view, inner=True))
        index = _sample(groups)
        return cls._on_neighbour_map(rows, groups, pairwise(rows.X[index], **metric), index)

    @classmethod
    def _of_distances(cls, rows: Rows, groups: Groups, map: str) -> Self:
        """Rows of a matrix of distances, on their principal coordinates or on a neighbour map."""
        D = rows.X if rows.row_numbers is None else rows.X[:, rows.row_numbers]
        if map != "axes":
            index = _sample(groups)
            return cls._on_neighbour_map(rows, groups, D[np.ix_(index, index)], index)
        axes = ["principal coordinate 1", "principal coordinate 2"]
        return cls(Cloud.on_map(rows, groups, principal_coordinates(D), np.arange(len(D)), axes))

    @classmethod
    def _on_neighbour_map(cls, rows: Rows, groups: Groups, D: Array, index: Array) -> Self:
        result = neighbour_map(D, index, None if rows.w is None else rows.w[index])
        cloud = Cloud.on_map(rows, groups, result.points, index, ["", ""], f"; {result.trust.caption}")
        return cls(cloud, result.trust)

    def _draw(self, ax: Any) -> None:
        self.rows_ = self.cloud.draw(ax)
        self.numbers_ = self.cloud.draw_names(ax)
        caption(ax, f"{count(len(self.cloud.names), 'cluster')}, {self.cloud.description}")


@in_order("plots.clusters(model, X)")
def clusters(
    model: Any, X: Any, *, columns: Any = None, map: str = "axes", sample_weight: Any = None, ax: Any = None
) -> Any:
    """Draw a scatter plot of the rows, coloured by cluster.

    More than two columns are projected onto the first two principal axes; the axis labels state their shares of the
    variance. Clusters that are separated in all columns may overlap in this projection. One column is drawn as a
    histogram. More than 50,000 rows are drawn as a density image: each cell has the colour of the cluster with the most
    rows in it, and is darker if it has more rows. A few rows that are far from all others do not stretch the axes:
    arrows at the border point to them, and the caption counts them.

    A neighbour map places near rows near each other, by t-SNE. Of more than 1,500 rows it shows a random sample. The
    caption states how many neighbours it keeps. Distances between groups mean nothing on it.

    Parameters
    ----------
    model : fitted estimator or labels of shape (n,)
        The clusters are the predictions of the estimator for `X`. For hierarchical models and `BalancedKMeans`, they
        are those of the fit if `X` (with `sample_weight`) holds the fitted rows. An estimator without `predict` must
        have been fitted to these rows, in this order. Labels can be of any type; -1 means that a row is in no cluster.
    X : array or DataFrame of shape (n, d)
        Missing values, if the model supports them, are drawn at the mean of their column; the caption says so.
    columns : str, int, sequence of one or two of these, or None, default=None
        Names or numbers of the columns to show. None: all columns, or the first two principal axes of more than two.
    map : {'axes', 'neighbours', 'auto'}, default='axes'
        'axes' are principal axes, or principal coordinates of precomputed distances. 'neighbours' is a neighbour map,
        with the metric of the model. 'auto' is a neighbour map if two principal axes show less than 60 % of the
        variance, or if distances are precomputed.
    sample_weight : array of shape (n,) or None, default=None
        Row weights, used in sizes, centers and principal axes. Rows of weight 0 are not drawn.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    ClustersDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> ax = plots.clusters(KMeans(2, random_state=0).fit(X), X)
    >>> ax.get_title(loc="left")
    '2 clusters, 6 rows'
    """
    return drawn_display(ClustersDisplay, model, X, columns=columns, map=map, sample_weight=sample_weight, ax=ax)


def _sample(groups: Groups) -> Array:
    return sample_of_map(groups.codes, len(groups.names), ROWS)
