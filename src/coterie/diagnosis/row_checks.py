"""Checks of rows: duplicates, and distances that are nearly all equal."""

import numpy as np
from scipy.spatial.distance import pdist

from coterie.core.formatting import count
from coterie.diagnosis.findings import Check, measured, not_measured, percent, verb, with_finding
from coterie.diagnosis.sample import Sample
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
