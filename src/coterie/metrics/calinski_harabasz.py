"""Calinski–Harabasz index."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.errors import InputError
from coterie.metrics.moments import moments_of_several


def calinski_harabasz_score(X: Any, labels: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Compute the variance ratio criterion: the mean square between clusters divided by the mean square within.

    .. math:: \frac{B / (K - 1)}{W / (n - K)}

    `B` is `bcss`, `W` is `inertia`, and n is the sum of the weights. The score is at least 0, and higher is better. For
    labels that are independent of the rows it is about 1. It favours round clusters of similar size that are far apart.
    Do not use it for elongated or nested clusters, nor to compare clusterings of different data sets.

    Parameters
    ----------
    X, labels, sample_weight, n_jobs
        As in `inertia`. There must be at least two different labels. A weight is the number of times that a row is
        counted.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n d) operations, and three passes over the data. The score is infinite if each cluster is a single point and
    not all points are equal, and 0 if all rows are equal; scikit-learn returns 1 in both cases.

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
        raise InputError(
            f"labels have {k} clusters of {n:g} rows in total: this index needs more rows than clusters; use fewer "
            "clusters"
        )
    between, within = moments.between, float(moments.sum_square.sum())
    if within == 0:
        return float("inf") if between > 0 else 0.0
    return between / within * ((n - k) / (k - 1))
