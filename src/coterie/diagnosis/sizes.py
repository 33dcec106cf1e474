"""Clusters of unequal width or weight, and tiny ones."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import norm

from coterie.diagnosis.clusters import Clusters
from coterie.diagnosis.findings import Check, count, judge, listed, not_measured, percent, verb
from coterie.diagnosis.shapes import ERROR, LEAST_ROWS, Axes

WIDE = 2.0
HEAVIER = 10.0
TINY = 0.01


def unequal_spread(clusters: Clusters, axes: dict[int, Axes]) -> Check:
    """Width of the widest cluster by that of the narrowest: roots of mean variances.

    K-means puts the border of two clusters half way. Of clusters of widths 1 and 2 that lie 6 apart, the narrow one
    loses 0.1 % of its rows across it and the wide one 6.7 %. The ratio must exceed 2 by what chance explains, the
    standard errors of both widths.
    """
    name = "unequal_spread"
    if len(axes) < 2:
        return not_measured(name, f"needs two clusters of {LEAST_ROWS} rows")
    widths = {j: np.sqrt(a.variances.sum() / a.d) for j, a in axes.items()}
    wide, narrow = max(widths, key=widths.__getitem__), min(widths, key=widths.__getitem__)
    ratio = min(widths[wide] / widths[narrow], 1e9)
    noise = np.hypot(_relative_error(axes[wide]), _relative_error(axes[narrow]))
    limit = WIDE * np.exp(norm.isf(ERROR / len(axes) ** 2) * noise)
    moved = _share_moved(clusters, widths)
    return judge(
        name,
        ratio,
        limit,
        len(clusters.codes),
        ratio > limit and clusters.takes_equal,
        "warning" if moved > 0.01 else "note",
        f"Cluster {clusters.names[wide]} is {ratio:.1f} times as wide as cluster {clusters.names[narrow]}; with widths "
        f"and sizes of their own {percent(moved)} of the rows would belong elsewhere ({clusters.told}).",
        "GaussianMixture(covariance_type='spherical') gives every cluster its own width and weight; 'full' its form "
        "too.",
        widths={clusters.names[j]: float(width / widths[narrow]) for j, width in widths.items()},
        share_moved=moved,
    )


def unequal_sizes(clusters: Clusters) -> Check:
    """Weight of the heaviest cluster by that of the lightest; tiny ones are another check's.

    K-means cuts a heavy cluster rather than part two light ones: cutting n rows of deviation σ gains what parting two
    clusters of a tenth of n does if these lie less than 3.6 σ apart.
    """
    name = "unequal_sizes"
    sizeable = np.flatnonzero(clusters.weight >= _tiny_share(clusters) * clusters.weight.sum())
    if clusters.k < 2 or len(sizeable) < 2:
        return not_measured(name, "needs two clusters")
    weight = clusters.weight[sizeable]
    large, small = sizeable[weight.argmax()], sizeable[weight.argmin()]
    ratio = float(weight.max() / weight.min())
    shares = clusters.weight / clusters.weight.sum()
    return judge(
        name,
        ratio,
        HEAVIER,
        len(clusters.codes),
        ratio > HEAVIER and clusters.takes_equal,
        "note",
        f"Cluster {clusters.names[large]} is {ratio:.0f} times as large as cluster {clusters.names[small]} "
        f"({percent(shares[large])} and {percent(shares[small])} of the rows, {clusters.told}): K-means would rather "
        "cut the large one than part two small ones.",
        "KMeans(search='fast') to see that nothing small was merged; GaussianMixture, which estimates weights.",
        shares=dict(zip(clusters.names, shares.tolist(), strict=True)),
    )


def tiny_clusters(clusters: Clusters) -> Check:
    """Share of the smallest cluster: under 1 %, or a tenth of an equal share if that is less; or a single row."""
    name = "tiny_clusters"
    if clusters.k < 2:
        return not_measured(name, "needs two clusters")
    shares = clusters.weight / clusters.weight.sum()
    limit = _tiny_share(clusters)
    rows = np.array([len(own) for own in clusters.members])
    tiny = np.flatnonzero((shares < limit) | ((rows == 1) & (len(clusters.codes) >= 5 * clusters.k)))
    told = [f"{clusters.names[j]} ({count(int(rows[j]), 'row')})" for j in tiny]
    return judge(
        name,
        shares.min(),
        limit,
        len(clusters.codes),
        len(tiny) > 0,
        "warning",
        f"{count(len(tiny), 'cluster')} of {clusters.k} {verb(len(tiny), 'holds', 'hold')} next to nothing: "
        f"{listed(told)} of {clusters.table.drawn} "
        f"({clusters.told}).",
        "A center may have gone to outliers: see whether these rows are, and use KMedians or KMedoids, or a smaller "
        "n_clusters; BalancedKMeans(size_min=...) sets a least size.",
        clusters=[clusters.names[j] for j in tiny],
    )


def _tiny_share(clusters: Clusters) -> float:
    return min(TINY, 0.1 / clusters.k)


def _relative_error(axes: Axes) -> float:
    """Standard error of the logarithm of a width."""
    v = axes.variances
    return float(np.sqrt((v**2).sum() / (2 * axes.n)) / v.sum())


def _share_moved(clusters: Clusters, widths: dict[int, float]) -> float:
    """Share of rows nearest to one mean, and more likely of another cluster, round with its own width and weight."""
    js = list(widths)
    X, w, d = clusters.table.X, clusters.table.w, clusters.table.X.shape[1]
    some = slice(None, None, 1 + len(X) * len(js) // 10_000_000)
    squares = cdist(X[some], clusters.means[js], "sqeuclidean")
    width, weight = np.array([widths[j] for j in js]), clusters.weight[js]
    cost = squares / width**2 + 2 * d * np.log(width) - 2 * np.log(weight)
    return float(w[some] @ (squares.argmin(axis=1) != cost.argmin(axis=1)) / w[some].sum())
