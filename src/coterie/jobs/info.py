"""The command ``coterie info``: the columns of a table, or the parameters of a model."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from coterie.algorithms import algorithm_of
from coterie.core.attachments import CLUSTER_NAMES
from coterie.core.protocols import parameters_of
from coterie.data.tables.converted_table import converted
from coterie.data.tables.reader import Table, read
from coterie.errors import InputError
from coterie.persistence.container import is_model
from coterie.preparation import Missing, PreparationOptions
from coterie.preparation.column_selection import column_kind, mostly_missing_reason, reading_candidates, reason_to_skip
from coterie.preparation.detect_readings import detect_readings
from coterie.preparation.fit_preparation import PreparedTable, prepare
from coterie.preparation.one_hot import without_marks
from coterie.report.build.cluster_summaries import notes
from coterie.report.inspection import ColumnInfo, ModelInfo, TableInfo

EXAMPLES = 3
MISSING: tuple[Missing, ...] = ("error", "ignore")  # of a fit without options; and to tell what else it would do


def describe(path: Path) -> TableInfo | ModelInfo:
    """The content of a file, and for each column why a fit would skip it."""
    return _model_info(path) if is_model(path) else _table_info(path)


def _model_info(path: Path) -> ModelInfo:
    from coterie.jobs.prepared_model import read_model

    saved = read_model(path)
    model = saved.model
    defaults = type(model)().get_params(deep=False)
    parameters = {name: value for name, value in model.get_params(deep=False).items() if value != defaults[name]}
    names = getattr(model, CLUSTER_NAMES, None)
    return ModelInfo(
        source=path.name,
        size=path.stat().st_size,
        estimator=type(model).__name__,
        parameters=parameters,
        columns=saved.names,
        scale=saved.scale,
        fill=saved.fill,
        clusters=_n_clusters(model),
        names=None if names is None else tuple(map(str, names)),
    )


def _n_clusters(model: Any) -> int:
    """The number of clusters of a fitted model; 0 if it is unknown."""
    options = parameters_of(model)
    requested = options.get("n_clusters", options.get("n_components"))
    found = [getattr(model, name, None) for name in ("n_components_", "n_clusters_")]
    medoids = getattr(model, "medoid_indices_", None)
    sizes = [*found, None if medoids is None else len(medoids), requested]
    return next((int(size) for size in sizes if isinstance(size, int | np.integer) and size), 0)


def readable_columns(original: Table) -> Table:
    """The table with columns of text and dates as numbers, where a fit reads them so."""
    options = PreparationOptions()
    candidates = reading_candidates(original, options)
    return converted(original, detect_readings(original, options, candidates, ("number", "boolean", "date")).readings)


def _table_info(path: Path) -> TableInfo:
    original = read(path)
    table = readable_columns(original)
    prepared, error = _prepared_by_fit(original)
    if prepared is None:
        skipped = {name: reason_to_skip(table, name) for name in table.columns}
    else:
        skipped = {column.name: column.reason for column in prepared.skipped}
    incomplete, hashes = 0, []
    for batch in table.batches(table.columns):
        incomplete += int(batch.select(pl.any_horizontal(_is_missing(column) for column in batch)).to_series().sum())
        hashes.append(batch.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).hash_rows())
    return TableInfo(
        source=table.name,
        size=path.stat().st_size if path.exists() else int(table.frame(table.columns).estimated_size()),
        rows=table.n_rows,
        incomplete_rows=incomplete,
        duplicate_rows=table.n_rows - pl.concat(hashes).n_unique(),
        columns=tuple(describe_column(table, name, original, skipped.get(name)) for name in table.columns),
        error=error,
        notes=original.notes if prepared is None else (*original.notes, *notes(prepared)),
        warnings=() if prepared is None else prepared.warnings,
    )


def _prepared_by_fit(table: Table) -> tuple[PreparedTable | None, str | None]:
    """The rows of a fit without options, if missing values are the only problem; and the error that ends it."""
    first_error = None
    for missing in MISSING:
        try:
            return prepare(table, PreparationOptions(missing=missing), algorithm_of("kmeans")), first_error
        except InputError as error:
            first_error = first_error or str(error).replace("\n  ", " ")
    return None, first_error


def _is_missing(column: pl.Series) -> pl.Series:
    return column.is_null() | column.is_nan().fill_null(True) if column.dtype.is_float() else column.is_null()


def describe_column(table: Table, name: str, original: Table, skipped: str | None) -> ColumnInfo:
    """Type, missing and distinct values, and range of a column; `table` is `original` with readable columns."""
    column = without_marks(table.column(name))
    kind, original_kind = column_kind(table, name), column_kind(original, name)
    present = column.filter(~_is_missing(column))
    numbers = present.cast(pl.Float64) if column.dtype.is_numeric() else present.clear().cast(pl.Float64, strict=False)
    return ColumnInfo(
        name=name,
        kind=kind if kind in (original_kind, "empty") else f"{original_kind} → {kind}",
        missing=len(column) - len(present),
        distinct=present.n_unique(),
        least=_as_float(numbers.min()),
        mean=_as_float(numbers.mean()),
        most=_as_float(numbers.max()),
        examples=() if column.dtype.is_numeric() else _most_frequent(present),
        skipped=skipped or mostly_missing_reason(len(column) - len(present), len(column)),
    )


def value_counts(column: pl.Series) -> pl.DataFrame:
    """The values of a column as texts (``value``) with their ``count``, the most frequent first."""
    texts = column.drop_nulls().cast(pl.String).alias("value")
    return texts.value_counts().sort(["count", "value"], descending=[True, False])


def _as_float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _most_frequent(column: pl.Series) -> tuple[str, ...]:
    """The most frequent values; equally frequent ones in alphabetical order."""
    if column.dtype.base_type() not in (pl.String, pl.Categorical, pl.Enum, pl.Boolean):
        return ()
    return tuple(value_counts(column)["value"].head(EXAMPLES).to_list())
