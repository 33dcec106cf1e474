"""The narrowest gap between clusters by the width of the widest."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arguments import one_of
from coterie.core.errors import InputError, ParameterError
from coterie.metrics.labels import Array
from coterie.metrics.moments import Means
from coterie.metrics.objects import Objects, Precomputed, as_objects, refuse_overflow

INTER = ("single", "complete", "average", "centroid")
INTRA = ("complete", "average", "centroid")


def dunn_score(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    intercluster: str = "single",
    intracluster: str = "complete",
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> float:
    r"""Least distance between two clusters by the largest width of a cluster.

    .. math:: \frac{\min_{i \ne j} \delta(C_i, C_j)}{\max_k \Delta(C_k)}

    From 0 up, higher is better; above 1 every row is nearer to all of its cluster than to any row of another. As Dunn
    defined it, by single rows, one outlier decides it: where data are noisy use the averages [2]_.

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
    intercluster : 'single' (default), 'complete', 'average' or 'centroid'
        :math:`\delta`: the least, the largest or the mean distance of a row of one to a row of the other; that of
        their means.
    intracluster : 'complete' (default), 'average' or 'centroid'
        :math:`\Delta`: the largest or the mean distance of two rows; twice the mean distance to the mean of the rows.
    sample_weight : array (n,), optional
        How many rows each row stands for: of matter to means, and where 0.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.

    Notes
    -----
    Costs O(n² d) operations and little memory; O(n k d) if both are 'centroid', which need rows that have means. It is
    infinite where every cluster is one point and none are the same, 0 where two clusters touch.

    References
    ----------
    .. [1] Dunn (1974), Well-separated clusters and optimal fuzzy partitions, J. Cybern. 4.
    .. [2] Bezdek & Pal (1998), Some new indexes of cluster validity, IEEE Trans. Syst. Man Cybern. B 28.
       https://doi.org/10.1109/3477.678624

    Examples
    --------
    >>> from coterie.metrics import dunn_score
    >>> X, labels = [[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]
    >>> dunn_score(X, labels), dunn_score(X, labels, intercluster="centroid", intracluster="average")
    (4.0, 5.0)
    """
    one_of("intercluster", intercluster, INTER)
    one_of("intracluster", intracluster, INTRA)
    objects = as_objects(X, labels, metric, metric_params, sample_weight).without_weightless()
    if objects.k < 2:
        raise InputError("only one cluster has rows whose sample_weight is not 0: this index needs at least two")
    with machine.one_blas_thread:
        gap, width = _gap_and_width(objects, intercluster, intracluster, n_jobs)
    refuse_overflow(gap, width)
    if gap == 0:
        return 0.0
    return gap / width if width > 0 else float("inf")


def _gap_and_width(objects: Objects, inter: str, intra: str, n_jobs: int | None) -> tuple[float, float]:
    wanted = {inter, intra} - {"centroid"}
    tables = _tables(objects, wanted, n_jobs) if wanted else {}
    if "centroid" in (inter, intra):
        between, about = _by_centroids(objects)
    apart = between if inter == "centroid" else tables[inter]
    if inter == "average":
        apart = apart / (objects.weight[:, None] * objects.weight)
    wide = about if intra == "centroid" else np.diag(tables[intra])
    if intra == "average":
        pairs = np.bincount(objects.codes, objects.weights * objects.others, objects.k)
        wide = np.where(pairs > 0, wide / np.where(pairs > 0, pairs, 1.0), 0.0)
    return float(apart[~np.eye(objects.k, dtype=bool)].min()), float(wide.max())


def _tables(objects: Objects, wanted: set[str], n_jobs: int | None) -> dict[str, Array]:
    """Least ('single') and largest ('complete') distance, and weighted sum ('average'), of clusters (k, k)."""
    order, starts, k = objects.order, objects.starts, objects.k
    heavy = objects.weights[order]
    tables = {
        name: np.full((k, k), start)
        for name, start in (("single", np.inf), ("complete", 0.0), ("average", 0.0))
        if name in wanted
    }

    def fold(rows: Array, apart: Array) -> dict[str, Any]:
        clusters, first = np.unique(objects.codes[rows], return_index=True)
        found: dict[str, Any] = {"clusters": clusters}
        for name, best in (("single", np.minimum), ("complete", np.maximum)):
            if name in wanted:
                found[name] = best.reduceat(best.reduceat(apart, starts, axis=1), first, axis=0)
        if "average" in wanted:
            sums = np.add.reduceat(apart * heavy, starts, axis=1) * objects.weights[rows][:, None]
            found["average"] = np.add.reduceat(sums, first, axis=0)
        return found

    for found in objects.strips(order, n_jobs, fold):
        mine = found.pop("clusters")
        for name, part in found.items():
            best = {"single": np.minimum, "complete": np.maximum, "average": np.add}[name]
            tables[name][mine] = best(tables[name][mine], part)
    return tables


def _by_centroids(objects: Objects) -> tuple[Array, Array]:
    """Distances between the means of clusters (k, k), and twice those of their rows to them on average (k,)."""
    rows, distance, k = objects.rows, objects.distance, objects.k
    if isinstance(distance, Precomputed) or not isinstance(rows, np.ndarray):
        raise ParameterError("'centroid' needs rows of numbers, which have means: use 'average' for these distances")
    rows = rows.astype(np.float64, copy=False)
    means = _means(objects, rows, pivot=rows[objects.order[objects.starts]] if distance.by_differences else None)
    origin, between, about = np.zeros((1, rows.shape[1])), np.empty((k, k)), np.empty(k)
    for c in range(k):
        mine = objects.codes == c
        center = means.offset[c : c + 1]
        own, others = np.empty((int(mine.sum()), 1)), np.empty((k, 1))
        if distance.by_differences:
            distance.between(means.less(c), origin, others)
            distance.between(rows[mine] - means.pivot[c], center, own)
        else:
            distance.between(means.offset, center, others)
            distance.between(rows[mine], center, own)
        between[:, c] = others[:, 0]
        about[c] = 2 * objects.weights[mine] @ own[:, 0] / objects.weight[c]
    return between, about


def _means(objects: Objects, rows: Array, pivot: Array | None) -> Means:
    """The weighted means of clusters, about a row of each if given."""
    pivot = np.zeros((objects.k, rows.shape[1])) if pivot is None else pivot
    order = objects.order
    heavy = (rows[order] - pivot[objects.codes[order]]) * objects.weights[order, None]
    return Means(pivot, np.add.reduceat(heavy, objects.starts, axis=0) / objects.weight[:, None])
