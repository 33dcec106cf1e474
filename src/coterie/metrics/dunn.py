"""Dunn index."""

from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arguments import one_of
from coterie.core.arrays import Array
from coterie.errors import ParameterError
from coterie.metrics.labelled_rows import LabelledRows, Precomputed, as_labelled_rows, check_finite
from coterie.metrics.moments import Means, check_several_weighted

INTER = ("single", "complete", "average", "centroid")
INTRA = ("complete", "average", "centroid")


def dunn_score(
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    intercluster: str = "single",
    intracluster: str = "complete",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    **metric_params: Any,
) -> float:
    r"""Compute the Dunn index: the minimum distance between clusters divided by the maximum diameter of a cluster.

    .. math:: \frac{\min_{i \ne j} \delta(C_i, C_j)}{\max_k \Delta(C_k)}

    The index is at least 0, and higher is better. Above 1, each row is nearer to all rows of its cluster than to any
    row of another cluster. In Dunn's definition, which is the default, a single outlier can determine the index: use
    the averages for noisy data [2]_.

    Parameters
    ----------
    X, labels, metric, n_jobs, **metric_params
        As in `silhouette_samples`.
    intercluster : {'single', 'complete', 'average', 'centroid'}, default='single'
        The distance :math:`\delta` between clusters: the minimum, maximum or mean distance between a row of one and a
        row of the other, or the distance between their means.
    intracluster : {'complete', 'average', 'centroid'}, default='complete'
        The diameter :math:`\Delta` of a cluster: the maximum or mean distance between two rows, or twice the mean
        distance of the rows to their mean.
    sample_weight : array (n,), optional
        Number of times that each row is counted. Rows of weight 0 are ignored; other weights only influence means.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n² d) operations and little memory, or O(n k d) operations if both options are 'centroid', which requires
    numeric rows. The index is infinite if each cluster is a single point and no two are equal. It is 0 if the distance
    between two clusters is 0.

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
    labelled = as_labelled_rows(X, labels, metric, metric_params, sample_weight).with_positive_weight()
    check_several_weighted(labelled.cluster_weight)
    with machine.one_blas_thread:
        separation, diameter = _separation_and_diameter(labelled, intercluster, intracluster, n_jobs)
    check_finite(separation, diameter)
    if separation == 0:
        return 0.0
    return separation / diameter if diameter > 0 else float("inf")


def _separation_and_diameter(labelled: LabelledRows, inter: str, intra: str, n_jobs: int | None) -> tuple[float, float]:
    """The minimum distance between clusters, and the maximum diameter."""
    linkages = {inter, intra} - {"centroid"}
    tables = _tables(labelled, linkages, n_jobs) if linkages else {}
    if "centroid" in (inter, intra):
        between_means, about_means = _centroid_distances(labelled)
    distances = between_means if inter == "centroid" else tables[inter]
    if inter == "average":
        distances = distances / (labelled.cluster_weight[:, None] * labelled.cluster_weight)
    diameters = about_means if intra == "centroid" else np.diag(tables[intra])
    if intra == "average":
        pairs = np.bincount(labelled.codes, labelled.weights * labelled.rest_weight, labelled.k)
        diameters = np.where(pairs > 0, diameters / np.where(pairs > 0, pairs, 1.0), 0.0)
    return float(distances[~np.eye(labelled.k, dtype=bool)].min()), float(diameters.max())


def _tables(labelled: LabelledRows, linkages: set[str], n_jobs: int | None) -> dict[str, Array]:
    """Minimum ('single') and maximum ('complete') distance, and weighted sum ('average'), between clusters (k, k)."""
    order, starts, k = labelled.order, labelled.starts, labelled.k
    w = labelled.weights[order]
    tables = {
        name: np.full((k, k), start)
        for name, start in (("single", np.inf), ("complete", 0.0), ("average", 0.0))
        if name in linkages
    }

    def reduce(rows: Array, distances: Array) -> tuple[Array, dict[str, Array]]:
        clusters, first = np.unique(labelled.codes[rows], return_index=True)
        parts: dict[str, Array] = {}
        for name, extreme in (("single", np.minimum), ("complete", np.maximum)):
            if name in linkages:
                parts[name] = extreme.reduceat(extreme.reduceat(distances, starts, axis=1), first, axis=0)
        if "average" in linkages:
            sums = np.add.reduceat(distances * w, starts, axis=1) * labelled.weights[rows][:, None]
            parts["average"] = np.add.reduceat(sums, first, axis=0)
        return clusters, parts

    for clusters, parts in labelled.strips(order, n_jobs, reduce):
        for name, part in parts.items():
            combine = {"single": np.minimum, "complete": np.maximum, "average": np.add}[name]
            tables[name][clusters] = combine(tables[name][clusters], part)
    return tables


def _centroid_distances(labelled: LabelledRows) -> tuple[Array, Array]:
    """Distances between the means of clusters (k, k), and twice the mean distance of rows to their mean (k,)."""
    rows, distance, k = labelled.rows, labelled.distance, labelled.k
    if isinstance(distance, Precomputed) or not isinstance(rows, np.ndarray):
        raise ParameterError(
            f"'centroid' needs numeric rows, to compute means; got metric={distance.name!r}. Use 'average' instead"
        )
    rows = rows.astype(np.float64, copy=False)
    means = _means(labelled, rows, pivot=rows[labelled.order[labelled.starts]] if distance.by_differences else None)
    origin, between_means, about_means = np.zeros((1, rows.shape[1])), np.empty((k, k)), np.empty(k)
    for c in range(k):
        is_member = labelled.codes == c
        center = means.offset[c : c + 1]
        to_center, to_others = np.empty((int(is_member.sum()), 1)), np.empty((k, 1))
        if distance.by_differences:
            distance.between(means.minus(c), origin, to_others)
            distance.between(rows[is_member] - means.pivot[c], center, to_center)
        else:
            distance.between(means.offset, center, to_others)
            distance.between(rows[is_member], center, to_center)
        between_means[:, c] = to_others[:, 0]
        about_means[c] = 2 * labelled.weights[is_member] @ to_center[:, 0] / labelled.cluster_weight[c]
    return between_means, about_means


def _means(labelled: LabelledRows, rows: Array, pivot: Array | None) -> Means:
    """The weighted means of clusters, relative to a row of each if `pivot` is given."""
    pivot = np.zeros((labelled.k, rows.shape[1])) if pivot is None else pivot
    order = labelled.order
    weighted = (rows[order] - pivot[labelled.codes[order]]) * labelled.weights[order, None]
    return Means(pivot, np.add.reduceat(weighted, labelled.starts, axis=0) / labelled.cluster_weight[:, None])
