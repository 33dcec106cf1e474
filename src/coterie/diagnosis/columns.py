"""Columns: missing values, units that do not compare, columns that say nothing or the same twice."""

from __future__ import annotations

import numpy as np

from coterie.diagnosis.clusters import Clusters
from coterie.diagnosis.findings import Check, count, judge, listed, not_measured, percent, verb
from coterie.diagnosis.table import Array, Table

TEN_TIMES = 10.0  # the spread at which the narrower of two columns is worth 1 % of a squared distance
ALL_BUT_ONE_PERCENT = 0.99
ALMOST_ONE = 0.999  # |r| beyond which a column tells less than 0.2 % of its variance that another does not
PRODUCTS = 1 << 32  # multiplications that correlations may take


def missing_values(table: Table) -> Check:
    """Rows with holes. O(n d)."""
    total = table.n + table.left_out
    share = table.left_out / total if total else 0.0
    where = np.flatnonzero(table.holes)
    worst = where[np.argsort(-table.holes[where], kind="stable")]
    counts = {table.names[j]: int(table.holes[j]) for j in worst}
    return judge(
        "missing_values",
        share,
        0.0,
        total,
        share > 0,
        "serious" if share > 0.5 else "warning",
        f"{count(table.left_out, 'row')} of {total:,} ({percent(share)}) {verb(table.left_out, 'has', 'have')} missing "
        f"values ({listed([f'{name}: {number:,}' for name, number in counts.items()])}); all else here is about the "
        f"{table.n:,} complete ones.",
        "KMeans(missing='ignore') and GaussianMixture(missing='ignore') go by what is there, KMedoids(metric='gower') "
        "too; or drop the rows, or fill them in (sklearn.impute).",
        columns=counts,
    )


def unscaled_columns(table: Table, clusters: Clusters | None) -> Check:
    """Ratio of the largest standard deviation to the smallest. O(n d).

    A column counts in squared distances as its variance: at a ratio of 10 the narrow one is worth 1 % of the wide one.
    Clusters far apart along a column make it wide too, and rightly: so their own widths must differ as much, after
    allowing for K clusters that are intervals of it, which make it K times as narrow.
    """
    varying = np.flatnonzero(table.spread)
    if len(varying) < 2:
        return not_measured("unscaled_columns", "needs two columns that vary")
    spread = table.spread[varying]
    wide, narrow = varying[spread.argmax()], varying[spread.argmin()]
    ratio = float(table.spread[wide] / table.spread[narrow])
    own = _own_spread(table, clusters, wide)
    faint = int(np.count_nonzero(spread < spread.max() / TEN_TIMES))
    return judge(
        "unscaled_columns",
        ratio,
        TEN_TIMES,
        table.n,
        bool(ratio > TEN_TIMES and (own is None or own[wide] > TEN_TIMES * own[narrow])),
        "note" if 2 * faint < len(varying) else "serious" if ratio > TEN_TIMES**2 else "warning",
        f"The spread of {table.names[wide]} is {ratio:,.0f} times that of {table.names[narrow]}: squared distances see "
        f"{percent(ratio**-2)} as much of the second, and of {faint} of {count(len(varying), 'column')} less than 1% "
        "of what they see of the widest.",
        "If their units do not compare, scale them (sklearn.preprocessing.StandardScaler) before KMeans, or weigh them "
        "(KMeans(metric_weights=1 / X.var(axis=0))); GaussianMixture with 'diag' or 'full' covariances does not mind.",
        widest=table.names[wide],
        narrowest=table.names[narrow],
        faint=faint,
        spread=dict(zip(table.names, _plain(table.spread / table.spread[wide]), strict=True)),
    )


