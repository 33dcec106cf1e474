"""What clusters are like, column by column, as numbers to draw."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.data.picking import some
from coterie.jobs import table
from coterie.jobs.columns import CATEGORIES
from coterie.jobs.passes import moments
from coterie.jobs.prepare import Prepared
from coterie.jobs.scaling import quantiles
from coterie.jobs.space import Space
from coterie.jobs.table import Table
from coterie.plots import ProfilesDisplay
from coterie.plots.profiles_plot import MAX_COLUMNS
from coterie.report.html.displays import Shares, Spreads
from coterie.report.result import ClusterSummary

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CELLS, FEWEST_COLUMNS = 900, 12  # of the map of means: the more clusters, the fewer columns
STRIPS = 12  # columns whose spreads are drawn
TABLES = 6  # columns of categories that are drawn
VALUES = 12  # of a column of categories; others are taken together
MANY_VALUES = 60  # with more a column that took no part is no category
OTHERS, MISSING = "all others", "(missing)"
MANY_ROWS, FEWEST_ROWS = 200_000, 1_000  # whose quantiles are taken: of all clusters together, of each at least


def means(prepared: Prepared, space: Space, clusters: tuple[ClusterSummary, ...], names: list[str]) -> ProfilesDisplay:
    """Means as the summaries have them, and how far they are from those of all rows."""
    columns = list(prepared.preparation.numbers)
    shift, spread = (each[: len(columns)] for each in prepared.preparation.units)
    own = np.array([[one.means.get(name, np.nan) for name in columns] for one in clusters])
    own = own.reshape(len(clusters), len(columns))
    middle, deviation = (each[: space.own] * spread for each in _of_all(prepared, space))
    middle += shift
    scores = np.divide(own - middle, deviation, out=np.zeros_like(own), where=deviation > 0)
    scores = np.nan_to_num(scores)
    order = np.argsort(-np.abs(scores).max(axis=0, initial=0.0), kind="stable")
    sizes = np.array([one.rows for one in clusters])
    most = min(MAX_COLUMNS, max(FEWEST_COLUMNS, CELLS // len(clusters)))
    return ProfilesDisplay(names, sizes, columns, own, scores, np.sort(order[:most]))


def _of_all(prepared: Prepared, space: Space) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and deviations of the columns of S; the space has those of rows that all weigh the same."""
    if prepared.weight is None:
        return space.middle, space.deviation
    found = moments(prepared.rows.S, holes=prepared.rows.holes, weight=prepared.weight, threads=space.threads)
    return found.mean, np.sqrt(found.variance)


def telling(profiles: ProfilesDisplay) -> NDArray[np.integer]:
    """Columns by how much clusters differ in them, the most telling first."""
    return np.argsort(-profiles.scores.std(axis=0), kind="stable")


