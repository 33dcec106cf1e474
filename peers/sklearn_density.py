"""`DBSCAN`, `dbscan` and `HDBSCAN` with the options of scikit-learn that choose between its algorithms.

coterie has one algorithm for each distance, so these options are accepted and have no effect here. `p` is a parameter
of the metric in coterie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import coterie


@dataclass(eq=False, repr=False)
class DBSCAN(coterie.DBSCAN):
    algorithm: str = "auto"
    leaf_size: int = 30
    p: float | None = None

    def _as_distance(self) -> Any:
        if self.p is None:
            return super()._as_distance()
        name = "minkowski" if self.metric == "euclidean" else self.metric
        return coterie.DBSCAN(metric=name, metric_params={"p": self.p})._as_distance()


@dataclass(eq=False, repr=False)
class HDBSCAN(coterie.HDBSCAN):
    algorithm: str = "auto"
    leaf_size: int = 40
    copy: bool = False


def dbscan(X: Any, eps: float = 0.5, *, sample_weight: Any = None, **options: Any) -> tuple[Any, Any]:
    if options.get("metric") == "minkowski" and "p" not in options:
        options["p"] = 2
    model = DBSCAN(eps, **options).fit(X, sample_weight=sample_weight)
    return model.core_sample_indices_, model.labels_
