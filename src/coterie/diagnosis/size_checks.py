"""Checks of cluster widths and sizes."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import norm

from coterie.core.formatting import count
from coterie.diagnosis.findings import Check, join_names, measured, not_measured, percent, with_finding
from coterie.diagnosis.partition import Partition
from coterie.diagnosis.shape_checks import LEVEL, MIN_ROWS, PrincipalAxes

MAX_WIDTH_RATIO = 2.0
MAX_SIZE_RATIO = 10.0
MIN_SHARE = 0.01


def unequal_spread(clusters: Partition, axes: dict[int, PrincipalAxes]) -> Check:
    """Ratio of the largest cluster width to the smallest; a width is the root of the mean variance of the columns.

    K-means puts the boundary of two clusters half way between their centers. For clusters of widths 1 and 2 that are 6
    apart, the narrow one loses 0.1 % of its rows across the boundary and the wide one 6.7 %. The ratio must exceed 2 by
    more than the standard errors of both widths explain.
    """
    name = "unequal_spread"
    if len(axes) < 2:
        return not_measured(name, f"needs two clusters with at least {MIN_ROWS} rows each")
    widths = {j: np.sqrt(a.variances.sum() / a.d) for j, a in axes.items()}
    wide, narrow = max(widths, key=widths.__getitem__), min(widths, key=widths.__getitem__)
    ratio = min(widths[wide] / widths[narrow], 1e9)
    error = np.hypot(_relative_error(axes[wide]), _relative_error(axes[narrow]))
    threshold = MAX_WIDTH_RATIO * np.exp(norm.isf(LEVEL / len(axes) ** 2) * error)
    share_moved = _share_moved(clusters, widths)
    return with_finding(
        measured(name, ratio, threshold, len(clusters.codes)),
        ratio > threshold and clusters.assumes_equal,
        "warning" if share_moved > 0.01 else "note",
        f"Cluster {clusters.names[wide]} is {ratio:.1f} times as wide as cluster {clusters.names[narrow]}. With a "
        f"separate width and weight for each cluster, {percent(share_moved)} of the rows would be assigned to another "
        "cluster.",
        "Use GaussianMixture(covariance_type='spherical'), which estimates the width and weight of each cluster, or "
        "covariance_type='full', which also estimates its shape.",
        widths={clusters.names[j]: float(width / widths[narrow]) for j, width in widths.items()},
        share_moved=share_moved,
    )


def unequal_sizes(clusters: Partition) -> Check:
    """Ratio of the largest cluster weight to the smallest; tiny clusters are left to `tiny_clusters`.

    K-means tends to split a large cluster rather than separate two small ones: splitting n rows of standard deviation σ
    gains as much as separating two clusters of n / 10 rows each that are less than 3.6 σ apart.
    """
    name = "unequal_sizes"
    index = np.flatnonzero(clusters.weight >= _tiny_share(clusters) * clusters.weight.sum())
    if clusters.k < 2 or len(index) < 2:
        return not_measured(name, "needs at least two clusters")
    weight = clusters.weight[index]
    large, small = index[weight.argmax()], index[weight.argmin()]
    ratio = float(weight.max() / weight.min())
    shares = clusters.weight / clusters.weight.sum()
    return with_finding(
        measured(name, ratio, MAX_SIZE_RATIO, len(clusters.codes)),
        ratio > MAX_SIZE_RATIO and clusters.assumes_equal,
        "note",
        f"Cluster {clusters.names[large]} is {ratio:.0f} times as large as cluster {clusters.names[small]} "
        f"({percent(shares[large])} and {percent(shares[small])} of the rows). K-means tends to split large clusters "
        "and merge small ones.",
        "Use KMeans(search='fast') to check that no small clusters were merged. Or use GaussianMixture, which "
        "estimates the weights of the clusters.",
        shares=dict(zip(clusters.names, shares.tolist(), strict=True)),
    )


def tiny_clusters(clusters: Partition) -> Check:
    """Share of the smallest cluster: below 1 %, or below a tenth of an equal share if that is less; or a single row."""
    name = "tiny_clusters"
    if clusters.k < 2:
        return not_measured(name, "needs at least two clusters")
    shares = clusters.weight / clusters.weight.sum()
    threshold = _tiny_share(clusters)
    sizes = np.array([len(index) for index in clusters.members])
    tiny = np.flatnonzero((shares < threshold) | ((sizes == 1) & (len(clusters.codes) >= 5 * clusters.k)))
    sample = clusters.sample.description
    if len(tiny) == 1:
        observation = f"Cluster {clusters.names[tiny[0]]} has only {count(int(sizes[tiny[0]]), 'row')} (of {sample})"
    else:
        listing = join_names([f"{clusters.names[j]} ({count(int(sizes[j]), 'row')})" for j in tiny])
        observation = f"{len(tiny):,} of {clusters.k:,} clusters have very few of {sample}: {listing}"
    return with_finding(
        measured(name, shares.min(), threshold, len(clusters.codes)),
        len(tiny) > 0,
        "warning",
        f"{observation}. A center may have moved to outliers.",
        "Check whether these rows are outliers. If they are, use KMedians, KMedoids or a smaller n_clusters. "
        "BalancedKMeans(size_min=...) sets a minimum size.",
        clusters=[clusters.names[j] for j in tiny],
    )


def _tiny_share(clusters: Partition) -> float:
    return min(MIN_SHARE, 0.1 / clusters.k)


def _relative_error(axes: PrincipalAxes) -> float:
    """Return the standard error of the logarithm of a width."""
    v = axes.variances
    return float(np.sqrt((v**2).sum() / (2 * axes.n)) / v.sum())


def _share_moved(clusters: Partition, widths: dict[int, float]) -> float:
    """Return the share of rows whose most likely spherical component is not the cluster with the nearest mean."""
    js = list(widths)
    X, w, d = clusters.sample.X, clusters.sample.w, clusters.sample.X.shape[1]
    rows = slice(None, None, 1 + len(X) * len(js) // 10_000_000)  # limits the memory for distances
    squares = cdist(X[rows], clusters.means[js], "sqeuclidean")
    width, weight = np.array([widths[j] for j in js]), clusters.weight[js]
    cost = squares / width**2 + 2 * d * np.log(width) - 2 * np.log(weight)
    return float(w[rows] @ (squares.argmin(axis=1) != cost.argmin(axis=1)) / w[rows].sum())
