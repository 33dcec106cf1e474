"""Checks of clustering tendency: whether the data contain clusters at all."""

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import betaincc, stdtr

from coterie.core.formatting import count
from coterie.diagnosis.dip import dip_test
from coterie.diagnosis.findings import Check, measured, not_measured, with_finding
from coterie.diagnosis.sample import Sample, count_distinct
from coterie.selection import gap_statistic

MAX_PROBES = 200  # places and rows whose nearest rows are compared
LEVEL = 0.01
UNIFORM_LEVEL = 0.05
ROWS = 1000
MIN_ROWS = 50  # a test of unimodality has no power with fewer rows
MIN_ROWS_HOPKINS = 100  # the Hopkins statistic uses a tenth of them
VIEWERS = 20
MAX_COLUMNS = 5  # with more columns, most of the bounding box is near its boundary, where H is not Beta(m, m)
GAP_ROWS = 500
GAP_KS = (1, 2, 3, 5, 8)
REFERENCES = 10


def evenly_spread(sample: Sample, rng: np.random.Generator) -> Check:
    """p-value of the Hopkins statistic for uniform rows in the bounding box. O(m log m) for few columns.

    Above 5 %, the rows cannot be distinguished from uniform rows. Columns are scaled; uniform rows stay uniform.
    """
    name = "evenly_spread"
    varying = sample.spread > 0
    if len(sample.X) < MIN_ROWS_HOPKINS or not varying.any():
        return not_measured(name, f"needs at least {MIN_ROWS_HOPKINS} rows that are not all equal")
    if varying.sum() > MAX_COLUMNS:
        return not_measured(name, f"not valid for more than {MAX_COLUMNS} columns, because of boundary effects")
    result = hopkins(sample.X[:, varying] / sample.spread[varying], rng)
    return with_finding(
        measured(name, result.p, UNIFORM_LEVEL, len(sample.X)),
        result.p > UNIFORM_LEVEL,
        "serious",
        "The rows cannot be distinguished from uniform random points in a box (Hopkins statistic "
        f"{result.value:.2f}, p = {result.p:.2g}). There is no sign of clusters.",
        "To find clusters, use other columns. If you only need compact groups of similar size, KMeans provides them.",
        hopkins=result.value,
        probes=result.probes,
    )


def one_cluster(sample: Sample, has_gaps: bool, rng: np.random.Generator, n_jobs: int | None) -> Check:
    """Smallest p-value of tests for a second cluster; above 1 % there is no evidence of one.

    The tests are dip tests of the first principal component and of the distances from 20 rows (viewers) to all others:
    in a single round cluster, these distances have one mode [1]_. If they are not significant and no gap divides the
    rows, the gap statistic is used: whether K-means with 2, 3, 5 or 8 clusters gains more than on uniform rows in a box
    along the principal axes. p-values are multiplied by the number of tests (Bonferroni). O(1000 d²), and in the worst
    case K-means of 11 tables of 500 rows.

    References
    ----------
    .. [1] A. Kalogeratos, A. Likas (2012), Dip-means: an incremental clustering method for estimating the number of
       clusters, NeurIPS.
    """
    name = "one_cluster"
    if len(sample.X) < MIN_ROWS or not sample.spread.any():
        return not_measured(name, f"needs at least {MIN_ROWS} rows that are not all equal")
    index = sample.draw(ROWS, rng)
    X = sample.X[index]
    component = dip_test(first_component(X))
    chosen = rng.choice(len(X), min(VIEWERS, len(X)), replace=False)
    viewers = [dip_test(np.delete(np.sqrt(((X - X[i]) ** 2).sum(axis=1)), i)) for i in chosen]
    p = min(1.0, 2 * min(component.p, len(viewers) * min(dip.p for dip in viewers)))
    if p > LEVEL and not has_gaps:
        p = min(p, _gap_p(sample, rng, n_jobs))
    return with_finding(
        measured(name, p, LEVEL, len(index)),
        p > LEVEL and not has_gaps,
        "warning",
        f"The rows look like a single cluster at the current scale of the columns (p = {p:.2g}, "
        f"{count(len(index), 'row')}). No test shows a second one: not the first principal component (dip "
        f"{component.value:.3f}), not the distances from {len(viewers)} rows, not the gap statistic.",
        "Do not rely on any number of clusters for these rows. Clusters may appear after scaling, or in other columns. "
        "For clusters that overlap, compare the BIC of GaussianMixture(1) and GaussianMixture(2).",
        dip=component.value,
        p_main_direction=component.p,
        split_viewers=sum(dip.p <= LEVEL for dip in viewers),
        viewers=len(viewers),
    )


