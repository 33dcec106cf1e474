"""Density-based cluster validation (DBCV)."""

from typing import Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.arguments import whole_number
from coterie.core.arrays import Array
from coterie.errors import InputError, ParameterError
from coterie.metrics.labelled_rows import LabelledRows, as_labelled_rows
from coterie.metrics.labels import labels_of_rows

REMEDY = "evaluate a random sample of the rows"


class _Cluster(NamedTuple):
    """The rows of a cluster that are inner nodes of its spanning tree."""

    rows: Array
    core: Array  # core distances of these rows
    sparseness: float  # length of the longest inner edge
    size: int


def dbcv_score(
    X: Any, labels: Any, *, metric: Any = "euclidean", n_features: int | None = None, **metric_params: Any
) -> float:
    r"""Compute the density-based validity of clusters (DBCV) [1]_: for clusters of any shape, with noise.

    .. math:: \sum_k \frac{|C_k|}{n} \frac{s_k - t_k}{\max\{s_k, t_k\}}, \qquad s_k = \min_{j \ne k} s(C_k, C_j)

    The sparseness :math:`t_k` of a cluster is the longest inner edge of its minimum spanning tree, by mutual
    reachability distances. The separation :math:`s` of two clusters is the minimum mutual reachability distance between
    inner nodes. The core distance of a row is :math:`\bigl(\frac{1}{|C| - 1} \sum_j d(x, x_j)^{-d}\bigr)^{-1/d}` over
    the other rows of its cluster, in d columns.

    The score is from -1 to 1, and higher is better. Silhouettes favour round clusters, and mislead for others. Rows
    with the label -1 are noise: they are in no cluster, but count in n, so noise lowers the score.

    Parameters
    ----------
    X : array or frame (n, d), or distances (n, n)
        The rows.
    labels : array (n,)
        Cluster of each row; -1 is noise. There must be at least two clusters.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        Distance, see `coterie.distances.pairwise`.
    n_features : int or None, default=None
        Dimension d of the core distances; by default the number of columns. Required for precomputed distances.
    **metric_params
        Parameters of the metric.

    Returns
    -------
    float

    Notes
    -----
    Takes O(n² d) operations, and memory for the distances of the largest cluster.

    There are no sample weights: of equal rows, some are inner nodes of the spanning tree and others are not, so the
    effect of a row twice depends on which of its trees is used.

    A cluster can have several minimum spanning trees, with different inner nodes. Of equally long edges, that to the
    densest row is used, so the score does not depend on the order of the rows.

    References
    ----------
    .. [1] D. Moulavi, P. A. Jaskowiak, R. J. G. B. Campello, A. Zimek, J. Sander (2014), Density-based clustering
       validation, SDM. https://doi.org/10.1137/1.9781611973440.96

    Examples
    --------
    >>> from coterie import HDBSCAN
    >>> from coterie.datasets import make_moons
    >>> from coterie.metrics import dbcv_score, silhouette_score
    >>> X, _ = make_moons(400, noise=0.05, random_state=0)
    >>> labels = HDBSCAN(15).fit_predict(X)
    >>> round(dbcv_score(X, labels), 2), round(silhouette_score(X, labels), 2)
    (0.65, 0.25)
    """
    rows = as_labelled_rows(X, labels, metric, metric_params, None)
    names = labels_of_rows(labels, len(rows)).names
    d = _dimension(rows, n_features)
    clusters = [_cluster(rows, members, d) for members in _members(rows, names)]
    separation = _separations(rows, clusters)
    validity = [
        0.0 if max(apart, each.sparseness) == 0 else (apart - each.sparseness) / max(apart, each.sparseness)
        for apart, each in zip(separation, clusters, strict=True)
    ]
    return float(sum(each.size * value for each, value in zip(clusters, validity, strict=True)) / len(rows))


