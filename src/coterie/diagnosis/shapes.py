"""Forms of clusters that centers do not describe: long ones, and heavy tails."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import gamma, norm

from coterie.diagnosis.clusters import Clusters
from coterie.diagnosis.findings import Check, count, judge, not_measured, verb
from coterie.diagnosis.table import Array

ERROR = 0.01  # chance that a check speaks of clusters that are round and normal
LONG = 2.66
HEAVY = 2.0
FAINT = 0.01  # of the largest variance: an axis that distances hardly see
ROUNDING = 1e-7  # of the longest axis: the root of what its square may be wrong by
LEAST_ROWS = 30
MOST_COLUMNS = 500  # beyond which as many rows of a cluster are enough


class Axes(NamedTuple):
    """Main axes of a cluster."""

    n: int  # rows
    variances: Array  # (p,) descending, those that are not 0
    scores: Array  # (n, p) rows along the axes
    w: Array  # (n,)
    d: int


def axes_of(clusters: Clusters, rng: np.random.Generator) -> dict[int, Axes]:
    """The main axes of every cluster of 30 rows or more. O(m d² + k d³), or with rows in place of columns if fewer."""
    X, w = clusters.table.X, clusters.table.w
    found = {}
    for j, own in enumerate(clusters.members):
        if len(own) < LEAST_ROWS:
            continue
        own = own if X.shape[1] <= MOST_COLUMNS else clusters.table.draw(MOST_COLUMNS, rng, own)
        rows = X[own] - clusters.means[j]
        root = np.sqrt(w[own] / w[own].sum())[:, None]
        lengths, directions = _main_axes(root * rows)
        alive = lengths > ROUNDING * max(lengths[0], 1e-300)
        found[j] = Axes(len(own), lengths[alive] ** 2, rows @ directions[alive].T, w[own], X.shape[1])
    return {j: axes for j, axes in found.items() if len(axes.variances)}


def elongated_clusters(clusters: Clusters, axes: dict[int, Axes]) -> Check:
    r"""Longest axis of a cluster, against the others together: the root of the ratio of variances.

    K-means gains :math:`\tfrac{2}{\pi} n \sigma_1^2` by cutting a normal cluster across its longest axis, and
    :math:`\tfrac12 n \Delta^2` by parting two clusters of n rows each that lie :math:`\Delta` apart: it prefers the cut
    if :math:`\Delta < 1.13\,\sigma_1`. At a ratio of 2.66 that is true of neighbours three deviations away, which
    hardly overlap. And the ratio must be more than that of n rows of a sphere: the largest eigenvalue of their
    covariance follows Tracy and Widom's law (Johnstone 2001).
    """
    name = "elongated_clusters"
    ratios = {j: _axis_ratio(a) for j, a in axes.items() if a.d > 1}
    if not ratios:
        return not_measured(name, f"needs two columns and a cluster of {LEAST_ROWS} rows")
    limits = {j: max(LONG, _longest_of_sphere(axes[j].n, axes[j].d, ERROR / len(ratios))) for j in ratios}
    long = [j for j in ratios if ratios[j] > limits[j]]
    worst = max(ratios, key=lambda j: ratios[j] / limits[j])
    return judge(
        name,
        ratios[worst],
        limits[worst],
        len(clusters.codes),
        bool(long) and clusters.takes_round,
        "warning",
        f"{count(len(long), 'cluster')} of {clusters.k} {verb(len(long), 'is', 'are')} long, not round: cluster "
        f"{clusters.names[worst]} is {min(ratios[worst], 1e6):.1f} times as wide along its longest axis as across "
        f"({clusters.told}).",
        "GaussianMixture(covariance_type='full'), or 'tied' if all clusters have one form; if the columns have "
        "different units, scale them first.",
        clusters=[clusters.names[j] for j in long],
    )


def heavy_tails(clusters: Clusters, axes: dict[int, Axes]) -> Check:
    r"""Mardia's kurtosis of a cluster, the mean of :math:`D^4`, by that of a normal one, :math:`p (p + 2)`.

    D are Mahalanobis distances along the p main axes, ten at most and one for every ten rows, of 1 % of the largest
    variance or more. 2 is the kurtosis of Student's t with 6 degrees of freedom, and more than that of half a normal
    cluster; and it must exceed what n normal rows show with a chance of 1 %, whose
    deviation is :math:`\sqrt{8 p (p + 2) / n}`.
    """
    name = "heavy_tails"
    if not axes:
        return not_measured(name, f"needs a cluster of {LEAST_ROWS} rows")
    ratios, limits = {}, {}
    for j, a in axes.items():
        p = max(1, min(int(np.count_nonzero(a.variances >= FAINT * a.variances[0])), 10, a.n // 10))
        squares = (a.scores[:, :p] ** 2 / a.variances[:p]).sum(axis=1)
        ratios[j] = float(a.w @ squares**2 / a.w.sum()) / (p * (p + 2))
        # the kurtosis is skewed: its logarithm much less
        limits[j] = max(HEAVY, float(np.exp(norm.isf(ERROR / len(axes)) * np.sqrt(8 / (p * (p + 2) * a.n)))))
    heavy = [j for j in ratios if ratios[j] > limits[j]]
    worst = max(ratios, key=lambda j: ratios[j] / limits[j])
    return judge(
        name,
        ratios[worst],
        limits[worst],
        len(clusters.codes),
        bool(heavy),
        "warning",
        f"{count(len(heavy), 'cluster')} of {clusters.k} {verb(len(heavy), 'has', 'have')} heavy tails: the kurtosis "
        f"of cluster {clusters.names[worst]} is {ratios[worst]:.1f} times that of a normal one ({clusters.told}). Few "
        "rows weigh much in its mean.",
        "KMedians or KMedoids, by distances that are not squared; take logarithms of skewed columns.",
        clusters=[clusters.names[j] for j in heavy],
    )


def _main_axes(A: Array) -> tuple[Array, Array]:
    """Lengths, descending, and directions of the axes, by the smaller of the two products of A with itself."""
    n, d = A.shape
    squares, vectors = np.linalg.eigh(A.T @ A if d <= n else A @ A.T)
    lengths = np.sqrt(np.maximum(squares[::-1], 0))
    vectors = vectors.T[::-1]
    return lengths, vectors if d <= n else vectors @ A / np.where(lengths > 0, lengths, 1.0)[:, None]


def _axis_ratio(axes: Axes) -> float:
    others = axes.variances[1:].sum() / (axes.d - 1)
    return float(min(np.sqrt(axes.variances[0] / others), 1e9)) if others > 0 else 1e9


def _longest_of_sphere(n: int, d: int, level: float) -> float:
    """The ratio of the longest axis to the others that n rows of a sphere exceed with a chance of `level`.

    Tracy and Widom's law by the gamma distribution of its first three moments (Chiani 2014).
    """
    tail = gamma.isf(level, 46.446, scale=0.186054) - 9.84801
    a, b = np.sqrt(n - 1), np.sqrt(d)
    largest = ((a + b) ** 2 + tail * (a + b) * (1 / a + 1 / b) ** (1 / 3)) / n
    return float(np.sqrt(largest * (d - 1) / (d - largest))) if largest < d else np.inf
