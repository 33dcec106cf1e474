"""Silhouette coefficients."""

from functools import partial
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arguments import as_rng, one_of, whole_number
from coterie.core.arrays import Array
from coterie.core.protocols import Chunk
from coterie.data.memory import MemorySource
from coterie.data.tensors import as_array, is_on_device
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.engines.local import Threads
from coterie.errors import InputError, ParameterError
from coterie.metrics.labelled_rows import LabelledRows, as_labelled_rows, check_finite, weight_of_others
from coterie.metrics.labels import Labels
from coterie.metrics.moments import Moments, as_counted_source, check_several_weighted, cluster_moments

APPROXIMATIONS = ("exact", "sampled", "simplified", "medoid")


def silhouette_samples(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    **metric_params: Any,
) -> np.ndarray:
    r"""Compute the silhouette coefficient of each row.

    .. math:: s_i = \frac{b_i - a_i}{\max(a_i, b_i)}

    :math:`a_i` is the mean distance of row i to the other rows of its cluster, :math:`b_i` the minimum over the other
    clusters of its mean distance to their rows. The coefficient is from -1 to 1. Near 1, the row is well inside its
    cluster; near 0, it is between two clusters; below 0, it is nearer to another cluster. It is 0 for a row that is
    alone in its cluster. Do not use it for elongated or nested clusters, whose rows are far from most rows of their
    cluster.

    Parameters
    ----------
    X : array, frame or sparse matrix (n, d), or any input that `metric` accepts
        The rows; with 'precomputed', the square matrix of distances. Sparse rows require 'euclidean', 'sqeuclidean' or
        'cosine', whose distances are computed from dot products, as in scikit-learn.
    labels : array (n,)
        The cluster of each row: integers, strings or other hashable values, at least two different ones. -1 is an
        ordinary cluster, not noise.
    metric : str, function or Distance, default='euclidean'
        Any metric of `coterie.distances.pairwise`, or 'precomputed'.
    sample_weight : array (n,), optional
        Number of times that each row is counted. Rows of weight 0 have a silhouette, but do not influence that of other
        rows. The mean within its own cluster excludes the row itself: its whole weight if that is below 1, else 1.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.
    **metric_params
        Parameters of the metric, such as ``p=3`` for 'minkowski'.

    Returns
    -------
    array (n,), in the dtype of the rows

    Notes
    -----
    Takes O(n² d) operations and O(n k) memory. Each of the n²/2 Euclidean distances is computed once and added to the
    sums at once. 'sqeuclidean', 'cosine' and 'correlation' take O(n k d) operations, because the means are sufficient.

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
    if is_on_device(X):
        values, _ = _on_device(X, labels, metric, metric_params, sample_weight)
        return values
    labelled = labelled_rows(X, labels, metric, metric_params, sample_weight)
    with machine.one_blas_thread:
        return silhouettes(labelled, n_jobs).astype(labelled.dtype)


def silhouette_score(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    sample_weight: Any = None,
    approximation: str = "exact",
    average: str | None = "micro",
    sample_size: int | None = None,
    random_state: Any = None,
    return_error: bool = False,
    n_jobs: int | None = None,
    **metric_params: Any,
) -> Any:
    r"""Compute the mean silhouette coefficient of all rows or of each cluster, or an estimate for many rows.

    The score is from -1 to 1, and higher is better. See `silhouette_samples` for its meaning and limits.

    Parameters
    ----------
    X, labels, metric, sample_weight, n_jobs, **metric_params
        As in `silhouette_samples`; with approximation='simplified', `X` can also be a Dask array.
    approximation : {'exact', 'sampled', 'simplified', 'medoid'}, default='exact'
        'exact': the mean of `silhouette_samples`, O(n² d) operations. With `sample_size`, that of a random sample of
        rows, which are compared with each other only, as in scikit-learn.
        'sampled': an unbiased estimate of it, with its standard error, from a random sample of `sample_size` rows. Each
        is compared with all n rows.
        'simplified': another index, with the distances to the means of clusters instead of all their rows [2]_. It
        takes O(n k d) operations, and requires 'euclidean' or 'sqeuclidean'.
        'medoid': the same with medoids instead of means, for any metric [3]_. A medoid is the row with the smallest sum
        of distances to the rows of its cluster.
    average : {'micro', 'macro', None}, default='micro'
        'micro': the mean over rows. 'macro': the mean over the means of the clusters, so that small clusters have the
        same weight as large ones. None: the means of the clusters, in the order of the sorted labels.
    sample_size : int, optional
        Number of sampled rows for 'exact' (default: all) and 'sampled' (default: 1000, or all if there are fewer).
    random_state : None, int, RandomState or Generator, default=None
        Random state of the sample.
    return_error : bool, default=False
        Also return the standard error, which is 0 for all others.

    Returns
    -------
    score : float, or array (k,) if `average` is None
    error : float
        Only if `return_error` is True.

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
    one_of("approximation", approximation, APPROXIMATIONS)
    one_of("average", average, ("micro", "macro", None))
    if metric_params and approximation == "simplified":
        raise ParameterError(
            f"approximation='simplified' takes no parameters of the metric; got {', '.join(metric_params)}: "
            "use approximation='medoid'"
        )
    if sample_size is not None and approximation not in ("exact", "sampled"):
        raise ParameterError(
            f"sample_size requires approximation='exact' or 'sampled'; got approximation={approximation!r}"
        )
    error = 0.0
    if approximation == "simplified":
        sums, weight = sums_about_means(X, labels, metric, sample_weight, n_jobs)
        score = _average(sums, weight, average)
    elif is_on_device(X):
        if approximation != "exact" or sample_size is not None:
            raise ParameterError(
                f"approximation={approximation!r} and sample_size={sample_size!r} are not supported for tensors on a "
                "GPU: use approximation='exact' or 'simplified' without sample_size, or pass X.cpu()"
            )
        values, codes = _on_device(X, labels, metric, metric_params, sample_weight)
        w = np.ones(len(codes)) if sample_weight is None else np.asarray(as_array(sample_weight), dtype=np.float64)
        sums, weight = (np.bincount(codes, part) for part in (as_array(values) * w, w))
        score = _average(sums, weight, average)
    else:
        labelled = labelled_rows(X, labels, metric, metric_params, sample_weight)
        if approximation == "exact" and sample_size is not None:
            size = min(whole_number("sample_size", sample_size, 2), len(labelled))
            sample = np.sort(as_rng(random_state).permutation(len(labelled))[:size])
            labelled = check_silhouettes(labelled.subset(sample))
        with machine.one_blas_thread:
            if approximation == "sampled":
                score, error = _sampled(labelled, average, sample_size, random_state, n_jobs)
            else:
                exact = approximation == "exact"
                values = silhouettes(labelled, n_jobs) if exact else silhouettes_about_medoids(labelled, n_jobs)
                score = _average_of(values, labelled, average)
    return (score, error) if return_error else score