def first_component(X: np.ndarray) -> np.ndarray:
    """Return the first principal component scores (n,), up to a constant factor."""
    X = X - X.mean(axis=0)
    if X.shape[1] <= len(X):
        return X @ np.linalg.eigh(X.T @ X)[1][:, -1]
    return np.linalg.eigh(X @ X.T)[1][:, -1]


def _gap_p(sample: Sample, rng: np.random.Generator, n_jobs: int | None) -> float:
    """Return the probability that log W of uniform rows decreases from K = 1 as much as that of the data, for any K.

    The decrease of one more reference, relative to the mean and standard deviation of B references, follows Student's
    t with B - 1 degrees of freedom.
    """
    index = sample.draw(GAP_ROWS, rng)
    ks = [k for k in GAP_KS if k <= count_distinct(sample.X[index]) // 2]
    if len(ks) < 2:
        return 0.0  # two or three distinct rows are clusters
    gap = gap_statistic(
        sample.X[index], ks, n_references=REFERENCES, reference="pca", sample_weight=sample.w[index], n_jobs=n_jobs,
        random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    reference_decrease = gap.reference_log_w[:, :1] - gap.reference_log_w[:, 1:]
    decrease = gap.log_w[0] - gap.log_w[1:]
    deviation = np.maximum(reference_decrease.std(axis=0, ddof=1) * np.sqrt(1 + 1 / REFERENCES), 1e-12)
    statistic = ((decrease - reference_decrease.mean(axis=0)) / deviation).max(initial=-np.inf)
    return min(1.0, len(decrease) * float(stdtr(REFERENCES - 1, -statistic)))


# The Hopkins statistic: whether rows are more clustered than uniform random points.


class Hopkins(NamedTuple):
    """The statistic H, and the probability that it is at least as large for uniform rows."""

    value: float
    p: float
    probes: int


def hopkins(X: np.ndarray, rng: np.random.Generator) -> Hopkins:
    r"""Compare distances from random places to the nearest row with distances from rows to the nearest other row.

    .. math:: H = \frac{\sum_i u_i^d}{\sum_i u_i^d + \sum_i w_i^d}

    :math:`u_i` is the distance from one of m uniform random places in the bounding box to the nearest row,
    :math:`w_i` the distance from one of m random rows to the nearest other row. At most a tenth of the rows is used,
    so that the distances are nearly independent. For uniform rows, the volumes :math:`u^d` and :math:`w^d` are all
    exponential with the same mean, and H is Beta(m, m). H is near 1 if the rows are clustered, and near 0 if they are
    regular, as on a lattice. A single round cluster also has H near 1: H does not show how many clusters there are.

    References
    ----------
    .. [1] B. Hopkins, J. G. Skellam (1954), A new method for determining the type of distribution of plant
       individuals, Annals of Botany 18, 213-227.
    """
    n, d = X.shape
    m = max(1, min(MAX_PROBES, n // 10))
    low, high = X.min(axis=0), X.max(axis=0)
    places = rng.uniform(low, high, (m, d))
    tree = cKDTree(X)
    u = tree.query(places)[0]
    w = tree.query(X[rng.choice(n, m, replace=False)], k=2)[0][:, 1]
    largest = max(u.max(), w.max())
    if largest == 0:
        return Hopkins(1.0, 0.0, m)
    volume_u, volume_w = ((u / largest) ** d).sum(), ((w / largest) ** d).sum()
    value = float(volume_u / (volume_u + volume_w))
    return Hopkins(value, float(betaincc(m, m, value)), m)
