"""SciPy's `pdist` and `cdist`, computed by `pairwise`.

SciPy's own functions as the metric, and names with its prefix `test_`, are the reference implementations of its tests:
they stay SciPy's, so that each test compares coterie with them. float32 rows become float64 as in SciPy: that coterie
returns float32 distances for them is stated on the page "Coming from SciPy", and would hide other differences here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.spatial.distance

import coterie.distances.minkowski  # both use SciPy's `cdist`, and are imported before that is replaced
import coterie.kernels.plain.pairwise  # noqa: F401
from coterie.distances import pairwise

_PDIST, _CDIST = scipy.spatial.distance.pdist, scipy.spatial.distance.cdist
NOT_AVAILABLE = ("dice", "jensenshannon", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
_METRICS_NAMES = [name for name in scipy.spatial.distance._METRICS_NAMES if name not in NOT_AVAILABLE]


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **params: Any) -> Any:
    if _is_reference(metric):
        return _PDIST(X, metric, out=out, **params)
    return pairwise(_float64(X), metric=metric, condensed=True, out=out, **params)


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **params: Any) -> Any:
    if _is_reference(metric):
        return _CDIST(XA, XB, metric, out=out, **params)
    return pairwise(_float64(XA), _float64(XB), metric, out=out, **params)


def _is_reference(metric: Any) -> bool:
    if isinstance(metric, str):
        return metric.startswith("test_")
    return getattr(metric, "__module__", "").startswith("scipy.spatial.") and metric.__name__ in dir(
        scipy.spatial.distance
    )


def _float64(X: Any) -> Any:
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X