def dominating_column(table: Table, clusters: Clusters | None) -> Check:
    """Share of all variance, and so of squared distances, in one column. O(n d).

    Beyond 99 % all others together are worth what one column of a tenth of its spread is. As with `unscaled_columns`
    it must be so within clusters, too.
    """
    if np.count_nonzero(table.spread) < 2:
        return not_measured("dominating_column", "needs two columns that vary")
    shares = table.spread**2 / (table.spread**2).sum()
    top = int(shares.argmax())
    own = _own_spread(table, clusters, top)
    return judge(
        "dominating_column",
        shares[top],
        ALL_BUT_ONE_PERCENT,
        table.n,
        bool(shares[top] > ALL_BUT_ONE_PERCENT and (own is None or own[top] ** 2 > ALL_BUT_ONE_PERCENT * own @ own)),
        "warning",
        f"{table.names[top]} alone makes {shares[top]:.1%} of all squared distances: clusters will be intervals of it.",
        "Scale the columns (sklearn.preprocessing.StandardScaler), lower its weight (KMeans(metric_weights=...)), or "
        "cluster that column alone, which KMeans does exactly.",
        column=table.names[top],
    )


def constant_columns(table: Table) -> Check:
    """Columns of which one value is in all rows, or in 99 % of the sample. O(n d + m d log m)."""
    held = np.array([_most_frequent(column, table.w) for column in table.X.T])
    held = np.where(table.spread == 0, 1.0, np.minimum(held, np.nextafter(1.0, 0)))
    flat = np.flatnonzero(held > ALL_BUT_ONE_PERCENT)
    constant = [table.names[j] for j in flat if held[j] == 1]
    nearly = [table.names[j] for j in flat if held[j] < 1]
    told = [f"constant: {listed(constant)}"] * bool(constant)
    told += [f"one value in over 99% of the rows: {listed(nearly)}"] * bool(nearly)
    return judge(
        "constant_columns",
        held.max(initial=0.0),
        ALL_BUT_ONE_PERCENT,
        len(table.X),
        len(flat) > 0 and table.n > 1,
        "warning" if len(constant) == len(held) else "note",
        f"{count(len(flat), 'column')} of {len(held)} {verb(len(flat), 'says', 'say')} next to nothing "
        f"({'; '.join(told)}).",
        "Drop them: distances do not need them, scaling blows up what little they vary, and GaussianMixture meets "
        "singular covariances in them.",
        constant=constant,
        nearly=nearly,
    )


def correlated_columns(table: Table) -> Check:
    """Largest correlation of two columns, either way. O(m d²)."""
    varying = np.flatnonzero(table.spread)
    if len(varying) < 2 or len(table.X) < 3:
        return not_measured("correlated_columns", "needs three rows and two columns that vary")
    rows = max(3, min(len(table.X), PRODUCTS // len(varying) ** 2))
    X, w = table.X[:rows, varying], table.w[:rows]
    X = X - w @ X / w.sum()
    length = np.sqrt(w @ X**2)
    alive = length > 0
    X = X[:, alive] / length[alive]
    names = [table.names[j] for j in varying[alive]]
    r = np.abs(np.triu(X.T @ (w[:, None] * X), 1))
    pairs = np.argwhere(r > ALMOST_ONE)
    told = [f"{names[i]} and {names[j]}" for i, j in pairs[np.argsort(-r[tuple(pairs.T)], kind="stable")]]
    value = min(float(r.max(initial=0.0)), 1.0)
    return judge(
        "correlated_columns",
        value,
        ALMOST_ONE,
        rows,
        len(told) > 0 and rows > 3,
        "note",
        f"{count(len(told), 'pair')} of columns {verb(len(told), 'says', 'say')} the same (|r| up to {value:.4f}): "
        f"{listed(told, 3)}. What they say counts twice in distances.",
        "Drop one of each, or give both half the weight (KMeans(metric_weights=...)).",
        pairs=[[names[i], names[j]] for i, j in pairs[:100]],
    )


def _own_spread(table: Table, clusters: Clusters | None, wide: int) -> Array | None:
    """Widths of the columns within clusters, that of the widest times their number."""
    if clusters is None:
        return None
    widths = np.sqrt(clusters.within)
    widths[wide] *= clusters.k
    return widths


def _most_frequent(column: Array, w: Array) -> float:
    """Share of the weight in the most frequent value."""
    _, place = np.unique(column, return_inverse=True)
    return float(np.bincount(place.ravel(), w).max() / w.sum())


def _plain(values: Array) -> list[float]:
    return [float(value) for value in values]
