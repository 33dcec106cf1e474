"""Checks of columns: missing values, different scales, constant and correlated columns."""

import numpy as np

from coterie.core.formatting import count
from coterie.diagnosis.findings import Check, join_names, measured, not_measured, percent, verb, with_finding
from coterie.diagnosis.sample import Partition, Sample

MAX_SPREAD_RATIO = 10.0  # at this ratio, the narrower of two columns contributes 1 % of a squared distance
MAX_SHARE = 0.99
MAX_CORRELATION = 0.999  # above this |r|, less than 0.2 % of the variance of a column is not explained by the other
MAX_PRODUCTS = 1 << 32  # limit on the multiplications for correlations


def missing_values(sample: Sample) -> Check:
    """Share of rows with missing values. O(n d)."""
    total = sample.n + sample.n_incomplete
    share = sample.n_incomplete / total if total else 0.0
    affected = np.flatnonzero(sample.n_missing)
    order = affected[np.argsort(-sample.n_missing[affected], kind="stable")]
    counts = {sample.names[j]: int(sample.n_missing[j]) for j in order}
    listing = join_names([f"{name}: {number:,}" for name, number in counts.items()])
    rest = (
        f"All other checks use only the {count(sample.n, 'complete row')}."
        if sample.n
        else "No complete row is left, so no other check is possible."
    )
    return with_finding(
        measured("missing_values", share, 0.0, total),
        share > 0,
        "serious" if share > 0.5 else "warning",
        f"{sample.n_incomplete:,} of {count(total, 'row')} ({percent(share)}) "
        f"{verb(sample.n_incomplete, 'has', 'have')} missing values ({listing}). {rest}",
        "Use a model that handles missing values: KMeans(missing='ignore'), GaussianMixture(missing='ignore') or "
        "KMedoids(metric='gower'). Or drop these rows, or impute the values (sklearn.impute).",
        columns=counts,
    )


def unscaled_columns(sample: Sample, clusters: Partition | None) -> Check:
    """Ratio of the largest standard deviation to the smallest. O(n d).

    A column contributes to squared distances in proportion to its variance: at a ratio of 10, the narrow column
    contributes 1 % as much as the wide one. A column is also wide if clusters lie far apart along it, which is no
    problem. The standard deviations within clusters must therefore differ as much. K clusters that are intervals of a
    column reduce its standard deviation within clusters by a factor of K; this is allowed for.
    """
    varying = np.flatnonzero(sample.spread)
    if len(varying) < 2:
        return not_measured("unscaled_columns", "needs at least two columns that vary")
    spread = sample.spread[varying]
    wide, narrow = varying[spread.argmax()], varying[spread.argmin()]
    ratio = float(sample.spread[wide] / sample.spread[narrow])
    within = _spread_within_clusters(clusters, wide)
    faint = int(np.count_nonzero(spread < spread.max() / MAX_SPREAD_RATIO))
    return with_finding(
        measured("unscaled_columns", ratio, MAX_SPREAD_RATIO, sample.n),
        bool(ratio > MAX_SPREAD_RATIO and (within is None or within[wide] > MAX_SPREAD_RATIO * within[narrow])),
        "note" if 2 * faint < len(varying) else "serious" if ratio > MAX_SPREAD_RATIO**2 else "warning",
        f"The standard deviation of {sample.names[wide]} is {ratio:,.0f} times that of {sample.names[narrow]}. In "
        f"squared distances, {sample.names[narrow]} counts only {percent(ratio**-2)} as much as {sample.names[wide]}; "
        f"{faint:,} of {count(len(varying), 'column')} {verb(faint, 'counts', 'count')} less than 1% as much.",
        "If the columns have different units, standardise them first (sklearn.preprocessing.StandardScaler), or weight "
        "them (KMeans(metric_weights=1 / X.var(axis=0))). GaussianMixture with covariance_type='diag' or 'full' does "
        "not depend on the scale of the columns.",
        widest=sample.names[wide],
        narrowest=sample.names[narrow],
        faint=faint,
        spread=dict(zip(sample.names, (sample.spread / sample.spread[wide]).tolist(), strict=True)),
    )


