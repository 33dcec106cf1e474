"""Rows far from all clusters, by medians that a few of them cannot move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import t as student

from coterie.diagnosis.clusters import Clusters
from coterie.diagnosis.findings import Check, judge, listed, not_measured, percent, verb
from coterie.diagnosis.table import Array, Table

ERROR = 0.001  # chance that clean rows, if the power of their distances were normal, have an outlier
TO_NORMAL = 1.4826  # the standard deviation of normal numbers, by their median absolute deviation
NINTH_TENTH = 1.2816  # of ten, in deviations of normal numbers
EFFICIENCY = 0.37  # of that median: n rows tell as much of the deviation as 0.37 n would
NEIGHBOURS = 10
FEW = 0.1  # share of rows beyond which they are not outliers of clusters: these have another form
MOST = 2000  # candidates whose neighbours are counted


class Far(NamedTuple):
    """How far every row is from the middle of its cluster."""

    z: Array  # (m,) robust standard scores of the distances
    limit: Array  # (m,) beyond which a score is an outlier's
    alone: Array  # (m,) bool, of those beyond: whether few other rows are near


def outliers(table: Table, clusters: Clusters | None) -> Check:
    r"""Rows that lie outside of their cluster by more than chance explains, and away from other rows. O(m d + c m d).

    Columns are put in units of their median absolute deviation about the median of the cluster. The 2/3 power of the
    distance to it is nearly normal, for sums of squares of any normal columns (Wilson & Hilferty 1931); a row is far
    where its robust score exceeds the quantile that one of m clean rows exceeds with a chance of 0.1 %, and an outlier
    if, too, hardly any rows are within 1.5 times the median radius of its cluster: else it is one of a cluster that was
    not told apart. Rows of clusters too small for medians are taken to the nearest that is not.
    """
    m = len(table.X)
    if m < 20 or not table.spread.any():
        return not_measured("outliers", "needs 20 rows that are not all equal")
    far = _far(table, np.zeros(m, np.int64) if clusters is None else clusters.codes)
    which = np.flatnonzero(far.alone)
    which = which[np.argsort(-far.z[which], kind="stable")]
    pull = _share_of_squares(table, which)
    worst = float((far.z / far.limit).max())
    rows = [str(table.rows[i]) for i in which]
    return judge(
        "outliers",
        len(which) / m,
        0.0,
        m,
        0 < len(which) <= FEW * m,
        "serious" if pull > 0.5 else "warning" if pull > 0.05 else "note",
        f"{len(which):,} of {table.drawn} {verb(len(which), 'lies', 'lie')} far outside of all clusters (the "
        f"farthest {far.z.max():.1f} deviations, {worst:.1f} times what chance explains), with {percent(pull)} of all "
        f"squared distances to the median: {verb(len(which), 'row', 'rows')} {listed(rows)}.",
        "KMedians or KMedoids, whose centers a few rows do not move; or look at these rows and drop them.",
        indices=[int(table.rows[i]) for i in which[:1000]],
        share_of_squares=pull,
    )


def _far(table: Table, codes: Array) -> Far:
    m = len(table.X)
    codes = _into_sizeable(table.X, codes)
    z, limit, alone = np.zeros(m), np.full(m, np.inf), np.zeros(m, bool)
    for code in np.unique(codes):
        own = np.flatnonzero(codes == code)
        middle, unit = _middle(table.X[own])
        radius = np.sqrt((((table.X[own] - middle) / unit) ** 2).sum(axis=1))
        scores = _scores(radius ** (2 / 3))
        z[own], limit[own] = scores, student.isf(ERROR / m, max(3.0, EFFICIENCY * len(own)))
        beyond = own[scores > limit[own]][:MOST]
        if len(beyond):
            alone[beyond] = _alone(table.X / unit, beyond, float(np.median(radius)))
    return Far(z, limit, alone)


def _into_sizeable(X: Array, codes: Array) -> Array:
    """Clusters, with the rows of those too small for medians, and of none, in the nearest of the others."""
    sizes = np.bincount(codes + 1)[1:]
    large = np.flatnonzero(sizes >= max(20, len(X) // 100))
    if len(large) == 0:
        return np.zeros(len(X), np.int64)
    middles = np.array([np.median(X[codes == code], axis=0) for code in large])
    lost = ~np.isin(codes, large)
    moved = codes.copy()
    if lost.any():
        moved[lost] = large[cdist(X[lost], middles).argmin(axis=1)]
    return moved


def _middle(X: Array) -> tuple[Array, Array]:
    """Median, and median absolute deviation; where half of the values are equal, the standard deviation, but no less
    than what is usual of the other columns: a rare 1 among zeros is no outlier."""
    middle = np.median(X, axis=0)
    unit = TO_NORMAL * np.median(np.abs(X - middle), axis=0)
    usual = float(np.median(unit[unit > 0])) if unit.any() else 0.0
    unit = np.where(unit > 0, unit, np.maximum(X.std(axis=0), usual))
    return middle, np.where(unit > 0, unit, 1.0)


def _scores(values: Array) -> Array:
    """Robust standard scores; the deviation is that of the middle half, or of the upper part if it reaches farther."""
    middle, ninth_tenth = np.quantile(values, [0.5, 0.9])
    unit = max(TO_NORMAL * np.median(np.abs(values - middle)), (ninth_tenth - middle) / NINTH_TENTH)
    return (values - middle) / unit if unit > 0 else np.zeros(len(values))


def _alone(X: Array, which: Array, radius: float) -> Array:
    """Whether fewer than ten other rows, or one in two hundred of few, are within one and a half times `radius`."""
    few, radius = min(NEIGHBOURS, max(1, len(X) // 200)), 1.5 * radius
    near = np.array([np.count_nonzero(((X - X[i]) ** 2).sum(axis=1) <= radius**2) - 1 for i in which])
    return near < few


def _share_of_squares(table: Table, which: Array) -> float:
    squares = table.w * ((table.X - np.median(table.X, axis=0)) ** 2).sum(axis=1)
    total = float(squares.sum())
    return float(squares[which].sum()) / total if total > 0 else 0.0
