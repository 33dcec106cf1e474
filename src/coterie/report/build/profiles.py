"""Profiles of clusters: means, quantiles and shares of categories, column by column."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.data.row_sample import sample_rows
from coterie.data.tables.reader import Table
from coterie.plots import ProfilesDisplay
from coterie.preparation.column_selection import CATEGORIES
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.scaling import quantiles
from coterie.report.build.cluster_moments import observed_moments
from coterie.report.html.charts.profiles import MANY_COLUMNS, MISSING
from coterie.report.html.report import Shares, Spreads
from coterie.report.results import ClusterSummary

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CELLS, MIN_COLUMNS = 900, 12  # of the heatmap of means: the more clusters, the fewer columns
TABLE_CELLS = 3_000  # the same of many columns, whose heatmap is a table that can be searched
SPREAD_COLUMNS = 12  # columns whose quantiles are drawn
SHARE_COLUMNS = 6  # categorical columns that are drawn
VALUES = 12  # of a categorical column; others are merged
MANY_VALUES = 60  # an unused column with more values is not categorical
OTHERS = "all others"
MANY_ROWS, MIN_ROWS = 200_000, 1_000  # rows whose quantiles are computed: of all clusters, and of each at least


def means(
    prepared: PreparedTable, codes: NDArray[np.integer], clusters: tuple[ClusterSummary, ...], names: list[str],
    threads: int | None = None,
) -> ProfilesDisplay:  # fmt: skip
    """Means of clusters, and their distances from the means of all rows in standard deviations."""
    columns = list(prepared.preparation.numbers)
    cluster_means = np.array([[one.means.get(name, np.nan) for name in columns] for one in clusters])
    cluster_means = cluster_means.reshape(len(clusters), len(columns))
    scores = observed_moments(prepared, codes, len(clusters), threads)[1][:, : len(columns)]
    order = np.argsort(-np.abs(scores).max(axis=0, initial=0.0), kind="stable")
    sizes = np.array([one.rows for one in clusters])
    is_many = len(columns) >= MANY_COLUMNS
    n_shown = max(MIN_COLUMNS, (TABLE_CELLS if is_many else CELLS) // len(clusters))
    shown = order[:n_shown] if is_many else np.sort(order[:n_shown])
    labels = [prepared.preparation.unit_name(name) for name in columns]
    missing = sum(n for one in clusters for name, n in one.missing.items() if name in columns)
    is_weighted = prepared.weight is not None
    return ProfilesDisplay(names, sizes, labels, cluster_means, scores, shown, is_weighted, missing)


def by_difference(profiles: ProfilesDisplay) -> NDArray[np.integer]:
    """Columns sorted by how much clusters differ in them, the largest difference first."""
    return np.argsort(-profiles.scores.std(axis=0), kind="stable")


def spreads(prepared: PreparedTable, codes: NDArray[np.integer], profiles: ProfilesDisplay) -> Spreads:
    """Quantiles of the columns that differ most; of large clusters those of a random sample."""
    columns = np.sort(by_difference(profiles)[:SPREAD_COLUMNS])
    k = len(profiles.names)
    max_rows = max(MIN_ROWS, MANY_ROWS // k) if len(codes) > MANY_ROWS else len(codes)
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.searchsorted(codes[order], np.arange(1, k)))
    samples = [cluster[sample_rows(len(cluster), max_rows)] for cluster in members]
    rows, starts = np.concatenate(samples), np.cumsum([0, *map(len, samples)])
    X = prepared.observed[np.ix_(rows, columns)]
    result = np.empty((k, len(columns), len(QUANTILES)))
    weight = None if prepared.weight is None else prepared.weight[rows]
    for i, (start, stop) in enumerate(pairwise(starts.tolist())):
        result[i] = quantiles(X[start:stop], list(QUANTILES), None if weight is None else weight[start:stop]).T
    names = [profiles.columns[j] for j in columns]
    sampled = max_rows if (profiles.sizes > max_rows).any() else None
    return Spreads(profiles.names, profiles.sizes, names, len(profiles.columns), result, sampled)


def shares(
    table: Table, prepared: PreparedTable, codes: NDArray[np.integer], names: list[str], sizes: NDArray[np.integer]
) -> tuple[Shares, ...]:
    """Shares of values in clusters: of categorical columns that were used, and of others with few values."""
    used = list(prepared.preparation.categories)
    unused = [column.name for column in prepared.skipped if column.reason in CATEGORIES]
    shown = (*used, *(few_values(table, unused) if len(used) < SHARE_COLUMNS else ()))[:SHARE_COLUMNS]
    weight = np.ones(len(codes)) if prepared.weight is None else prepared.weight
    table_weight = np.zeros(table.n_rows)
    table_weight[prepared.rows.row_mask] = weight
    counts = _counts(table, shown, prepared.rows.expand(codes), table_weight)
    mass: NDArray[np.float64] = np.bincount(codes, weight, len(names)).astype(np.float64)
    result = []
    for name in shown:
        each = _shares(name, counts[name], name in used, names, sizes, mass)
        if table.schema[name].is_numeric():  # values in ascending order, missing and other values last
            numbers = [float(value) if value not in (MISSING, OTHERS) else np.inf for value in each.values]
            order = np.argsort(numbers, kind="stable")
            each = replace(each, values=[each.values[j] for j in order], shares=each.shares[:, order])
        result.append(each)
    return tuple(result)


def few_values(table: Table, columns: Sequence[str]) -> list[str]:
    """The columns with at least two and at most `MANY_VALUES` distinct values, in one pass over the table."""
    distinct: dict[str, set[object]] = {name: set() for name in columns}
    for batch in table.batches(columns) if columns else ():
        candidates = [name for name, values in distinct.items() if len(values) <= MANY_VALUES]
        if not candidates:
            break
        for name in candidates:
            distinct[name].update(batch[name].unique().head(MANY_VALUES + 1).to_list())
    return [name for name, values in distinct.items() if 1 < len(values) <= MANY_VALUES]


def _counts(
    table: Table, columns: Sequence[str], codes: NDArray[np.integer], weight: NDArray[np.float64]
) -> dict[str, pl.DataFrame]:
    """Total weight of the rows of each cluster with each value of a column, without rows of code -1."""
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in columns}
    start = 0
    for batch in table.batches(columns) if columns else ():
        rows = slice(start, start + batch.height)
        code, mass = pl.Series("code", codes[rows]), pl.Series("rows", weight[rows])
        start += batch.height
        for name in columns:
            value = batch[name].cast(pl.String).fill_null(MISSING).alias("value")
            clustered = pl.DataFrame([value, code, mass]).filter(code >= 0)
            parts[name].append(clustered.group_by("value", "code").agg(pl.col("rows").sum()))
    return {name: pl.concat(each).group_by("value", "code").agg(pl.col("rows").sum()) for name, each in parts.items()}


def _shares(
    column: str, counts: pl.DataFrame, used: bool, names: list[str], sizes: NDArray[np.integer],
    mass: NDArray[np.float64],
) -> Shares:  # fmt: skip
    by_value = counts.group_by("value").agg(pl.col("rows").sum()).sort(["rows", "value"], descending=[True, False])
    values = [value for value in by_value["value"] if value != MISSING]
    if len(values) > VALUES:
        values = [*values[: VALUES - 1], OTHERS]
    n_present = len(values)
    values += [MISSING] if MISSING in by_value["value"] else []
    index = counts["value"].replace_strict(values, range(len(values)), default=n_present - 1, return_dtype=pl.Int64)
    totals = np.zeros((len(names), len(values)))
    np.add.at(totals, (counts["code"].to_numpy(), index.to_numpy()), counts["rows"].to_numpy())
    whole = np.repeat(mass[:, np.newaxis], len(values), axis=1)
    whole[:, :n_present] = totals[:, :n_present].sum(axis=1, keepdims=True)
    return Shares(column, used, names, sizes, values, totals / np.where(whole > 0, whole, 1.0))