def _on_device(X: Any, labels: Any, metric: Any, metric_params: Any, sample_weight: Any) -> tuple[Any, np.ndarray]:
    """Silhouettes of the rows of a tensor on a GPU, as a tensor (n,), and the codes of the labels."""
    if metric != "euclidean" or metric_params:
        raise ParameterError(
            f"metric={metric!r} is not supported for tensors on a GPU: use metric='euclidean', or pass X.cpu()"
        )
    source, _, encoded, _ = as_counted_source(X, labels, sample_weight, None)
    rows: Any = source.gather(slice(None))
    weight = np.bincount(encoded.codes, None if rows.w is None else np.asarray(rows.w), encoded.k)
    check_several_weighted(weight)
    has_others = weight[encoded.codes] - (1.0 if rows.w is None else np.minimum(np.asarray(rows.w), 1.0)) > 0
    check_not_all_single(bool(has_others.any()))
    values = kernels.for_labels(rows.X).silhouettes(rows.X, rows.w, rows.y, encoded.k)
    return source.join([values.astype(source.dtype)]), encoded.codes


def mean_silhouette(labelled: LabelledRows, n_jobs: int | None) -> float:
    """Mean over all rows."""
    return float(_average_of(silhouettes(labelled, n_jobs), labelled, "micro"))


def labelled_rows(X: Any, labels: Any, metric: Any, metric_params: Any, sample_weight: Any) -> LabelledRows:
    return check_silhouettes(as_labelled_rows(X, labels, metric, metric_params, sample_weight))


def check_silhouettes(labelled: LabelledRows) -> LabelledRows:
    """These rows; an error if they have no silhouettes."""
    check_several_weighted(labelled.cluster_weight)
    check_not_all_single(bool((labelled.rest_weight[labelled.weights > 0] > 0).any()))
    return labelled


def _average_of(values: np.ndarray, labelled: LabelledRows, average: str | None) -> Any:
    """The average of silhouettes (n,)."""
    sums = np.bincount(labelled.codes, values * labelled.weights, labelled.k)
    return _average(sums, labelled.cluster_weight, average)


def _average(sums: np.ndarray, weight: np.ndarray, average: str | None) -> Any:
    """The average of silhouettes from their weighted sums (k,) and the weights of clusters; 0 for weight 0."""
    means = np.where(weight > 0, sums / np.where(weight > 0, weight, 1.0), 0.0)
    if average is None:
        return means
    return float(sums.sum() / weight.sum() if average == "micro" else means[weight > 0].mean())


