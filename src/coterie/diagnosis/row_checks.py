"""Checks of rows: duplicates, distances that are nearly all equal, and outliers."""

import numpy as np
from scipy.spatial.distance import cdist, pdist
from scipy.special import stdtrit

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.diagnosis.findings import Check, join_names, measured, not_measured, percent, verb, with_finding
from coterie.diagnosis.sample import Partition, Sample
from coterie.preparation import DUPLICATE_SHARE

MAX_DIMENSION = 50.0  # distances in as many independent columns have a standard deviation of a tenth of their mean
ROWS_FOR_DISTANCES = 500


def duplicated_rows(sample: Sample) -> Check:
    """Share of rows that are equal to an earlier row, compared by 64-bit hashes. O(n d + n log n).

    Measured values hardly ever repeat. If one row in twenty is a duplicate, the values are counts or codes, or rows
    were copied.
    """
    if sample.n < 2:
        return not_measured("duplicated_rows", "needs at least two rows")
    share = sample.n_duplicates / sample.n
    n_distinct = sample.n - sample.n_duplicates
    return with_finding(
        measured("duplicated_rows", share, DUPLICATE_SHARE, sample.n),
        share > DUPLICATE_SHARE,
        "warning" if share > 0.5 else "note",
        f"{sample.n_duplicates:,} of {sample.n:,} rows ({percent(share)}) "
        f"{verb(sample.n_duplicates, 'is a duplicate', 'are duplicates')}: "
        f"{verb(n_distinct, 'there is', 'there are')} only {count(n_distinct, 'distinct row')}. "
        "Duplicate rows pull centers towards them.",
        "If the duplicates are errors, drop them. If not, fit the distinct rows with their counts as sample_weight: "
        "the clusters are the same, and the fit is faster.",
        distinct=n_distinct,
    )


def concentration(sample: Sample, rng: np.random.Generator) -> Check:
    r"""Intrinsic dimension :math:`\mu^2 / (2 \sigma^2)` of the distances between 500 rows. O(500² d).

    For d independent normal columns it is d. Their distances have a standard deviation of :math:`1 / \sqrt{2 d}` of
    their mean. For d = 50 this is a tenth: the nearest of a thousand rows is two thirds as far away as the average
    row. Clusters that are visible in distances make the distances vary more, and the intrinsic dimension smaller.

    References
    ----------
    .. [1] E. Chávez, G. Navarro, R. Baeza-Yates, J. L. Marroquín (2001), Searching in metric spaces, ACM Computing
       Surveys 33.
    """
    if len(sample.X) < 10 or not sample.spread.any():
        return not_measured("concentration", "needs at least ten rows that are not all equal")
    index = sample.draw(ROWS_FOR_DISTANCES, rng)
    distances = pdist(sample.X[index])
    if not distances.any():
        return not_measured("concentration", "needs rows that are not nearly all equal")
    spread = float(distances.std())
    n_varying = int(np.count_nonzero(sample.spread))
    value = min(float(distances.mean() ** 2 / (2 * spread**2)) if spread > 0 else np.inf, 1e9)
    contrast = spread / float(distances.mean())
    return with_finding(
        measured("concentration", value, MAX_DIMENSION, len(index)),
        value > MAX_DIMENSION and n_varying > 1,
        "warning",
        f"The distances between rows are nearly all equal: their standard deviation is only {percent(contrast)} of "
        f"their mean, as for {value:,.0f} independent columns ({count(len(index), 'row')}). Near and far rows hardly "
        "differ.",
        "Use fewer columns: select the relevant ones, or apply sklearn.decomposition.PCA. For texts and embeddings, "
        "whose directions carry the meaning, use SphericalKMeans. Or use GaussianMixture with covariance_type='EII' "
        "or 'diag'.",
        contrast=contrast,
    )


# Outliers, by robust statistics that a few outliers cannot change.

LEVEL = 0.001  # probability of an outlier in clean data, if the 2/3 powers of the distances were normal
MAD_TO_DEVIATION = 1.4826  # standard deviation of a normal distribution / its median absolute deviation
NORMAL_QUANTILE_90 = 1.2816
MAD_EFFICIENCY = 0.37  # relative efficiency of the median absolute deviation for normal data
MAX_NEIGHBOURS = 10
MAX_SHARE = 0.1  # more rows than this are not outliers: the clusters have another shape
MAX_CANDIDATES = 2000  # rows whose neighbours are counted


