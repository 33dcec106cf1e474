"""What is in a file, column by column."""

from pathlib import Path

import polars as pl

from coterie.data.tables import reader as table
from coterie.data.tables.reader import Table
from coterie.preparation import sklearn_steps as model_file
from coterie.preparation.column_selection import kind_of, reason_to_skip
from coterie.report.inspection import ColumnInfo, ModelInfo, TableInfo

EXAMPLES = 3


def inspect(path: Path) -> TableInfo | ModelInfo:
    """What `path` holds, and what a fit would do with each column."""
    return _model(path) if model_file.holds_model(path) else _table(path)


def _model(path: Path) -> ModelInfo:
    saved = model_file.read(path)
    model = saved.model
    defaults = type(model)().get_params(deep=False)
    told = {name: value for name, value in model.get_params(deep=False).items() if value != defaults[name]}
    return ModelInfo(
        source=path.name,
        size=path.stat().st_size,
        estimator=type(model).__name__,
        parameters=told,
        columns=saved.names,
        scale=saved.scale,
        fill=saved.fill,
        clusters=int(getattr(model, "n_components_", 0)) or int(told.get("n_clusters", told.get("n_components", 0))),
    )


def _table(path: Path) -> TableInfo:
    source = table.read(path)
    incomplete, hashes = 0, []
    for frame in source.batches(source.columns):
        incomplete += int(frame.select(pl.any_horizontal(_missing(column) for column in frame)).to_series().sum())
        hashes.append(frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).hash_rows())
    return TableInfo(
        source=source.name,
        size=path.stat().st_size if path.exists() else int(source.frame(source.columns).estimated_size()),
        rows=source.rows,
        incomplete_rows=incomplete,
        duplicate_rows=source.rows - pl.concat(hashes).n_unique(),
        columns=tuple(_column(source, name) for name in source.columns),
    )


def _missing(column: pl.Series) -> pl.Series:
    return column.is_null() | column.is_nan().fill_null(True) if column.dtype.is_float() else column.is_null()


def _column(source: Table, name: str) -> ColumnInfo:
    column = source.column(name)
    present = column.filter(~_missing(column))
    numbers = present.cast(pl.Float64) if column.dtype.is_numeric() else present.clear().cast(pl.Float64, strict=False)
    return ColumnInfo(
        name=name,
        kind=kind_of(source, name),
        missing=len(column) - len(present),
        distinct=present.n_unique(),
        least=_plain(numbers.min()),
        mean=_plain(numbers.mean()),
        most=_plain(numbers.max()),
        examples=() if column.dtype.is_numeric() else _frequent(present),
        skipped=reason_to_skip(source, name),
    )


def _plain(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _frequent(column: pl.Series) -> tuple[str, ...]:
    """The most frequent values, of equally frequent ones the first in the alphabet."""
    if column.dtype.base_type() not in (pl.String, pl.Categorical, pl.Enum, pl.Boolean):
        return ()
    counts = column.cast(pl.String).alias("value").value_counts().sort(["count", "value"], descending=[True, False])
    return tuple(counts["value"].head(EXAMPLES).to_list())
