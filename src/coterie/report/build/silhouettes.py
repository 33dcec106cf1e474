"""Silhouettes of clusters: one computation for terminal, JSON and report."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.distances import as_distance
from coterie.plots.silhouette_display import SilhouetteDisplay
from coterie.preparation.fit_preparation import PreparedTable
from coterie.report.html.report import Absent
from coterie.selection.criteria import metric_of


def silhouettes(
    prepared: PreparedTable, labels: NDArray[np.integer], model: Any = None, threads: int | None = None
) -> SilhouetteDisplay | Absent:
    """Silhouettes of all rows, or of a random sample, with the metric of the model (Euclidean without a model)."""
    preparation = prepared.preparation
    clusters, codes = np.unique(labels, return_inverse=True)
    if len(clusters) < 2:
        return Absent("not defined for one cluster: silhouettes compare clusters")
    if len(clusters) == len(labels):
        return Absent("every row is a cluster of its own")
    if preparation.mixed:
        return Absent("not defined for mixed column types")
    if prepared.rows.has_missing and not preparation.series:
        return Absent("rows have missing values: use --missing drop or median")
    if prepared.weight is not None and not np.bincount(codes, prepared.weight).all():
        return Absent("all rows of a cluster have weight 0")
    metric = as_distance(**({"metric": "euclidean"} if model is None else metric_of(model)))
    return SilhouetteDisplay.from_predictions(
        prepared.rows.X, codes, metric=metric, sample_weight=prepared.weight, n_jobs=threads
    )
