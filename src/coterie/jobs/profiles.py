"""What clusters are like, column by column, as numbers to draw."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.jobs.columns import CATEGORIES
from coterie.jobs.prepare import Prepared
from coterie.jobs.table import Table
from coterie.plots import ProfilesDisplay
from coterie.plots.heatmap import MOST_COLUMNS
from coterie.report.html.displays import Shares, Spreads
from coterie.report.result import ClusterSummary

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CELLS, FEWEST_COLUMNS = 900, 12  # of the map of means: the more clusters, the fewer columns
STRIPS = 12  # columns whose spreads are drawn
TABLES = 6  # columns of categories that are drawn
VALUES = 12  # of a column of categories; others are taken together
MANY_VALUES = 60  # with more a column that took no part is no category
OTHERS = "all others"


def means(prepared: Prepared, clusters: tuple[ClusterSummary, ...], names: list[str]) -> ProfilesDisplay:
    """Means as the summaries have them, and how far they are from those of all rows."""
    columns = list(prepared.preparation.numbers)
    X = prepared.rows.X[:, : len(columns)]
    own = np.array([[one.means.get(name, np.nan) for name in columns] for one in clusters])
    own = own.reshape(len(clusters), len(columns))
    middle, deviation = np.nanmean(X, axis=0, dtype=np.float64), np.nanstd(X, axis=0, dtype=np.float64)
    scores = np.divide(own - middle, deviation, out=np.zeros_like(own), where=deviation > 0)
    scores = np.nan_to_num(scores)
    order = np.argsort(-np.abs(scores).max(axis=0, initial=0.0), kind="stable")
    sizes = np.array([one.rows for one in clusters])
    most = min(MOST_COLUMNS, max(FEWEST_COLUMNS, CELLS // len(clusters)))
    return ProfilesDisplay(names, sizes, columns, own, scores, np.sort(order[:most]))


def telling(profiles: ProfilesDisplay) -> NDArray[np.integer]:
    """Columns by how much clusters differ in them, the most telling first."""
    return np.argsort(-profiles.scores.std(axis=0), kind="stable")


def spreads(prepared: Prepared, codes: NDArray[np.integer], profiles: ProfilesDisplay) -> Spreads:
    """Quantiles of the columns that differ most."""
    columns = np.sort(telling(profiles)[:STRIPS])
    k = len(profiles.names)
    found = np.full((k, len(columns), len(QUANTILES)), np.nan)
    X = prepared.rows.X[:, columns]
    for i in range(k):
        rows = X[codes == i]
        for j, x in enumerate(rows.T):
            known = x[~np.isnan(x)]
            if len(known):
                found[i, j] = np.quantile(known, QUANTILES)
    chosen = [profiles.columns[j] for j in columns]
    return Spreads(profiles.names, profiles.sizes, chosen, len(profiles.columns), found)


def shares(
    source: Table, prepared: Prepared, codes: NDArray[np.integer], names: list[str], sizes: NDArray[np.integer]
) -> tuple[Shares, ...]:
    """Of columns of categories that took part, and of those that did not but have few values."""
    used = list(prepared.preparation.categories)
    others = [
        column.name
        for column in prepared.skipped
        if column.reason in CATEGORIES and 1 < source.typed[column.name].n_unique() <= MANY_VALUES
    ]
    kept = pl.Series(prepared.rows.kept)
    return tuple(
        _shares(source.typed[name].filter(kept), name in used, codes, names, sizes)
        for name in (*used, *others)[:TABLES]
    )


def _shares(
    column: pl.Series, used: bool, codes: NDArray[np.integer], names: list[str], sizes: NDArray[np.integer]
) -> Shares:
    texts = column.cast(pl.String).fill_null("(missing)")
    counts = texts.value_counts().sort(["count", column.name], descending=[True, False])
    values = counts[column.name].to_list()
    if len(values) > VALUES:
        values = [*values[: VALUES - 1], OTHERS]
    place = {value: j for j, value in enumerate(values)}
    j = np.array([place.get(text, len(values) - 1) for text in texts.to_list()])
    table = np.bincount(codes * len(values) + j, minlength=len(names) * len(values)).reshape(len(names), -1)
    return Shares(column.name, used, names, sizes, values, table / np.maximum(sizes, 1)[:, None])
