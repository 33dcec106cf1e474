"""Means of the rows that are selected on the page, beside those of all rows, in the units of the table."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from coterie.app.column_bins import numbers_of
from coterie.app.row_view import rows_of_bits
from coterie.app.session import Session
from coterie.core.arrays import Array
from coterie.data.tables.converted_table import converted
from coterie.jobs.info import value_counts
from coterie.plots.display import plain
from coterie.preparation.preparation import Preparation
from coterie.preparation.transforms import TRANSFORMS
from coterie.report.build.cluster_moments import moments

MAX_COLUMNS = 40
MAX_CATEGORIES = 6  # of a column, the most frequent ones


def selected_means(session: Session, run: str, body: bytes) -> dict[str, Any]:
    """Means of the columns that a run uses; missing values are left out and counted, in rows that it drops too.

    Rows have their weights, and differences are those of transformed values, as in the profiles of clusters.
    """
    preparation, table = session.outcome(run).prepared.prepared.preparation, session.open_table()
    is_selected, weight = rows_of_bits(table, body), session.run(run).preparation.get("weight")
    codes, w = np.where(is_selected, 0, -1), None if weight is None else numbers_of(table.table.column(weight))
    readable = converted(table.table.with_text(list(preparation.categories)), preparation.readings)
    columns: list[dict[str, Any]] = []
    for name in preparation.sources[:MAX_COLUMNS]:
        column = readable.column(name)
        if name in preparation.categories:
            parts = list(_shares(column))
        else:  # of a date, only its time of year may be used
            parts = [({}, numbers_of(column))] if column.dtype.is_numeric() else []
        for about, values in parts:
            columns.append({"column": name, **about, **_compared(values, codes, w, preparation, name)})
    return plain({"rows": int(is_selected.sum()), "columns": columns})


def _shares(column: pl.Series) -> Iterator[tuple[dict[str, Any], Array]]:
    """The most frequent categories, each as a column of zeros and ones."""
    texts = column.cast(pl.String)
    for value in value_counts(column)["value"].head(MAX_CATEGORIES):
        yield {"value": value}, numbers_of(texts == value)


def _compared(values: Array, codes: Array, w: Array | None, preparation: Preparation, name: str) -> dict[str, Any]:
    """The mean of the selected rows and of all rows, and their difference in standard deviations of all rows."""
    compute = partial(moments, codes=codes, has_missing=True, weight=w)
    in_units = transformed = compute(values[:, None])
    if name in preparation.transforms:
        transform = TRANSFORMS[preparation.transforms[name]]  # rows that the run drops may have values without it
        transformed = compute(transform.forward(np.where(transform.is_valid(values), values, np.nan))[:, None])
    mean, overall = float(in_units.means[0, 0]), float(in_units.mean[0]) if in_units.present[0] else np.nan
    width = float(transformed.deviation[0])
    deviation = (transformed.means[0, 0] - transformed.mean[0]) / width if width > 0 else 0.0
    n_missing = int((np.isnan(values) & (codes == 0)).sum())
    date, overall_date = (preparation.date_of(name, each) for each in (mean, overall))
    if overall_date is not None:  # the later a date, the smaller its age
        about = {"kind": "date", "mean": date, "overall": overall_date, "deviation": -deviation}
    else:
        reading = preparation.readings.get(name)
        is_share = name in preparation.categories or (reading is not None and reading.kind == "boolean")
        kind = "share" if is_share else "number"
        about = {"kind": kind, "mean": mean, "overall": overall, "deviation": deviation}
    return {**about, "missing": n_missing}
