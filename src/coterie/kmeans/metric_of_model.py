"""The metric by which rows are assigned to the clusters of an estimator."""

from typing import Any

from coterie.core.protocols import parameters_of
from coterie.kmeans.kmedians import KMedians
from coterie.kmeans.spherical_kmeans import SphericalKMeans
from coterie.kmeans.time_series_kmeans import TimeSeriesKMeans


def metric_of(model: Any) -> dict[str, Any]:
    """Metric of an estimator, as keyword arguments of the functions of `coterie.metrics`."""
    if isinstance(model, SphericalKMeans):
        return {"metric": "cosine"}
    if isinstance(model, KMedians):
        return {"metric": "manhattan" if model.metric == "l1" else "euclidean"}
    if isinstance(model, TimeSeriesKMeans):  # soft-DTW is no distance: DTW is its limit for a small gamma
        return {"metric": "euclidean"} if model.metric == "euclidean" else {"metric": "dtw", "window": model.window}
    parameters = parameters_of(model)
    if parameters.get("metric_weights") is not None:
        return {"metric": "euclidean", "w": model.metric_weights}
    if "metric_params" in parameters:
        return {"metric": model.metric, **(model.metric_params or {})}
    return {"metric": "euclidean"}