def outliers(sample: Sample, clusters: Partition | None) -> Check:
    r"""Share of rows that are far from their cluster and from other rows. O(m d + c m d) for c candidates.

    Columns are divided by their median absolute deviation about the median of the cluster. The 2/3 power of the
    distance to this median is nearly normal, for sums of squares of any normal columns (Wilson & Hilferty 1931). A row
    is far away if its robust z-score exceeds the quantile that any of m clean rows exceeds with a probability of 0.1 %.
    It is an outlier if, in addition, hardly any rows lie within 1.5 times the median radius of its cluster: otherwise
    it may be part of a cluster that was not separated. Rows of clusters that are too small for medians are assigned to
    the nearest larger cluster.
    """
    m = len(sample.X)
    if m < 20 or not sample.spread.any():
        return not_measured("outliers", "needs at least 20 rows that are not all equal")
    z, limit, is_isolated = _scores(sample, np.zeros(m, np.int64) if clusters is None else clusters.codes)
    index = np.flatnonzero(is_isolated)
    index = index[np.argsort(-z[index], kind="stable")]
    squares = sample.w * ((sample.X - np.median(sample.X, axis=0)) ** 2).sum(axis=1)
    share_of_squares = float(squares[index].sum() / max(squares.sum(), 1e-300))
    ratio = float((z / limit).max())
    rows = [str(sample.rows[i]) for i in index]
    return with_finding(
        measured("outliers", len(index) / m, 0.0, m),
        0 < len(index) <= MAX_SHARE * m,
        "serious" if share_of_squares > 0.5 else "warning" if share_of_squares > 0.05 else "note",
        # The list of rows must end the sentence: reports replace it by row numbers of the input file.
        f"{len(index):,} of {sample.description} {verb(len(index), 'lies', 'lie')} far from all clusters. The largest "
        f"robust z-score is {z.max():.1f}, {ratio:.1f} times the limit. "
        f"{verb(len(index), 'This outlier accounts', 'The outliers account')} for {percent(share_of_squares)} of all "
        f"squared distances to the median: {verb(len(index), 'row', 'rows')} {join_names(rows)}.",
        "Check these rows, and drop them if they are errors. Or use KMedians or KMedoids, whose centers a few rows "
        "hardly change.",
        indices=[int(sample.rows[i]) for i in index[:1000]],
        share_of_squares=share_of_squares,
    )


def _scores(sample: Sample, codes: Array) -> tuple[Array, Array, Array]:
    """Return the robust z-score of each row, the limit for outliers, and whether the row is above it and isolated."""
    m = len(sample.X)
    codes = _merge_small_clusters(sample.X, codes)
    z, limit, is_isolated = np.zeros(m), np.full(m, np.inf), np.zeros(m, bool)
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        center, unit = _center_and_unit(sample.X[members])
        radius = np.sqrt((((sample.X[members] - center) / unit) ** 2).sum(axis=1))
        z[members] = _robust_z_scores(radius ** (2 / 3))
        limit[members] = -stdtrit(max(3.0, MAD_EFFICIENCY * len(members)), LEVEL / m)
        candidates = members[z[members] > limit[members]][:MAX_CANDIDATES]
        X, near = sample.X / unit, (1.5 * float(np.median(radius))) ** 2
        for i in candidates:  # hardly any other rows are near: fewer than ten, or 1 in 200 rows of small data
            n_near = np.count_nonzero(((X - X[i]) ** 2).sum(axis=1) <= near) - 1
            is_isolated[i] = n_near < min(MAX_NEIGHBOURS, max(1, m // 200))
    return z, limit, is_isolated


def _merge_small_clusters(X: Array, codes: Array) -> Array:
    """Assign rows of clusters that are too small for medians, and rows in no cluster, to the nearest larger cluster."""
    sizes = np.bincount(codes + 1)[1:]
    large = np.flatnonzero(sizes >= max(20, len(X) // 100))
    if len(large) == 0:
        return np.zeros(len(X), np.int64)
    medians = np.array([np.median(X[codes == code], axis=0) for code in large])
    is_small = ~np.isin(codes, large)
    merged = codes.copy()
    if is_small.any():
        merged[is_small] = large[cdist(X[is_small], medians).argmin(axis=1)]
    return merged


def _center_and_unit(X: Array) -> tuple[Array, Array]:
    """Return the median and a robust standard deviation of each column.

    If half of the values are equal, the median absolute deviation is 0. The standard deviation is used instead, but at
    least the median of the other columns: a rare 1 among zeros is not an outlier.
    """
    center = np.median(X, axis=0)
    unit = MAD_TO_DEVIATION * np.median(np.abs(X - center), axis=0)
    typical = float(np.median(unit[unit > 0])) if unit.any() else 0.0
    unit = np.where(unit > 0, unit, np.maximum(X.std(axis=0), typical))
    return center, np.where(unit > 0, unit, 1.0)


def _robust_z_scores(values: Array) -> Array:
    """Return robust z-scores; the scale is the larger one of the median absolute deviation and the 90 % quantile."""
    median, quantile_90 = np.quantile(values, [0.5, 0.9])
    unit = max(MAD_TO_DEVIATION * np.median(np.abs(values - median)), (quantile_90 - median) / NORMAL_QUANTILE_90)
    return (values - median) / unit if unit > 0 else np.zeros(len(values))
