"""Rules that describe the clusters of a table, in the units of its columns."""

from collections.abc import Iterator
from dataclasses import replace

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.data.tables.converted_table import converted
from coterie.data.tables.reader import Table
from coterie.data.tables.readings import TEMPORAL, Reading
from coterie.explanation.columns import ArrayColumns, FrameColumns
from coterie.explanation.explain import Part, explanation, search_sample
from coterie.explanation.rules import Explanation
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.preparation import Preparation
from coterie.report.results import ClusterSummary

MAX_CLUSTERS = 200  # beyond, the search would take too long


def with_rules(
    table: Table, prepared: PreparedTable, labels: NDArray[np.integer], clusters: tuple[ClusterSummary, ...]
) -> tuple[tuple[ClusterSummary, ...], float | None]:
    """The clusters with their rules, and the cost ratio of a threshold tree; unchanged where rules make no sense.

    Rows in no cluster (label -1) count among those that fit a rule.
    """
    if prepared.preparation.series or not 2 <= len(clusters) <= MAX_CLUSTERS:
        return clusters, None
    codes = np.where(labels < 0, -1, np.searchsorted([one.label for one in clusters], labels))
    result = _explanation(table, prepared, codes, [one.display_name for one in clusters])
    described = tuple(replace(one, rule=rule) for one, rule in zip(clusters, result.rules, strict=True))
    return described, result.cost_ratio


def _explanation(table: Table, prepared: PreparedTable, codes: NDArray[np.integer], names: list[str]) -> Explanation:
    """Rules from a sample of the rows that were used, counted in a second pass over the table."""
    preparation = prepared.preparation
    readings = {name: _with_dates(reading) for name, reading in preparation.readings.items()}
    table = converted(table if preparation.mixed else table.with_text(list(preparation.categories)), readings)
    rows, w = search_sample(codes, prepared.weight, len(preparation.columns))
    table_rows = np.flatnonzero(prepared.rows.row_mask)[rows]
    frames, start = [], 0
    for batch in table.batches(preparation.columns):
        first, last = np.searchsorted(table_rows, [start, start + batch.height])
        frames.append(_typed(batch[table_rows[first:last] - start], preparation))
        start += batch.height
    sample = FrameColumns(nw.from_native(pl.concat(frames)))

    def parts(columns: list[str]) -> Iterator[Part]:
        if not columns:
            yield ArrayColumns(np.empty((len(codes), 0)), []), codes, prepared.weight
            return
        start = stop = 0
        for batch in table.batches(columns):
            mask = prepared.rows.row_mask[start : start + batch.height]
            used = slice(stop, stop + int(np.count_nonzero(mask)))
            frame = _typed(batch.filter(pl.Series(mask)), preparation)
            weight = None if prepared.weight is None else prepared.weight[used]
            yield FrameColumns(nw.from_native(frame)), codes[used], weight
            start, stop = start + batch.height, used.stop

    return explanation(
        sample.sample(np.arange(sample.n)), codes[rows], w, names, parts, points=np.asarray(prepared.rows.X[rows])
    )


def _with_dates(reading: Reading) -> Reading:
    """The reading that gives dates instead of their age, because rules are in the units of the table."""
    return replace(reading, part="date") if reading.kind == "date" and reading.part == "age" else reading


def _typed(frame: pl.DataFrame, preparation: Preparation) -> pl.DataFrame:
    """Categories as text, and text that is read as numbers as numbers."""
    casts = []
    for name in frame.columns:
        if name in preparation.categories:
            casts.append(pl.col(name).cast(pl.String))
        elif not (frame.schema[name].is_numeric() or frame.schema[name].base_type() in (pl.Boolean, *TEMPORAL)):
            casts.append(pl.col(name).cast(pl.Float64, strict=False))
    return frame.with_columns(casts)
