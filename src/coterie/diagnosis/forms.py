"""Clusters that no center can stand for: hollow, bent, one around another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from coterie.diagnosis.clusters import Clusters
from coterie.diagnosis.findings import Check, count, judge, listed, not_measured, verb
from coterie.diagnosis.table import Array, Table
from coterie.hierarchy import cut, linkage
from coterie.kmeans.kmeans import KMeans
from coterie.metrics import adjusted_rand_score

LEAST_ROWS = 30
MOST_ROWS = 500  # of a cluster, where every pair of them is looked at
ROWS = 2000  # of all, likewise
NEIGHBOURS = 5
SIZEABLE = 0.05
CLEAR = 1.5  # one cloud stays below 1.1, and one curve, whose gaps are wider, below this in 99 of 100
AGREED = 0.9
BY_LINKS = (
    "AgglomerativeClustering(linkage='single'), which goes from neighbour to neighbour, or KernelKMeans(kernel='rbf')."
)
BY_NORMALS = "GaussianMixture(covariance_type='full'), or AgglomerativeClustering(linkage='single')."


class Parts(NamedTuple):
    """Pieces of the rows between which there is empty space."""

    rows: Array  # (p,) rows of the sample
    labels: Array  # (p,) their piece; -1: in none that is sizeable
    clearance: float  # by what factor the reach of a row may grow before pieces meet


def parts_of(table: Table, rng: np.random.Generator, n_jobs: int | None) -> Parts | None:
    """Pieces that single linkage leaves apart, of 2,000 rows; None where it finds one. O(2000² d).

    Distances are at least those to the 5th neighbour of either row, so that single rows build no bridges (Campello,
    Moulavi & Sander 2013). Of all heights at which pieces of 5 % of the rows or more hold 90 % of them, the range that
    is widest in ratio is taken.
    """
    rows = table.draw(ROWS, rng)
    if len(rows) < 2 * LEAST_ROWS or np.count_nonzero(table.spread) < 2:  # gaps of one column are what dip tests see
        return None
    D = cdist(table.X[rows], table.X[rows])
    reach = np.partition(D, NEIGHBOURS, axis=1)[:, NEIGHBOURS]
    D = np.maximum(D, np.maximum(reach[:, None], reach[None]))
    np.fill_diagonal(D, 0.0)
    Z = linkage(D, "single", "precomputed", n_jobs=n_jobs)
    clearance, height = _clearest(Z)
    if clearance < CLEAR:
        return None
    labels = cut(Z, height=height).astype(np.int64)
    small = np.bincount(labels) < SIZEABLE * len(rows)
    kept = np.where(small, -1, np.cumsum(~small) - 1)
    return Parts(rows, kept[labels], clearance)


def missed_pieces(
    clusters: Clusters | None, parts: Parts | None, table: Table, rng: np.random.Generator
) -> list[Check]:
    """Agreement (adjusted Rand index) of the pieces with K-means of as many clusters, and with the clusters looked at.

    Where empty space parts the rows and K-means does not find the parts, one lies around another, or they are long or
    unequal, if the normal distribution of each tells them apart, or else bent.
    """
    names = ("missed_pieces", "nested_clusters")
    if parts is None:
        reason = "no empty space parts the rows of two columns or more: single linkage finds one piece"
        return [not_measured(name, reason) for name in names]
    there = parts.labels >= 0
    X, w, pieces = table.X[parts.rows[there]], table.w[parts.rows[there]], parts.labels[there]
    k = int(pieces.max()) + 1
    model = KMeans(k, n_init=10, random_state=int(rng.integers(2**31))).fit(X, sample_weight=w)
    agreed = adjusted_rand_score(pieces, model.labels_)
    seen = -1.0 if clusters is None else adjusted_rand_score(pieces, clusters.codes[parts.rows[there]])
    nested, missed = _nested(X, pieces), max(agreed, seen) < AGREED
    form, remedy = "one around another", BY_LINKS
    if not nested:
        form, remedy = ("long or unequal", BY_NORMALS) if _are_normal(X, pieces) else ("bent", BY_LINKS)
    sentence = (
        f"Empty space parts the rows into {k} pieces, {form}, that centers do not find: {k} clusters of K-means agree "
        f"with them by an adjusted Rand index of {round(agreed, 2) + 0.0:.2f} ({len(parts.rows):,} rows)."
    )
    details = {"pieces": k, "form": form, "clearance": parts.clearance, "agreement_of_clusters": seen}
    return [
        judge(name, agreed, AGREED, len(parts.rows), missed and fires, "serious", sentence, remedy, **details)
        for name, fires in zip(names, (not nested, nested), strict=True)
    ]


def hollow_clusters(clusters: Clusters, rng: np.random.Generator) -> Check:
    """Distance from the mean of a cluster to its k-th nearest row, by that which 95 % of its rows have less than.

    A cluster with one hump is densest about its middle; a ring, an arc or a merger of several has nothing there. k is
    the root of the number of rows. O(500² d) a cluster.
    """
    name, ratios = "hollow_clusters", {}
    for j, own in enumerate(clusters.members):
        if len(own) >= LEAST_ROWS:
            rows = clusters.table.X[clusters.table.draw(MOST_ROWS, rng, own)]
            ratios[j] = _hollowness(rows)
    if not ratios:
        return not_measured(name, f"needs a cluster of {LEAST_ROWS} rows")
    hollow = [j for j in ratios if ratios[j] > 1]
    worst = max(ratios, key=ratios.__getitem__)
    return judge(
        name,
        ratios[worst],
        1.0,
        len(clusters.codes),
        bool(hollow),
        "warning",
        f"{count(len(hollow), 'cluster')} of {clusters.k} ({listed([clusters.names[j] for j in hollow])}) "
        f"{verb(len(hollow), 'is', 'are')} empty in the middle: rows are {min(ratios[worst], 1e6):.1f} times as far "
        f"from the mean of cluster {clusters.names[worst]} "
        f"as from nearly all of its rows ({clusters.told}).",
        "Rings and arcs: AgglomerativeClustering(linkage='single') or KernelKMeans(kernel='rbf'). Several clusters in "
        "one: a larger n_clusters.",
        clusters=[clusters.names[j] for j in hollow],
    )


def _clearest(Z: Array) -> tuple[float, float]:
    """The widest range of heights at which the sizeable pieces stay two or more, as a ratio, and a height in it."""
    n = len(Z) + 1
    sizes = np.concatenate([np.ones(n), Z[:, 3]])
    least = max(LEAST_ROWS / 2, SIZEABLE * n)
    best, count_now, covered = (0.0, 0.0), int(n >= least), float(n)
    top = np.inf  # where the range of the present number of sizeable pieces begins
    for i in range(len(Z) - 1, -1, -1):
        a, b = sizes[Z[i, :2].astype(np.int64)]
        if sizes[n + i] < least:
            continue
        count_after = count_now + int(a >= least) + int(b >= least) - 1
        covered -= sizes[n + i] - a * (a >= least) - b * (b >= least)
        if count_after != count_now or covered < 0.9 * n:
            best = max(best, _range(count_now, Z[i, 2], top))
            count_now, top = count_after, Z[i, 2]
        if covered < 0.9 * n:
            break
    return best


def _range(pieces: int, low: float, high: float) -> tuple[float, float]:
    """`low`, where they have come together, to `high`, where they meet; a height between them."""
    if pieces < 2 or high <= 0:
        return 0.0, 0.0
    return (min(high / low, 1e9), float(np.sqrt(high * low))) if low > 0 else (1e9, high / 2)


def _are_normal(X: Array, pieces: Array) -> bool:
    """Whether every row is most likely where it is, by the normal distributions of the pieces."""
    cost = np.empty((len(X), int(pieces.max()) + 1))
    floor = 1e-6 * X.var(axis=0).sum()
    for j in range(cost.shape[1]):
        own = X[pieces == j]
        covariance = np.cov(own.T, bias=True).reshape(X.shape[1], -1) + floor * np.eye(X.shape[1])
        moved = X - own.mean(axis=0)
        squares = (moved * np.linalg.solve(covariance, moved.T).T).sum(axis=1)
        cost[:, j] = squares + np.linalg.slogdet(covariance)[1] - 2 * np.log(len(own))
    return adjusted_rand_score(pieces, cost.argmin(axis=1)) >= AGREED


def _nested(X: Array, pieces: Array) -> bool:
    """Whether the middle of another piece is empty, and half of some piece in it: nine in ten rows of it lie around."""
    means = np.array([X[pieces == j].mean(axis=0) for j in range(pieces.max() + 1)])
    inner = [np.sqrt(((X[pieces == j] - mean) ** 2).sum(axis=1)) for j, mean in enumerate(means)]
    apart = cdist(means, means)
    k = len(means)
    return any(
        apart[i, j] + np.quantile(inner[i], 0.5) < np.quantile(inner[j], 0.1)
        for i in range(k)
        for j in range(k)
        if i != j
    )


def _hollowness(rows: Array) -> float:
    k = max(3, round(np.sqrt(len(rows))))
    from_rows = np.partition(cdist(rows, rows), k, axis=1)[:, k]
    from_mean = np.partition(cdist(rows.mean(axis=0)[None], rows)[0], k - 1)[k - 1]
    usual = float(np.quantile(from_rows, 0.95))
    return float(min(from_mean / usual, 1e9)) if usual > 0 else 0.0  # rows on few places: no density to speak of
