"""Checks for non-convex clusters, which no center can represent: hollow, curved or nested clusters."""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.diagnosis.findings import Check, join_names, measured, not_measured, verb, with_finding
from coterie.diagnosis.sample import Partition, Sample
from coterie.hierarchy import cut, linkage
from coterie.kmeans.kmeans import KMeans
from coterie.metrics import adjusted_rand_score

MIN_ROWS = 30
ROWS_OF_CLUSTER = 500  # limit where all pairs of rows of a cluster are compared
ROWS = 2000  # limit where all pairs of rows are compared
NEIGHBOURS = 5
MIN_SHARE = 0.05
MIN_SEPARATION = 1.5  # a single cloud stays below 1.1; a single curve, with larger gaps, below 1.5 in 99 % of cases
MIN_AGREEMENT = 0.9
ELONGATED = "elongated or unequal"
SINGLE_LINKAGE = (
    "Use AgglomerativeClustering(linkage='single'), which links nearest neighbours, or KernelKMeans(kernel='rbf')."
)
FULL_COVARIANCES = "Use GaussianMixture(covariance_type='full'), or AgglomerativeClustering(linkage='single')."


class Components(NamedTuple):
    """Groups of rows that are separated by gaps."""

    rows: Array  # (p,) indices of rows of the sample
    labels: Array  # (p,) group of each row; -1: in no group that is large enough
    separation: float  # factor by which neighbourhoods can grow before the groups connect


def connected_components(sample: Sample, rng: np.random.Generator, n_jobs: int | None) -> Components | None:
    """Return the groups that single linkage separates among 2,000 rows, or None if there is only one. O(2000² d).

    Distances are replaced by mutual reachability distances (at least the distance to the 5th neighbour of either row),
    so that single rows do not connect groups [1]_. The tree is cut in the range of heights that is widest, as a ratio,
    among all ranges in which groups of at least 5 % of the rows together contain 90 % of them.

    References
    ----------
    .. [1] R. J. G. B. Campello, D. Moulavi, J. Sander (2013), Density-based clustering based on hierarchical density
       estimates, PAKDD.
    """
    rows = sample.draw(ROWS, rng)
    if len(rows) < 2 * MIN_ROWS or np.count_nonzero(sample.spread) < 2:  # dip tests detect gaps of a single column
        return None
    D = cdist(sample.X[rows], sample.X[rows])
    core_distance = np.partition(D, NEIGHBOURS, axis=1)[:, NEIGHBOURS]
    D = np.maximum(D, np.maximum(core_distance[:, None], core_distance[None]))
    np.fill_diagonal(D, 0.0)
    Z = linkage(D, "single", "precomputed", n_jobs=n_jobs)
    separation, height = _best_cut(Z)
    if separation < MIN_SEPARATION:
        return None
    labels = cut(Z, height=height).astype(np.int64)
    is_small = np.bincount(labels) < MIN_SHARE * len(rows)
    new_labels = np.where(is_small, -1, np.cumsum(~is_small) - 1)
    return Components(rows, new_labels[labels], separation)


def missed_pieces(
    clusters: Partition | None, components: Components | None, sample: Sample, rng: np.random.Generator
) -> list[Check]:
    """Adjusted Rand index of the separated groups with K-means of as many clusters, and with the checked clusters.

    If neither recovers the groups, the reason is their shape. Either one group surrounds another; or, if normal
    distributions fitted to the groups recover them, they are elongated or unequal; or else they are curved.
    """
    names = ("missed_pieces", "nested_clusters")
    if components is None:
        reason = "no gaps between groups of rows: single linkage finds one group, or there are too few rows or columns"
        return [not_measured(name, reason) for name in names]
    is_member = components.labels >= 0
    index, groups = components.rows[is_member], components.labels[is_member]
    X, w = sample.X[index], sample.w[index]
    k = int(groups.max()) + 1
    model = KMeans(k, n_init=10, random_state=int(rng.integers(2**31))).fit(X, sample_weight=w)
    agreement = adjusted_rand_score(groups, model.labels_)
    agreement_of_clusters = -1.0 if clusters is None else adjusted_rand_score(groups, clusters.codes[index])
    is_nested, is_missed = _has_nested(X, groups), max(agreement, agreement_of_clusters) < MIN_AGREEMENT
    form, remedy = "nested", SINGLE_LINKAGE
    if not is_nested:
        is_normal = _are_normal(X, groups)
        form, remedy = (ELONGATED, FULL_COVARIANCES) if is_normal else ("curved", SINGLE_LINKAGE)
    sentence = (
        f"Gaps divide the rows into {k} groups, but K-means does not find them: with K = {k}, the adjusted Rand index "
        f"is only {round(agreement, 2) + 0.0:.2f} ({count(len(components.rows), 'row')}). The reason is the shape of "
        f"the groups: they are {form}."
    )
    details = {"pieces": k, "form": form, "clearance": components.separation}
    details["agreement_of_clusters"] = agreement_of_clusters
    checks = [measured(name, agreement, MIN_AGREEMENT, len(components.rows)) for name in names]
    return [
        with_finding(check, is_missed and applies, "serious", sentence, remedy, **details)
        for check, applies in zip(checks, (not is_nested, is_nested), strict=True)
    ]