def _sampled(
    labelled: LabelledRows, average: str | None, sample_size: int | None, random_state: Any, n_jobs: int | None
) -> tuple[float, float]:
    """Mean silhouette of a random sample of rows, with replacement if they have weights, and its standard error."""
    if average != "micro":
        raise ParameterError(
            f"average must be 'micro' with approximation='sampled', which samples rows of all clusters; got {average!r}"
        )
    n, rng = len(labelled), as_rng(random_state)
    size = min(1000, n) if sample_size is None else whole_number("sample_size", sample_size, 2)
    if size > n:
        raise ParameterError(f"sample_size must be at most {n}, the number of rows of X; got {size}")
    if labelled.w is None:
        rows, correction = np.sort(rng.choice(n, size, replace=False)), 1 - size / n  # for a finite population
    else:
        rows, correction = np.sort(rng.choice(n, size, p=labelled.w / labelled.w.sum())), 1.0
    distinct, position = np.unique(rows, return_inverse=True)
    values = silhouettes_of(labelled, distinct, n_jobs)[position.ravel()]
    return float(values.mean()), float(np.sqrt(values.var(ddof=1) / size * correction))


# Simplified silhouettes, from the distances to one point of each cluster: its mean, or its medoid.


def sums_about_means(X: Any, labels: Any, metric: Any, sample_weight: Any, n_jobs: int | None) -> tuple[Array, Array]:
    """The sum of the silhouettes of each cluster (k,), and its weight (k,), on any engine."""
    if not isinstance(metric, str) or metric not in ("euclidean", "sqeuclidean"):
        raise ParameterError(
            "metric must be 'euclidean' or 'sqeuclidean' with approximation='simplified', which computes means; "
            f"got {metric!r}. method='medoid' supports any metric"
        )
    source, engine, encoded, _ = as_counted_source(X, labels, sample_weight, n_jobs)
    moments = cluster_moments(source, engine, encoded)
    weight = np.zeros(encoded.k)
    weight[moments.clusters] = moments.weight
    check_several_weighted(weight)
    sums, rest_weight = engine.sum(partial(_simplified, moments, weight, metric == "sqeuclidean"), source)
    check_not_all_single(bool(rest_weight.any()))
    return sums, weight


def _simplified(moments: Moments, weight: Array, squared: bool, chunk: Chunk) -> Array:
    """For each cluster, the sum of silhouettes, and the weight of rows that are not alone in it (2, k)."""
    if kernels.is_on_device(chunk.X):
        to_means = moments.means.distances(chunk.X)
        to_means = to_means**2 if squared else to_means
        return kernels.for_labels(chunk.X).simplified_silhouettes(to_means, moments.clusters, chunk.w, chunk.y, weight)
    w = chunk.weights
    rest = weight_of_others(chunk.y, w, weight)
    distances = np.zeros((len(chunk.y), len(weight)))
    distances[:, moments.clusters] = moments.means.distances(chunk.X)
    values = _from_distances(distances**2 if squared else distances, chunk.y, rest, weight)
    return np.stack([np.bincount(chunk.y, part * w, len(weight)) for part in (values, rest > 0)])


def silhouettes_about_medoids(labelled: LabelledRows, n_jobs: int | None) -> Array:
    """Silhouettes of all rows (n,) from their distances to the medoids."""
    members = (np.flatnonzero(labelled.codes == c) for c in range(labelled.k))
    medoids = np.array([_medoid(labelled, rows, n_jobs) for rows in members])

    def step(start: int, stop: int) -> Array:
        distances = labelled.distances(medoids, slice(start, stop))
        codes, rest = labelled.codes[start:stop], labelled.rest_weight[start:stop]
        return _from_distances(distances.T, codes, rest, labelled.cluster_weight)

    bounds = strips(len(labelled), labelled.k, labelled.distance.work)
    return np.concatenate(machine.run_in_threads(step, bounds, n_jobs))


def _medoid(labelled: LabelledRows, members: Array, n_jobs: int | None) -> int:
    """The member with positive weight and the smallest weighted sum of distances to all members; the first of ties."""
    w = labelled.weights[members]

    def step(start: int, stop: int) -> Array:
        return labelled.distances(members[start:stop], members).astype(np.float64) @ w

    bounds = strips(len(members), len(members), labelled.distance.work)
    sums = np.concatenate(machine.run_in_threads(step, bounds, n_jobs))
    check_finite(sums)
    return int(members[np.where((w > 0) | ~w.any(), sums, np.inf).argmin()])


def _from_distances(distances: Array, codes: Array, rest: Array, weight: Array) -> Array:
    """Silhouettes of rows from their distances to the points of all clusters (rows, k)."""
    check_finite(distances)
    same = (np.arange(len(codes)), codes)
    others = np.where(weight > 0, distances, np.inf).astype(np.float64)
    others[same] = np.inf
    return silhouette_values(distances[same].astype(np.float64), others.min(axis=1), rest)


