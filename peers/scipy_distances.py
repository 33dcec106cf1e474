"""SciPy's `pdist` and `cdist`, computed by `pairwise`."""

from __future__ import annotations

from typing import Any

import coterie.kernels.plain.pairwise  # noqa: F401  it uses SciPy's `cdist`, and is imported before that is replaced
from coterie.distances import pairwise


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **params: Any) -> Any:
    return pairwise(X, metric=metric, condensed=True, out=out, **params)


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **params: Any) -> Any:
    return pairwise(XA, XB, metric, out=out, **params)
