"""Profiles of clusters as a table: one row for each cluster, in the units of the table."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.preparation import Preparation
from coterie.preparation.scaling import quantiles
from coterie.report.results import ClusterSummary

DIGITS = 15  # significant digits of means and medians, so that 0.30000000000000004 is 0.3


def profile_table(
    prepared: PreparedTable, labels: NDArray[np.integer], clusters: tuple[ClusterSummary, ...]
) -> pl.DataFrame:
    """Sizes, rules, means and medians of numbers, shares of categories, and numbers of missing values.

    Means, medians and shares are those of the values in the table; they are weighted if rows have weights.
    """
    preparation = prepared.preparation
    codes = np.searchsorted([one.label for one in clusters], labels)
    columns: dict[str, list[Any]] = {"cluster": [one.label for one in clusters]}
    if any(one.name is not None for one in clusters):
        columns["name"] = [one.display_name for one in clusters]
    columns |= {"rows": [one.rows for one in clusters], "share": [one.share for one in clusters]}
    if any(one.silhouette is not None for one in clusters):
        columns["silhouette"] = [one.silhouette for one in clusters]
    if any(one.rule is not None for one in clusters):
        rules = [one.rule if one.rule is not None and one.rule.describes else None for one in clusters]
        columns["rule"] = [None if rule is None else rule.text for rule in rules]
        columns["rule coverage"] = [None if rule is None else rule.coverage for rule in rules]
        columns["rule precision"] = [None if rule is None else rule.precision for rule in rules]
    members = [np.flatnonzero(codes == j) for j in range(len(clusters))]
    for j, name in enumerate(preparation.numbers):
        x, weight = np.asarray(prepared.observed[:, [j]]), prepared.weight
        medians = [quantiles(x[rows], [0.5], None if weight is None else weight[rows]).item() for rows in members]
        means = [one.means.get(name, np.nan) for one in clusters]
        columns[f"{name} mean"] = [_in_units(preparation, name, mean) for mean in means]
        columns[f"{name} median"] = [_in_units(preparation, name, median) for median in medians]
    for (column, value), name in zip(
        preparation.indicators, preparation.names[len(preparation.numbers) :], strict=True
    ):
        columns[f"{column}: {value}"] = [one.means.get(name) for one in clusters]
    for column in preparation.columns:
        if any(column in one.missing for one in clusters):
            columns[f"{column} missing"] = [one.missing.get(column, 0) for one in clusters]
    return pl.DataFrame(columns, strict=False)


def _in_units(preparation: Preparation, name: str, value: float) -> float | str | None:
    """The value without rounding errors; of an age in days, its date; None if there is no value."""
    return None if np.isnan(value) else preparation.date_of(name, value) or float(f"{value:.{DIGITS}g}")
