"""Sums of squares: within clusters (inertia), between clusters, and total; and indices from them."""

from functools import partial
from typing import Any

import numpy as np

from coterie.core.arguments import as_numbers
from coterie.core.protocols import Source
from coterie.core.scale import SQUARES, Scale, multiplied
from coterie.errors import InputError, ParameterError
from coterie.metrics.labels import Labels
from coterie.metrics.moments import Means, as_labelled_source, cluster_moments, moments_of_several, scatter_about


def inertia(X: Any, labels: Any, *, centers: Any = None, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Compute the sum of squares within clusters (WCSS), the objective of K-means.

    .. math:: W = \sum_k \sum_{i \in C_k} w_i \lVert x_i - \mu_k \rVert^2

    The value is at least 0, and lower means more compact clusters. It decreases with the number of clusters, so that it
    cannot be used alone to choose this number. It depends on the units of the columns.

    Parameters
    ----------
    X : array, frame, sparse matrix, LazyFrame, path of a file or Dask array (n, d)
        The rows.
    labels : array (n,)
        The cluster of each row: integers, strings or other hashable values. -1 is an ordinary cluster, not noise.
    centers : array (k, d), optional
        The centers :math:`\mu_k`; by default the means of the clusters. `labels` must then be indices of centers.
    sample_weight : array (n,), optional
        Sample weights.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n d) operations: three passes over the data, or one with `centers`. The sum of `inertia` and `bcss` is `tss`
    for any labels.

    References
    ----------
    .. [1] Steinhaus (1956), Sur la division des corps matériels en parties, Bull. Acad. Polon. Sci. 4.

    Examples
    --------
    >>> from coterie.metrics import bcss, inertia, tss
    >>> X, labels = [[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]
    >>> inertia(X, labels), bcss(X, labels), tss(X)
    (4.0, 100.0, 104.0)
    """
    source, engine, encoded, scale = as_labelled_source(X, labels, sample_weight, n_jobs)
    if centers is None:
        return _rescaled("inertia", cluster_moments(source, engine, encoded).sum_square.sum(), scale)
    rows = np.ldexp(_centers_of_labels(centers, encoded, source), -scale.rows)
    means = Means(np.zeros_like(rows), rows)
    return _rescaled("inertia", engine.sum(partial(scatter_about, means), source).sum_square.sum(), scale)


def bcss(X: Any, labels: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Compute the sum of squares between clusters (BCSS).

    .. math:: B = \sum_k n_k \lVert \mu_k - \mu \rVert^2

    :math:`n_k` is the weight of cluster k, :math:`\mu_k` its mean, and :math:`\mu` the mean of all rows. The value is
    from 0 to `tss`, and higher means that clusters are farther apart. Like `inertia`, it cannot be used to compare
    different numbers of clusters; `calinski_harabasz_score` combines the two.

    Parameters
    ----------
    X, labels, sample_weight, n_jobs
        As in `inertia`.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n d) operations, and three passes over the data.

    Examples
    --------
    >>> from coterie.metrics import bcss
    >>> bcss([[0.0], [2.0], [10.0], [12.0]], ["a", "a", "b", "b"])
    100.0
    """
    source, engine, encoded, scale = as_labelled_source(X, labels, sample_weight, n_jobs)
    return _rescaled("bcss", cluster_moments(source, engine, encoded).between, scale)


def tss(X: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> float:
    r"""Compute the total sum of squares (TSS) about the mean of all rows.

    .. math:: T = \sum_i w_i \lVert x_i - \mu \rVert^2 = W + B

    It is the sum of `inertia` (W) and `bcss` (B) for any labels.

    Parameters
    ----------
    X, sample_weight, n_jobs
        As in `inertia`.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n d) operations, and three passes over the data.

    Examples
    --------
    >>> from coterie.metrics import tss
    >>> tss([[0.0], [2.0], [10.0], [12.0]])
    104.0
    """
    source, engine, one_cluster, scale = as_labelled_source(X, None, sample_weight, n_jobs)
    return _rescaled("tss", cluster_moments(source, engine, one_cluster).sum_square.sum(), scale)


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


def _rescaled(name: str, squares: float, scale: Scale) -> float:
    """Multiply a sum of squares by the scale by which rows and weights were divided."""
    return multiplied({name: float(squares)}, {name: SQUARES}, scale)[name]


def _centers_of_labels(centers: Any, labels: Labels, source: Source) -> np.ndarray:
    """The center of each label (k, d)."""
    rows: np.ndarray = as_numbers("centers", centers, f"an array of numbers (k, {source.shape[1]})")
    if rows.ndim != 2 or rows.shape[1] != source.shape[1] or not np.isfinite(rows).all():
        raise ParameterError(
            f"centers must be finite numbers, one row for each cluster and {source.shape[1]} columns; "
            f"the shape is {rows.shape}"
        )
    if labels.names.dtype.kind not in "iu" or labels.names.min() < 0 or labels.names.max() >= len(rows):
        raise InputError(
            f"labels must be integers from 0 to {len(rows) - 1} if centers has {len(rows)} rows; got labels from "
            f"{labels.names[0]!r} to {labels.names[-1]!r}"
        )
    return rows[labels.names]


# Davies–Bouldin index.


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
