"""Clusters as they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.plots.cloud import Cloud
from coterie.plots.display import Display, caption, counted
from coterie.plots.rows import View, rows_by, rows_of


@dataclass(eq=False, repr=False)
class ClustersDisplay(Display):
    """Rows, coloured and numbered by cluster: two columns as they are, more on their principal axes, one as bars."""

    kind: ClassVar[str] = "clusters"
    cloud: Cloud

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Of a fitted model; `columns` are one or two to show instead of principal axes."""
        rows, groups = rows_by(model, X, sample_weight)
        return cls(Cloud.of(rows, groups, View.of(rows, columns)))._on(ax)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Of labels, one a row; -1 is no cluster."""
        rows, groups = rows_of(X, labels, sample_weight)
        return cls(Cloud.of(rows, groups, View.of(rows, columns)))._on(ax)

    def _draw(self, ax: Any) -> None:
        self.rows_ = self.cloud.draw(ax)
        self.numbers_ = self.cloud.number(ax)
        caption(ax, f"{counted(len(self.cloud.names), 'cluster')}, {self.cloud.told}")


def clusters(result: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw rows in their clusters.

    More than two columns are shown on the two axes of largest variance, whose shares of it are written beside them;
    clusters that are apart may well overlap there. More than 50 000 rows are drawn as shades: the colour of the cluster
    that has most rows there, darker where there are more rows.

    Parameters
    ----------
    result : fitted model, or labels (n,)
        Clusters are those the model predicts for `X`; of trees and `BalancedKMeans` those of the fit, if `X` (with
        `sample_weight`) are its rows. What cannot predict must have been fitted to these rows, in this order. Labels
        may be of any kind; -1 is that of rows in no cluster.
    X : array or frame (n, d)
        Missing values, if the model takes them, are drawn at the mean of their column, as the caption says.
    columns : one or two names or numbers of columns, optional
        What to show instead.
    sample_weight : array (n,), optional
        How much each row counts, in sizes, centers and principal axes; rows of weight 0 are not there.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> ax = plots.clusters(KMeans(2, random_state=0).fit(X), X)
    >>> ax.get_title(loc="left")
    '2 clusters, 6 rows'
    """
    if hasattr(result, "fit"):
        return ClustersDisplay.from_estimator(result, X, columns=columns, sample_weight=sample_weight, ax=ax).ax_
    return ClustersDisplay.from_predictions(X, result, columns=columns, sample_weight=sample_weight, ax=ax).ax_
