"""Silhouettes of clusters: one measurement for the terminal, JSON and the report."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.distances import as_distance
from coterie.jobs.prepare import Prepared
from coterie.plots.silhouette_plot import SilhouetteDisplay
from coterie.report.html.report import Absent
from coterie.selection.criteria import metric_of


def silhouettes(
    prepared: Prepared, labels: NDArray[np.integer], model: Any = None, threads: int | None = None
) -> SilhouetteDisplay | Absent:
    """Of all rows, or of a random sample of many, by the distance of the model (Euclidean if there is none)."""
    how = prepared.preparation
    clusters, codes = np.unique(labels, return_inverse=True)
    if len(clusters) < 2:
        return Absent("one cluster has none: silhouettes compare clusters")
    if len(clusters) == len(labels):
        return Absent("every row is a cluster of its own")
    if how.mixed:
        return Absent("columns of several kinds have no straight-line distances")
    if how.series:
        return Absent("distances of all pairs of series would take too long")
    if prepared.rows.holes:
        return Absent("rows have missing values: --missing drop or median gives it")
    if prepared.weight is not None and not np.bincount(codes, prepared.weight).all():
        return Absent("a cluster is of rows that weigh nothing")
    own: dict[str, Any] = {"metric": "euclidean"} if model is None else metric_of(model)
    metric = as_distance(own["metric"], **(own.get("metric_params") or {}))
    return SilhouetteDisplay.from_predictions(
        prepared.rows.S, codes, metric=metric, sample_weight=prepared.weight, n_jobs=threads
    )


def mean_of(found: SilhouetteDisplay | Absent) -> float | None:
    """The mean of all rows; None where silhouettes have no meaning."""
    return None if isinstance(found, Absent) else found.mean


def by_cluster(labels: NDArray[np.integer], found: SilhouetteDisplay | Absent) -> dict[int, float]:
    """The mean of each cluster, by its label; empty where silhouettes have no meaning."""
    if isinstance(found, Absent):
        return {}
    return dict(zip(np.unique(labels).tolist(), found.means.tolist(), strict=True))
