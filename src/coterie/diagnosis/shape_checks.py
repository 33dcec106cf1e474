"""Checks of cluster shapes: elongated clusters and heavy tails."""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammainccinv, ndtri

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.diagnosis.findings import Check, join_names, measured, not_measured, percent, verb, with_finding
from coterie.diagnosis.sample import Partition

LEVEL = 0.01  # probability that a check has a finding for round normal clusters
MAX_AXIS_RATIO = 2.66
MAX_KURTOSIS_RATIO = 2.0
MIN_VARIANCE = 0.01  # axes with less of the largest variance hardly contribute to distances
ROUNDING = 1e-7  # relative rounding error of axis lengths, which are roots of eigenvalues
MIN_ROWS = 30
MAX_COLUMNS = 500  # with more columns, as many rows of a cluster are enough


class PrincipalAxes(NamedTuple):
    """Principal axes of a cluster."""

    n: int  # rows
    variances: Array  # (p,) positive variances in descending order
    scores: Array  # (n, p) coordinates of the rows along the axes
    w: Array  # (n,)
    d: int  # columns


def principal_axes(clusters: Partition, rng: np.random.Generator) -> dict[int, PrincipalAxes]:
    """Return the principal axes of each cluster with at least 30 rows.

    O(m d² + k d³), or with rows in place of columns if there are fewer rows.
    """
    X, w = clusters.sample.X, clusters.sample.w
    axes = {}
    for j, index in enumerate(clusters.members):
        if len(index) < MIN_ROWS:
            continue
        index = index if X.shape[1] <= MAX_COLUMNS else clusters.sample.draw(MAX_COLUMNS, rng, index)
        rows = X[index] - clusters.means[j]
        root = np.sqrt(w[index] / w[index].sum())[:, None]
        lengths, directions = _singular_vectors(root * rows)
        nonzero = lengths > ROUNDING * max(lengths[0], 1e-300)
        scores = rows @ directions[nonzero].T
        axes[j] = PrincipalAxes(len(index), lengths[nonzero] ** 2, scores, w[index], X.shape[1])
    return {j: a for j, a in axes.items() if len(a.variances)}


def elongated_clusters(clusters: Partition, axes: dict[int, PrincipalAxes]) -> Check:
    r"""Length of the longest axis of a cluster relative to the others: the root of the ratio of variances.

    K-means gains :math:`\tfrac{2}{\pi} n \sigma_1^2` by splitting a normal cluster across its longest axis, and
    :math:`\tfrac12 n \Delta^2` by separating two clusters of n rows each at a distance of :math:`\Delta`. It prefers
    the split if :math:`\Delta < 1.13\,\sigma_1`. At a ratio of 2.66, this is true for neighbours that are three
    standard deviations apart and hardly overlap. The ratio must also exceed that of n rows from a spherical
    distribution: the largest eigenvalue of their covariance follows the Tracy-Widom law (Johnstone 2001).
    """
    name = "elongated_clusters"
    ratios = {}
    for j, a in axes.items():
        if a.d > 1:
            others = a.variances[1:].sum() / (a.d - 1)
            ratios[j] = float(min(np.sqrt(a.variances[0] / others), 1e9)) if others > 0 else 1e9
    if not ratios:
        return not_measured(name, f"needs two columns and a cluster with at least {MIN_ROWS} rows")
    limits = {j: max(MAX_AXIS_RATIO, _axis_ratio_of_sphere(axes[j].n, axes[j].d, LEVEL / len(ratios))) for j in ratios}
    elongated = [j for j in ratios if ratios[j] > limits[j]]
    worst = max(ratios, key=lambda j: ratios[j] / limits[j])
    return with_finding(
        measured(name, ratios[worst], limits[worst], len(clusters.codes)),
        bool(elongated) and clusters.assumes_round,
        "warning",
        f"{len(elongated):,} of {count(clusters.k, 'cluster')} {verb(len(elongated), 'is', 'are')} elongated: cluster "
        f"{clusters.names[worst]} is {min(ratios[worst], 1e6):.1f} times as wide along its longest axis as along the "
        "others. Methods that assume round clusters tend to split such clusters.",
        "Use GaussianMixture(covariance_type='full'), or 'tied' if all clusters have the same shape. If the columns "
        "have different units, scale them first.",
        clusters=[clusters.names[j] for j in elongated],
    )


