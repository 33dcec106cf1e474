"""How alike each cluster is to the one it is most alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.metrics.moments import moments_of_several


def davies_bouldin_score(X: Any, labels: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Mean over the clusters of the worst ratio of widths to the distance between centers.

    .. math:: \frac{1}{K} \sum_i \max_{j \ne i} \frac{\sigma_i + \sigma_j}{\lVert \mu_i - \mu_j \rVert}

    :math:`\sigma_i` is the mean distance of the rows of cluster i to their mean. From 0 up, lower is better. It sees
    clusters as balls about their means: do not use it for long or nested ones.

    Parameters
    ----------
    X : array, frame, sparse matrix, LazyFrame, path of a file or Dask array (n, d)
    labels : labels (n,)
        The cluster of each row, of any kind, two different ones at least; -1 is a cluster like any other.
    sample_weight : array (n,), optional
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Notes
    -----
    Costs O(n d + K² d), three passes over the rows. It is infinite where two clusters have the same mean; scikit-learn
    leaves such pairs out.

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
    apart = np.stack([np.linalg.norm(moments.means.less(j), axis=1) for j in range(len(width))])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(apart > 0, (width[:, None] + width) / apart, np.inf)
    np.fill_diagonal(ratio, 0.0)
    return float(ratio.max(axis=1).mean())