def _dimension(rows: LabelledRows, n_features: int | None) -> int:
    if n_features is not None:
        return whole_number("n_features", n_features, 1)
    if getattr(rows.rows, "ndim", 1) != 2:
        raise ParameterError("n_features must be set if X has no columns: pass the number of columns of the objects")
    return int(rows.rows.shape[1])


def _members(rows: LabelledRows, names: Array) -> list[Array]:
    """Rows of each cluster, without noise."""
    codes = [code for code, name in enumerate(names.tolist()) if name != -1]
    members = [np.flatnonzero(rows.codes == code) for code in codes]
    if len(members) < 2:
        raise InputError(f"labels have {len(members)} cluster besides noise: this index compares at least two")
    single = [name for name, each in zip(names[names != -1].tolist(), members, strict=True) if len(each) < 2]
    if single:
        raise InputError(f"cluster {single[0]} has one row: give single rows the label -1, for noise")
    return members


def _cluster(rows: LabelledRows, members: Array, d: int) -> _Cluster:
    n = len(members)
    machine.check_memory(2 * 8 * n * n, f"the distances of {n} rows of a cluster", REMEDY)
    D = rows.distances(members, members).astype(np.float64)
    np.fill_diagonal(D, 0)
    core = _core(D, d)
    reach = np.maximum(np.maximum(D, core), core[:, None])
    first, second = _spanning_tree(reach, core)
    is_inner = np.bincount(np.concatenate([first, second]), minlength=n) > 1
    if not is_inner.any():
        is_inner[0] = True
    length, is_inner_edge = reach[first, second], is_inner[first] & is_inner[second]
    edges = length[is_inner_edge] if is_inner_edge.any() else length
    return _Cluster(members[is_inner], core[is_inner], float(edges.max()), n)


def _spanning_tree(reach: Array, core: Array) -> tuple[Array, Array]:
    """Ends of the edges of the minimum spanning tree; of equally long edges, those to the densest row.

    Many mutual reachability distances are equal, because they are the core distance of a row. Their order must not
    depend on that of the rows, because the inner nodes depend on it.
    """
    n = len(core)
    length, density, link = reach[0].copy(), np.minimum(core, core[0]), np.zeros(n, np.int64)
    ends, row = np.empty((2, n - 1), np.int64), 0
    is_outside = np.ones(n, bool)
    for step in range(n - 1):
        is_outside[row] = False
        edge, lower = reach[row], np.minimum(core, core[row])
        is_better = is_outside & ((edge < length) | ((edge == length) & (lower < density)))
        length[is_better], density[is_better], link[is_better] = edge[is_better], lower[is_better], row
        outside = np.flatnonzero(is_outside)
        shortest = outside[length[outside] == length[outside].min()]
        row = int(shortest[density[shortest].argmin()])
        ends[:, step] = link[row], row
    return ends[0], ends[1]


def _core(D: Array, d: int) -> Array:
    """Core distances (n,) within a cluster; rows at distance 0 do not count. Powers are taken of ratios."""
    positive = np.where(D > 0, D, np.inf)
    nearest = positive.min(axis=1)
    ratio = np.divide(nearest[:, None], positive, out=np.zeros_like(D), where=np.isfinite(positive))
    mean = (ratio**d).sum(axis=1) / (len(D) - 1)
    return np.where(np.isfinite(nearest), nearest * np.where(mean > 0, mean, 1.0) ** (-1 / d), 0.0)


def _separations(rows: LabelledRows, clusters: list[_Cluster]) -> list[float]:
    """The minimum mutual reachability distance of each cluster to the inner rows of the others."""
    separation = np.full(len(clusters), np.inf)
    for i, one in enumerate(clusters):
        for j in range(i):
            other = clusters[j]
            D = rows.distances(one.rows, other.rows)
            reach = float(np.maximum(np.maximum(D, other.core), one.core[:, None]).min())
            separation[[i, j]] = np.minimum(separation[[i, j]], reach)
    return separation.tolist()