def dominating_column(sample: Sample, clusters: Partition | None) -> Check:
    """Largest share of one column in the total variance, and so in squared distances. O(n d).

    Above 99 %, all other columns together contribute as much as one column with a tenth of its standard deviation. As
    for `unscaled_columns`, the same must be true within clusters.
    """
    if np.count_nonzero(sample.spread) < 2:
        return not_measured("dominating_column", "needs at least two columns that vary")
    shares = sample.spread**2 / (sample.spread**2).sum()
    top = int(shares.argmax())
    within = _spread_within_clusters(clusters, top)
    return with_finding(
        measured("dominating_column", shares[top], MAX_SHARE, sample.n),
        bool(shares[top] > MAX_SHARE and (within is None or within[top] ** 2 > MAX_SHARE * within @ within)),
        "warning",
        f"{sample.names[top]} alone accounts for {shares[top]:.1%} of all squared distances. The clusters will be "
        "intervals of this column.",
        "Standardise the columns (sklearn.preprocessing.StandardScaler), or lower the weight of this column "
        "(KMeans(metric_weights=...)). If only this column matters, cluster it alone: KMeans then finds the exact "
        "optimum.",
        column=sample.names[top],
    )


def constant_columns(sample: Sample) -> Check:
    """Largest share of a single value in a column: of all rows, or of the sample. O(n d + m d log m)."""
    codes = [np.unique(column, return_inverse=True)[1].ravel() for column in sample.X.T]
    shares = np.array([np.bincount(each, sample.w).max() / sample.w.sum() for each in codes])
    shares = np.where(sample.spread == 0, 1.0, np.minimum(shares, np.nextafter(1.0, 0)))
    flat = np.flatnonzero(shares > MAX_SHARE)
    constant = [sample.names[j] for j in flat if shares[j] == 1]
    nearly = [sample.names[j] for j in flat if shares[j] < 1]
    parts = [f"constant: {join_names(constant)}"] * bool(constant)
    parts += [f"one value in more than 99% of the rows: {join_names(nearly)}"] * bool(nearly)
    return with_finding(
        measured("constant_columns", shares.max(initial=0.0), MAX_SHARE, len(sample.X)),
        len(flat) > 0 and sample.n > 1,
        "warning" if len(constant) == len(shares) else "note",
        f"{len(flat):,} of {count(len(shares), 'column')} {verb(len(flat), 'contains', 'contain')} almost no "
        f"information ({'; '.join(parts)}).",
        "Drop these columns. They do not help to separate clusters, standardising inflates their small variation, and "
        "GaussianMixture may get singular covariances.",
        constant=constant,
        nearly=nearly,
    )


def correlated_columns(sample: Sample) -> Check:
    """Largest absolute correlation of two columns. O(m d²)."""
    varying = np.flatnonzero(sample.spread)
    if len(varying) < 2 or len(sample.X) < 3:
        return not_measured("correlated_columns", "needs at least three rows and two columns that vary")
    rows = max(3, min(len(sample.X), MAX_PRODUCTS // len(varying) ** 2))
    X, w = sample.X[:rows, varying], sample.w[:rows]
    X = X - w @ X / w.sum()
    length = np.sqrt(w @ X**2)
    nonzero = length > 0
    X = X[:, nonzero] / length[nonzero]
    names = [sample.names[j] for j in varying[nonzero]]
    r = np.abs(np.triu(X.T @ (w[:, None] * X), 1))
    pairs = np.argwhere(r > MAX_CORRELATION)
    listing = [f"{names[i]} and {names[j]}" for i, j in pairs[np.argsort(-r[tuple(pairs.T)], kind="stable")]]
    value = min(float(r.max(initial=0.0)), 1.0)
    return with_finding(
        measured("correlated_columns", value, MAX_CORRELATION, rows),
        len(pairs) > 0 and rows > 3,
        "note",
        f"{count(len(pairs), 'pair')} of columns {verb(len(pairs), 'is', 'are')} almost perfectly correlated (|r| up "
        f"to {value:.4f}): {join_names(listing, 3)}. Their common information counts twice in distances.",
        "Drop one column of each pair, or halve the weight of both (KMeans(metric_weights=...)).",
        pairs=[[names[i], names[j]] for i, j in pairs[:100]],
    )


def _spread_within_clusters(clusters: Partition | None, wide: int) -> np.ndarray | None:
    """Return the standard deviations within clusters, that of column `wide` times the number of clusters."""
    if clusters is None:
        return None
    spread = np.sqrt(clusters.variance_within)
    spread[wide] *= clusters.k
    return spread