def heavy_tails(clusters: Partition, axes: dict[int, PrincipalAxes]) -> Check:
    r"""Mardia's kurtosis of a cluster, the mean of :math:`D^4`, relative to that of a normal one, :math:`p (p + 2)`.

    D are Mahalanobis distances along the p principal axes that have at least 1 % of the largest variance; p is at most
    10, and at most a tenth of the number of rows. A ratio of 2 is the kurtosis of Student's t with 6 degrees of
    freedom, and more than that of half a normal cluster. The ratio must also exceed what n normal rows exceed with a
    probability of 1 %; their standard deviation is :math:`\sqrt{8 p (p + 2) / n}`.
    """
    name = "heavy_tails"
    if not axes:
        return not_measured(name, f"needs a cluster with at least {MIN_ROWS} rows")
    ratios, limits = {}, {}
    for j, a in axes.items():
        p = max(1, min(int(np.count_nonzero(a.variances >= MIN_VARIANCE * a.variances[0])), 10, a.n // 10))
        squares = (a.scores[:, :p] ** 2 / a.variances[:p]).sum(axis=1)
        ratios[j] = float(a.w @ squares**2 / a.w.sum()) / (p * (p + 2))
        # The limit is on a log scale because the kurtosis is skewed and its logarithm much less so.
        limit = np.exp(-ndtri(LEVEL / len(axes)) * np.sqrt(8 / (p * (p + 2) * a.n)))
        limits[j] = max(MAX_KURTOSIS_RATIO, float(limit))
    heavy = [j for j in ratios if ratios[j] > limits[j]]
    worst = max(ratios, key=lambda j: ratios[j] / limits[j])
    return with_finding(
        measured(name, ratios[worst], limits[worst], len(clusters.codes)),
        bool(heavy),
        "warning",
        f"{len(heavy):,} of {count(clusters.k, 'cluster')} {verb(len(heavy), 'has', 'have')} heavy tails: the kurtosis "
        f"of cluster {clusters.names[worst]} is {ratios[worst]:.1f} times that of a normal distribution. A few extreme "
        "rows have a large effect on its mean.",
        "Use KMedians or KMedoids, which do not square distances. Or take logarithms of skewed columns.",
        clusters=[clusters.names[j] for j in heavy],
    )


def _singular_vectors(A: Array) -> tuple[Array, Array]:
    """Return singular values in descending order and right singular vectors, from the smaller of AᵀA and AAᵀ."""
    n, d = A.shape
    squares, vectors = np.linalg.eigh(A.T @ A if d <= n else A @ A.T)
    lengths = np.sqrt(np.maximum(squares[::-1], 0))
    vectors = vectors.T[::-1]
    return lengths, vectors if d <= n else vectors @ A / np.where(lengths > 0, lengths, 1.0)[:, None]


def _axis_ratio_of_sphere(n: int, d: int, level: float) -> float:
    """Return the axis ratio that n rows of a spherical normal distribution exceed with probability `level`.

    The Tracy-Widom law is approximated by a gamma distribution with the same first three moments (Chiani 2014).
    """
    tail = 0.186054 * gammainccinv(46.446, level) - 9.84801
    a, b = np.sqrt(n - 1), np.sqrt(d)
    largest = ((a + b) ** 2 + tail * (a + b) * (1 / a + 1 / b) ** (1 / 3)) / n
    return float(np.sqrt(largest * (d - 1) / (d - largest))) if largest < d else np.inf


# Checks of cluster widths and sizes.

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
    threshold = MAX_WIDTH_RATIO * np.exp(-ndtri(LEVEL / len(axes) ** 2) * error)
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
        "Use KMeans(search='thorough') to check that no small clusters were merged. Or use GaussianMixture, which "
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