def spreads(prepared: Prepared, codes: NDArray[np.integer], profiles: ProfilesDisplay) -> Spreads:
    """Quantiles of the columns that differ most; of large clusters, where rows are many, those of drawn rows."""
    columns = np.sort(telling(profiles)[:STRIPS])
    k = len(profiles.names)
    most = max(FEWEST_ROWS, MANY_ROWS // k) if len(codes) > MANY_ROWS else len(codes)
    rows, starts = _of_each(codes, k, most)
    X = prepared.rows.S[np.ix_(rows, columns)]
    shift, spread = (each[columns] for each in prepared.preparation.units)
    found = np.full((k, len(columns), len(QUANTILES)), np.nan)
    weight = None if prepared.weight is None else prepared.weight[rows]
    for i, (start, stop) in enumerate(pairwise([*starts.tolist(), len(rows)])):
        w = None if weight is None else weight[start:stop]
        for j, x in enumerate(X[start:stop].T.astype(np.float64)):
            counts = ~np.isnan(x) if w is None else ~np.isnan(x) & (w > 0)
            if counts.any():
                own = quantiles(x[counts, np.newaxis], list(QUANTILES), None if w is None else w[counts])
                found[i, j] = own[:, 0] * spread[j] + shift[j]
    chosen = [profiles.columns[j] for j in columns]
    drawn = most if (profiles.sizes > most).any() else None
    return Spreads(profiles.names, profiles.sizes, chosen, len(profiles.columns), found, drawn)


def _of_each(codes: NDArray[np.integer], k: int, most: int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """No more than `most` rows of each cluster, cluster by cluster, and where those of each start."""
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.searchsorted(codes[order], np.arange(1, k)))
    kept = [own[some(len(own), most)] for own in members]
    return np.concatenate(kept), np.cumsum([0, *map(len, kept[:-1])])


def shares(
    source: Table, prepared: Prepared, codes: NDArray[np.integer], names: list[str], sizes: NDArray[np.integer]
) -> tuple[Shares, ...]:
    """Of columns of categories that took part, and of those that did not but have few values."""
    used = list(prepared.preparation.categories)
    others = [column.name for column in prepared.skipped if column.reason in CATEGORIES]
    shown = (*used, *(few_values(source, others) if len(used) < TABLES else ()))[:TABLES]
    weight = np.ones(len(codes)) if prepared.weight is None else prepared.weight
    everywhere = np.zeros(source.rows)
    everywhere[prepared.rows.kept] = weight
    counts = _counts(source, shown, table.spread(codes, prepared.rows.kept), everywhere)
    mass: NDArray[np.float64] = np.bincount(codes, weight, len(names)).astype(np.float64)
    found = (_shares(name, counts[name], name in used, names, sizes, mass) for name in shown)
    return tuple(_by_number(each) if source.schema[each.column].is_numeric() else each for each in found)


def _by_number(shares: Shares) -> Shares:
    """The values of a column of numbers in their own order; what is none comes last."""
    sizes = [float(value) if value not in (MISSING, OTHERS) else np.inf for value in shares.values]
    order = np.argsort(sizes, kind="stable")
    return replace(shares, values=[shares.values[j] for j in order], shares=shares.shares[:, order])


def few_values(source: Table, columns: Sequence[str]) -> list[str]:
    """Those of the columns that have two values at least and few at most, by one look at all rows."""
    found: dict[str, set[object]] = {name: set() for name in columns}
    for frame in source.batches(columns) if columns else ():
        looked_at = [name for name, values in found.items() if len(values) <= MANY_VALUES]
        if not looked_at:
            break
        for name in looked_at:
            found[name].update(frame[name].unique().head(MANY_VALUES + 1).to_list())
    return [name for name, values in found.items() if 1 < len(values) <= MANY_VALUES]


def _counts(
    source: Table, columns: Sequence[str], codes: NDArray[np.integer], weight: NDArray[np.float64]
) -> dict[str, pl.DataFrame]:
    """What the rows of each cluster weigh that have each value of a column; rows of code -1 are left out."""
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in columns}
    start = 0
    for frame in source.batches(columns) if columns else ():
        here = slice(start, start + frame.height)
        code, mass = pl.Series("code", codes[here]), pl.Series("rows", weight[here])
        start += frame.height
        for name in columns:
            value = frame[name].cast(pl.String).fill_null(MISSING).alias("value")
            inside = pl.DataFrame([value, code, mass]).filter(code >= 0)
            parts[name].append(inside.group_by("value", "code").agg(pl.col("rows").sum()))
    return {name: pl.concat(found).group_by("value", "code").agg(pl.col("rows").sum()) for name, found in parts.items()}


def _shares(
    column: str,
    counts: pl.DataFrame,
    used: bool,
    names: list[str],
    sizes: NDArray[np.integer],
    mass: NDArray[np.float64],
) -> Shares:
    by_value = counts.group_by("value").agg(pl.col("rows").sum()).sort(["rows", "value"], descending=[True, False])
    values = by_value["value"].to_list()
    if len(values) > VALUES:
        values = [*values[: VALUES - 1], OTHERS]
    last = len(values) - 1
    place = counts["value"].replace_strict(values, range(last + 1), default=last, return_dtype=pl.Int64).to_numpy()
    found = np.zeros((len(names), len(values)))
    np.add.at(found, (counts["code"].to_numpy(), place), counts["rows"].to_numpy())
    return Shares(column, used, names, sizes, values, found / np.where(mass > 0, mass, 1.0)[:, None])
