"""The ratio of variance between clusters to that within."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.core.errors import InputError
from coterie.metrics.moments import moments_of_several


def calinski_harabasz_score(X: Any, labels: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Variance ratio: the mean square between clusters by the mean square within.

    .. math:: \frac{B / (K - 1)}{W / (n - K)}

    `B` is `bcss`, `W` is `inertia`, n the sum of the weights. From 0 up, higher is better; for rows without clusters
    it is about 1 for any labels that do not depend on them. It favours clusters that are round, alike in size and far
    apart; do not use it for long or nested ones, nor to compare clusterings of different tables.

    Parameters
    ----------
    X : array, frame, sparse matrix, LazyFrame, path of a file or Dask array (n, d)
    labels : labels (n,)
        The cluster of each row, of any kind, two different ones at least; -1 is a cluster like any other.
    sample_weight : array (n,), optional
        How many rows each row stands for.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Notes
    -----
    Costs O(n d), three passes over the rows. It is infinite where every cluster is one point and they are not all the
    same, 0 where all rows are equal; scikit-learn gives 1 for both.

    References
    ----------
    .. [1] Caliński & Harabasz (1974), A dendrite method for cluster analysis, Commun. Stat. 3.
       https://doi.org/10.1080/03610927408827101

    Examples
    --------
    >>> from coterie.metrics import calinski_harabasz_score
    >>> calinski_harabasz_score([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    50.0
    """
    moments, scale = moments_of_several(X, labels, sample_weight, n_jobs)
    k, n = len(moments.weight), float(np.ldexp(moments.weight.sum(), scale.weights))
    if n <= k:
        raise InputError(f"labels make {k} clusters of {n:g} rows: this index needs more rows than clusters")
    between, within = moments.between, float(moments.sum_square.sum())
    if within == 0:
        return float("inf") if between > 0 else 0.0
    return between / within * ((n - k) / (k - 1))
