"""The models of one estimator of centers for several numbers of clusters, on the same rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.base import clone

from coterie.core.protocols import Engine, Source
from coterie.kmeans.center_estimator import check_enough_rows
from coterie.kmeans.exact_kmeans import exact_if_possible
from coterie.kmeans.kmeans import KMeans
from coterie.kmeans.metric_weights import as_roots, scaled


class SweepModels(NamedTuple):
    """Models by number of clusters, the rows they share, and options of the fits."""

    models: dict[int, Any]
    source: Source
    engine: Engine
    n_init: int
    max_iter: int


def sweep_models(estimator: Any, ks: list[int], X: Any, sample_weight: Any) -> SweepModels:
    """The models of `estimator` for ascending numbers of clusters `ks`."""
    n_init, max_iter, _ = estimator._check_options()
    source, engine, summary = estimator._open(X, sample_weight, first=True)
    check_enough_rows(ks[-1], summary)
    models = {k: clone(estimator).set_params(n_clusters=k)._model(summary) for k in ks}
    if isinstance(estimator, KMeans):
        roots = as_roots(estimator.metric_weights, source.shape[1])
        models = {
            k: exact_if_possible(estimator.algorithm, scaled(model, roots), source) for k, model in models.items()
        }
    return SweepModels(models, source, engine, n_init, max_iter)