# Silhouettes from the sums of distances of each row to each cluster, which are computed in one of three ways.

MAX_SUMS = 1 << 25  # maximum number of sums, one for each row and cluster, that are stored at once
MAX_PADDING = 2.0  # maximum ratio of rows after clusters are padded to whole groups, to rows before


def check_not_all_single(has_others: bool) -> None:
    """Raise an error if every cluster is a single row."""
    if not has_others:
        raise InputError("labels make each row a separate cluster: silhouettes need a cluster of at least two rows")


def silhouettes(labelled: LabelledRows, n_jobs: int | None) -> Array:
    """Silhouettes of all rows (n,), in float64."""
    distance = labelled.distance
    if isinstance(distance, Euclidean):
        if not distance.root:
            return _from_means(labelled, n_jobs)
        ops = kernels.select("silhouette", *labelled.rows.shape)
        padded = ops.padded_size(labelled.counts, labelled.rows.itemsize)
        if padded <= MAX_PADDING * len(labelled) and padded * labelled.k <= MAX_SUMS:
            return _from_fused_sums(ops, labelled, padded, n_jobs)
    return silhouettes_of(labelled, np.arange(len(labelled)), n_jobs)


def silhouettes_of(labelled: LabelledRows, rows: Array, n_jobs: int | None) -> Array:
    """Silhouettes of some of the rows, for any distance, in strips."""
    starts, w = labelled.starts, None if labelled.w is None else labelled.w[labelled.order].astype(labelled.dtype)

    def reduce(rows: Array, distances: Array) -> Array:
        if w is not None:
            distances *= w
        return _from_sums(np.add.reduceat(distances, starts, axis=1, dtype=np.float64), labelled, rows)

    return np.concatenate(list(labelled.strips(rows, n_jobs, reduce)))


def _from_fused_sums(ops: Any, labelled: LabelledRows, padded: int, n_jobs: int | None) -> Array:
    """Silhouettes for Euclidean distances: each pair of rows is computed once, and added to the sums at once."""
    layout = ops.layout(labelled.rows, labelled.weights, labelled.codes, labelled.counts)
    sums = np.zeros((labelled.k, padded))
    for block in machine.in_threads(partial(ops.sums, layout), ops.blocks(layout), n_jobs):
        for clusters, rows, values in block:
            sums[clusters, rows] += values

    def step(start: int, stop: int) -> Array:
        return _from_sums(sums[:, layout.position[start:stop]].T, labelled, np.arange(start, stop))

    return np.concatenate(machine.run_in_threads(step, strips(len(labelled), labelled.k), n_jobs))


def _from_means(labelled: LabelledRows, n_jobs: int | None) -> Array:
    """Silhouettes for squared distances, from n k of them instead of n².

    The sum of squared distances to the rows of a cluster is the weight of the cluster times the squared distance to its
    mean, plus the scatter about the mean.
    """
    distance: Any = labelled.distance  # squared Euclidean distances, times a factor
    source = MemorySource(labelled.rows, labelled.w, y=labelled.codes)
    moments = cluster_moments(source, Threads(n_jobs), Labels(labelled.codes, np.arange(labelled.k)))
    scatter = np.zeros(labelled.k)
    scatter[moments.clusters] = moments.sum_square

    def step(start: int, stop: int) -> Array:
        squares = np.zeros((stop - start, labelled.k))
        squares[:, moments.clusters] = moments.means.distances(labelled.rows[start:stop]) ** 2
        sums = distance.factor * (labelled.cluster_weight * squares + scatter)
        return _from_sums(sums, labelled, np.arange(start, stop))

    bounds = strips(len(labelled), sum(moments.means.pivot.shape))
    return np.concatenate(machine.run_in_threads(step, bounds, n_jobs))


def _from_sums(sums: Array, labelled: LabelledRows, rows: Array) -> Array:
    """Silhouettes of `rows` from the sums of their distances to all clusters (rows, k), in any unit."""
    check_finite(sums)
    weight, codes, rest = labelled.cluster_weight, labelled.codes[rows], labelled.rest_weight[rows]
    same, has_weight = (np.arange(len(rows)), codes), weight > 0
    a = sums[same] / np.where(rest > 0, rest, 1.0)
    means = np.where(has_weight, sums / np.where(has_weight, weight, 1.0), np.inf)
    means[same] = np.inf
    return silhouette_values(a, means.min(axis=1), rest)


def silhouette_values(a: Array, b: Array, rest: Array) -> Array:
    """``(b - a) / max(a, b)``; 0 for single rows, whose `rest` weight is 0, and where both are 0."""
    largest = np.maximum(a, b)
    is_zero = (rest <= 0) | (largest == 0)
    return np.where(is_zero, 0.0, (b - a) / np.where(is_zero, 1.0, largest))
