"""Davies–Bouldin index."""

from typing import Any

import numpy as np

from coterie.metrics.moments import moments_of_several


def davies_bouldin_score(X: Any, labels: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Compute the mean similarity of each cluster to its most similar cluster.

    .. math:: \frac{1}{K} \sum_i \max_{j \ne i} \frac{\sigma_i + \sigma_j}{\lVert \mu_i - \mu_j \rVert}

    :math:`\sigma_i` is the mean distance of the rows of cluster i to their mean. The score is at least 0, and lower is
    better. The index assumes round clusters: do not use it for elongated or nested ones.

    Parameters
    ----------
    X, labels, sample_weight, n_jobs
        As in `inertia`. There must be at least two different labels.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n d + K² d) operations, and three passes over the data. The score is infinite if two clusters have the same
    mean; scikit-learn ignores such pairs.

    References
    ----------
    .. [1] Davies & Bouldin (1979), A cluster separation measure, IEEE Trans. Pattern Anal. Mach. Intell. 1.
       https://doi.org/10.1109/TPAMI.1979.4766909

    Examples
    --------
    >>> from coterie.metrics import davies_bouldin_score
    >>> davies_bouldin_score([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    0.2
    """
    moments, _ = moments_of_several(X, labels, sample_weight, n_jobs)
    width = moments.sum_distance / moments.weight
    distance = np.stack([np.linalg.norm(moments.means.minus(j), axis=1) for j in range(len(width))])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(distance > 0, (width[:, None] + width) / distance, np.inf)
    np.fill_diagonal(ratio, 0.0)
    return float(ratio.max(axis=1).mean())
