"""The names of the package hdbscan, computed by coterie.

`min_samples` of hdbscan does not include the row itself, that of coterie does. Options that choose between the
algorithms of hdbscan, or what it stores, are accepted and have no effect here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import coterie
from coterie.metrics import dbcv_score

WITHOUT_EFFECT = ("algorithm", "leaf_size", "memory", "approx_min_span_tree", "gen_min_span_tree", "core_dist_n_jobs",
                  "prediction_data")  # fmt: skip
OPTIONS = ("cluster_selection_epsilon", "cluster_selection_method", "allow_single_cluster")


class HDBSCAN(coterie.HDBSCAN):
    def __init__(
        self,
        min_cluster_size: Any = 5,
        min_samples: Any = None,
        metric: Any = "euclidean",
        max_cluster_size: int = 0,
        **options: Any,
    ):
        self._requested = min_cluster_size if min_samples is None else min_samples
        params = {key: value for key, value in options.items() if key not in (*OPTIONS, *WITHOUT_EFFECT)}
        super().__init__(
            min_cluster_size,
            metric=metric,
            metric_params=params or None,
            max_cluster_size=max_cluster_size or None,
            **{key: value for key, value in options.items() if key in OPTIONS},
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        self.min_samples = self._requested
        if isinstance(self._requested, int) and self._requested >= 0:
            self.min_samples = min(self._requested + 1, X.shape[0] if hasattr(X, "shape") else len(X))
        return super().fit(X, y, sample_weight)

    def generate_prediction_data(self) -> None:
        """Nothing to compute: `predict` needs no preparation."""


def hdbscan(X: Any, **options: Any) -> tuple[Any, ...]:
    model = HDBSCAN(**options).fit(X)
    trees = model.condensed_tree_, model.single_linkage_tree_, model.minimum_spanning_tree_
    return model.labels_, model.probabilities_, model.cluster_persistence_, *trees


def validity_index(X: Any, labels: Any, metric: Any = "euclidean", d: int | None = None) -> float:
    return dbcv_score(X, labels, metric=metric, **({} if d is None else {"n_features": d}))


def approximate_predict(model: HDBSCAN, X: Any) -> tuple[Any, Any]:
    labels, probabilities, _ = model._predicted(X)
    return labels, probabilities


def approximate_predict_scores(model: HDBSCAN, X: Any) -> Any:
    return model._predicted(X)[2]


def membership_vector(model: HDBSCAN, X: Any) -> Any:
    return model.predict_proba(X)


def all_points_membership_vectors(model: HDBSCAN) -> Any:
    memberships = model.predict_proba(model._rows.A)
    return memberships if memberships.shape[1] else np.zeros(len(memberships))
