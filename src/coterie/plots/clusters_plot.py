"""Scatter plot of clusters."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.core.arguments import in_order
from coterie.core.formatting import count
from coterie.plots.cloud import Cloud
from coterie.plots.display import caption, drawn_display
from coterie.plots.projection import Groups, Rows, RowsDisplay, View


@dataclass(eq=False, repr=False)
class ClustersDisplay(RowsDisplay):
    """Rows coloured by cluster: two columns or principal axes as a scatter plot, one column as a histogram."""

    kind: ClassVar[str] = "clusters"
    cloud: Cloud

    @classmethod
    def _build(cls, rows: Rows, groups: Groups, model: Any, columns: Any = None) -> Self:
        return cls(Cloud.of(rows, groups, View.of(rows, columns)))

    def _draw(self, ax: Any) -> None:
        self.rows_ = self.cloud.draw(ax)
        self.numbers_ = self.cloud.draw_names(ax)
        caption(ax, f"{count(len(self.cloud.names), 'cluster')}, {self.cloud.description}")


@in_order("plots.clusters(model, X)")
def clusters(model: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw a scatter plot of the rows, coloured by cluster.

    More than two columns are projected onto the first two principal axes; the axis labels state their shares of the
    variance. Clusters that are separated in all columns may overlap in this projection. One column is drawn as a
    histogram. More than 50,000 rows are drawn as a density image: each cell has the colour of the cluster with the most
    rows in it, and is darker if it has more rows.

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
    return drawn_display(ClustersDisplay, model, X, columns=columns, sample_weight=sample_weight, ax=ax)