def hollow_clusters(clusters: Partition, rng: np.random.Generator) -> Check:
    """Distance from the mean of a cluster to its k-th nearest row, relative to the 95 % quantile of this for its rows.

    A cluster with one mode is densest near its center. A ring, an arc or several merged clusters have no rows there. k
    is the square root of the number of rows. O(500² d) for each cluster.
    """
    name, ratios = "hollow_clusters", {}
    for j, index in enumerate(clusters.members):
        if len(index) >= MIN_ROWS:
            ratios[j] = _hollowness(clusters.sample.X[clusters.sample.draw(ROWS_OF_CLUSTER, rng, index)])
    if not ratios:
        return not_measured(name, f"needs a cluster with at least {MIN_ROWS} rows")
    hollow = [j for j in ratios if ratios[j] > 1]
    worst = max(ratios, key=ratios.__getitem__)
    return with_finding(
        measured(name, ratios[worst], 1.0, len(clusters.codes)),
        bool(hollow),
        "warning",
        f"{len(hollow):,} of {count(clusters.k, 'cluster')} ({join_names([clusters.names[j] for j in hollow])}) "
        f"{verb(len(hollow), 'is', 'are')} empty in the middle: the nearest rows are "
        f"{min(ratios[worst], 1e6):.1f} times as far from the mean of cluster {clusters.names[worst]} as from 95% of "
        "its rows. Such a mean does not represent its cluster.",
        "For rings and arcs, use AgglomerativeClustering(linkage='single') or KernelKMeans(kernel='rbf'). If several "
        "clusters were merged, use a larger n_clusters.",
        clusters=[clusters.names[j] for j in hollow],
    )


def _best_cut(Z: Array) -> tuple[float, float]:
    """Return the widest range of heights with at least two large groups, as a ratio, and a height in this range."""
    n = len(Z) + 1
    sizes = np.concatenate([np.ones(n), Z[:, 3]])
    min_size = max(MIN_ROWS / 2, MIN_SHARE * n)
    best, n_groups, n_covered = (0.0, 0.0), int(n >= min_size), float(n)
    top = np.inf  # upper end of the range with the current number of large groups
    for i in range(len(Z) - 1, -1, -1):
        a, b = sizes[Z[i, :2].astype(np.int64)]
        if sizes[n + i] < min_size:
            continue
        n_groups_below = n_groups + int(a >= min_size) + int(b >= min_size) - 1
        n_covered -= sizes[n + i] - a * (a >= min_size) - b * (b >= min_size)
        if n_groups_below != n_groups or n_covered < 0.9 * n:
            best = max(best, _height_range(n_groups, Z[i, 2], top))
            n_groups, top = n_groups_below, Z[i, 2]
        if n_covered < 0.9 * n:
            break
    return best


def _height_range(n_groups: int, low: float, high: float) -> tuple[float, float]:
    """Return the ratio of two heights, between which there are `n_groups` groups, and a height between them."""
    if n_groups < 2 or high <= 0:
        return 0.0, 0.0
    return (min(high / low, 1e9), float(np.sqrt(high * low))) if low > 0 else (1e9, high / 2)


def _are_normal(X: Array, groups: Array) -> bool:
    """Return whether normal distributions fitted to the groups recover the groups."""
    cost = np.empty((len(X), int(groups.max()) + 1))
    floor = 1e-6 * X.var(axis=0).sum()
    for j in range(cost.shape[1]):
        members = X[groups == j]
        covariance = np.cov(members.T, bias=True).reshape(X.shape[1], -1) + floor * np.eye(X.shape[1])
        centered = X - members.mean(axis=0)
        squares = (centered * np.linalg.solve(covariance, centered.T).T).sum(axis=1)
        cost[:, j] = squares + np.linalg.slogdet(covariance)[1] - 2 * np.log(len(members))
    return adjusted_rand_score(groups, cost.argmin(axis=1)) >= MIN_AGREEMENT


def _has_nested(X: Array, groups: Array) -> bool:
    """Return whether half of some group lies nearer to the mean of another group than 90 % of that group's rows."""
    means = np.array([X[groups == j].mean(axis=0) for j in range(groups.max() + 1)])
    radii = [np.sqrt(((X[groups == j] - mean) ** 2).sum(axis=1)) for j, mean in enumerate(means)]
    distances = cdist(means, means)
    k = len(means)
    return any(
        distances[i, j] + np.quantile(radii[i], 0.5) < np.quantile(radii[j], 0.1)
        for i in range(k)
        for j in range(k)
        if i != j
    )


def _hollowness(rows: Array) -> float:
    k = max(3, round(np.sqrt(len(rows))))
    from_rows = np.partition(cdist(rows, rows), k, axis=1)[:, k]
    from_mean = np.partition(cdist(rows.mean(axis=0)[None], rows)[0], k - 1)[k - 1]
    typical = float(np.quantile(from_rows, 0.95))
    return float(min(from_mean / typical, 1e9)) if typical > 0 else 0.0  # 0: too few distinct rows for a density
