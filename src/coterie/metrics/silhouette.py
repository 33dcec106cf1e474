"""How much nearer rows are to their own cluster than to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arguments import as_rng, one_of, whole_number
from coterie.core.errors import ParameterError
from coterie.metrics.labels import Array
from coterie.metrics.objects import Objects, as_objects
from coterie.metrics.silhouette_points import about_means, about_medoids
from coterie.metrics.silhouette_rows import check_clusters, check_together, silhouettes, silhouettes_of

METHODS = ("exact", "sampled", "simplified", "medoid")


def silhouette_samples(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Array:
    r"""Silhouette of every row: how much nearer it is to its own cluster than to the next one.

    .. math:: s_i = \frac{b_i - a_i}{\max(a_i, b_i)}

    :math:`a_i` is the mean distance of row i to the other rows of its cluster, :math:`b_i` the least of its mean
    distances to another cluster. From -1 to 1: near 1 a row is well placed, near 0 between two clusters, below 0
    nearer to another one. A row that is a cluster by itself has 0. Do not use it for long or nested clusters, whose
    rows are far from most of their own.

    Parameters
    ----------
    X : array or frame (n, d), or what `metric` takes
        With 'precomputed' the square matrix of the distances.
    labels : labels (n,)
        The cluster of each row, of any kind, two different ones at least; -1 is a cluster like any other.
    metric : str, function or Distance, default='euclidean'
        Any of `coterie.distances.pairwise`, or 'precomputed'.
    metric_params : dict, optional
        Parameters of the metric.
    sample_weight : array (n,), optional
        How many rows each row stands for. Rows of weight 0 have a silhouette and do not matter to others; of weights
        below 1 all of a row's own is left out of its cluster, else 1.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Returns
    -------
    array (n,), of the type of the rows

    Notes
    -----
    Costs O(n² d) operations, for straight-line distances n²/2 of them fused with their sums, and O(n k) memory; or
    O(n k d) for 'sqeuclidean', 'cosine' and 'correlation', by way of the means.

    References
    ----------
    .. [1] Rousseeuw (1987), Silhouettes: a graphical aid to the interpretation and validation of cluster analysis,
       J. Comput. Appl. Math. 20. https://doi.org/10.1016/0377-0427(87)90125-7

    Examples
    --------
    >>> from coterie.metrics import silhouette_samples
    >>> silhouette_samples([[0.0], [1.0], [9.0], [10.0]], ["a", "a", "b", "b"]).round(3)
    array([0.895, 0.882, 0.882, 0.895])
    """
    objects = _objects(X, labels, metric, metric_params, sample_weight)
    with machine.one_blas_thread:
        return silhouettes(objects, n_jobs).astype(objects.dtype)


def silhouette_score(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    sample_weight: Any = None,
    method: str = "exact",
    average: str | None = "micro",
    sample_size: int | None = None,
    random_state: Any = None,
    return_error: bool = False,
    n_jobs: int | None = None,
) -> Any:
    r"""Mean silhouette of all rows, of each cluster, or an estimate of it for many rows.

    From -1 to 1, higher is better; see `silhouette_samples` for what it means and when not to use it.

    Parameters
    ----------
    X, labels, metric, metric_params, sample_weight, n_jobs
        As of `silhouette_samples`; for 'simplified' also Dask arrays and sparse matrices.
    method : 'exact' (default), 'sampled', 'simplified' or 'medoid'
        'exact': the mean of `silhouette_samples`, O(n² d).
        'sampled': `sample_size` rows drawn at random, each measured against all n: an estimate without bias of
        the same number, with its standard error.
        'simplified': another index, of distances to the means of clusters instead of all their rows, O(n k d) [2]_;
        'euclidean' and 'sqeuclidean' only.
        'medoid': the same with medoids, the rows nearest to all of their cluster, for any metric [3]_.
    average : 'micro' (default), 'macro' or None
        The mean over rows; over the means of clusters, so that small ones count as much; or these means, an array in
        the order of the sorted labels.
    sample_size : int, optional
        Rows that are drawn for 'sampled'; 1000, or all if there are fewer.
    random_state : None, int, RandomState or Generator
        Chance, for 'sampled'.
    return_error : bool, default=False
        Return the standard error too, 0 for methods that draw no rows.

    Returns
    -------
    float, or array (k,), or (float, float)

    References
    ----------
    .. [1] Rousseeuw (1987), Silhouettes: a graphical aid to the interpretation and validation of cluster analysis,
       J. Comput. Appl. Math. 20. https://doi.org/10.1016/0377-0427(87)90125-7
    .. [2] Hruschka, de Castro & Campello (2004), Evolutionary algorithms for clustering gene-expression data, ICDM.
    .. [3] Van der Laan, Pollard & Bryan (2003), A new partitioning around medoids algorithm, J. Stat. Comput. Simul.
       73.

    Examples
    --------
    >>> from coterie.metrics import silhouette_score
    >>> X, labels = [[0.0], [1.0], [9.0], [10.0], [20.0]], [0, 0, 1, 1, 2]
    >>> round(silhouette_score(X, labels), 3)
    0.711
    >>> silhouette_score(X, labels, average=None).round(3)
    array([0.889, 0.889, 0.   ])
    """
    one_of("method", method, METHODS)
    one_of("average", average, ("micro", "macro", None))
    if metric_params and method == "simplified":
        raise ParameterError("metric_params must be None with method='simplified'")
    if sample_size is not None and method != "sampled":
        raise ParameterError(f"sample_size is for method='sampled'; got method={method!r}")
    if method == "simplified":
        sums, weight = about_means(X, labels, metric, sample_weight, n_jobs)
        return _with_error(_averaged(sums, weight, average), 0.0, return_error)
    objects = _objects(X, labels, metric, metric_params, sample_weight)
    with machine.one_blas_thread:
        if method == "sampled":
            return _with_error(*_sampled(objects, average, sample_size, random_state, n_jobs), return_error)
        values = silhouettes(objects, n_jobs) if method == "exact" else about_medoids(objects, n_jobs)
    sums = np.bincount(objects.codes, values * objects.weights, objects.k)
    return _with_error(_averaged(sums, objects.weight, average), 0.0, return_error)


def _objects(X: Any, labels: Any, metric: Any, metric_params: Any, sample_weight: Any) -> Objects:
    objects = as_objects(X, labels, metric, metric_params, sample_weight)
    check_clusters(objects.weight)
    check_together(bool((objects.others[objects.weights > 0] > 0).any()))
    return objects


def _with_error(score: Any, error: float, asked: bool) -> Any:
    return (score, error) if asked else score


def _averaged(sums: Array, weight: Array, average: str | None) -> Any:
    """Means of silhouettes of which each cluster has a sum, weighted as its rows are; those of no weight have 0."""
    means = np.where(weight > 0, sums / np.where(weight > 0, weight, 1.0), 0.0)
    if average is None:
        return means
    return float(sums.sum() / weight.sum() if average == "micro" else means[weight > 0].mean())


def _sampled(
    objects: Objects, average: str | None, sample_size: int | None, random_state: Any, n_jobs: int | None
) -> tuple[float, float]:
    """Rows without weights are drawn without replacement, others in proportion to their weights."""
    if average != "micro":
        raise ParameterError(
            f"average must be 'micro' with method='sampled', which draws rows of all clusters; got {average!r}"
        )
    n, rng = len(objects), as_rng(random_state)
    size = min(1000, n) if sample_size is None else whole_number("sample_size", sample_size, 2)
    if size > n:
        raise ParameterError(f"sample_size must be no more than the {n} rows of X; got {size}")
    if objects.w is None:
        rows, share_left = np.sort(rng.choice(n, size, replace=False)), 1 - size / n
    else:
        rows, share_left = np.sort(rng.choice(n, size, p=objects.w / objects.w.sum())), 1.0
    different, place = np.unique(rows, return_inverse=True)
    drawn = silhouettes_of(objects, different, n_jobs)[place.ravel()]
    return float(drawn.mean()), float(np.sqrt(drawn.var(ddof=1) / size * share_left))
