"""Fit a preparation to a table: missing values, constant columns, categories and scales."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.algorithms import Algorithm
from coterie.core.formatting import count, first_names
from coterie.core.progress import Callback, silent
from coterie.data.row_sample import sample_rows
from coterie.data.tables.converted_table import converted
from coterie.data.tables.reader import Table
from coterie.data.tables.readings import Reading
from coterie.errors import InputError, ParameterError
from coterie.preparation import DUPLICATE_SHARE, Missing, PreparationOptions, Scale, SkippedColumn
from coterie.preparation.column_names import is_series_of_names
from coterie.preparation.column_selection import (
    INCLUDE,
    ColumnSelection,
    check_column,
    check_options,
    nearly_numeric_warnings,
    reading_candidates,
    select_columns,
)
from coterie.preparation.detect_readings import detect_readings, mark_notes
from coterie.preparation.missing_values import empty_warnings
from coterie.preparation.name_lists import shell_names
from coterie.preparation.one_hot import categories_of
from coterie.preparation.preparation import Preparation, PreparedRows, RawRows
from coterie.preparation.scaling import Matrix, Vector, blocks, extremes, fill_rows, fit_scale, means, quantiles
from coterie.preparation.table_hints import table_hints
from coterie.preparation.transforms import NO_TRANSFORM, TRANSFORMS, choose_transform, parse_transforms

CONSTANT = "constant"
NEAR_DUPLICATE = 0.999  # absolute correlation of columns of which one is left out
MIN_CORRELATED, MAX_CORRELATED = 30, 1000  # rows and columns for which correlations are computed
CORRELATED_ROWS = SKEWNESS_ROWS = 100_000
MIN_VECTOR = 16  # columns that are elements of one vector, if their names say so
ONE_UNIT = 20.0  # largest standard deviation of columns of one unit, as a multiple of their median


@dataclass(frozen=True)
class PreparedTable:
    """Rows for an algorithm, and the preparation that was fitted."""

    table: Table  # with the columns of the preparation
    rows: PreparedRows
    preparation: Preparation
    weight: NDArray[np.float64] | None  # (n,)
    skipped: tuple[SkippedColumn, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()  # how columns were read, transformed and scaled

    @cached_property
    def observed(self) -> Matrix:
        """The rows as in the table (n, d), with one-hot columns; NaN for missing values, even if they were filled."""
        if self.preparation.is_identity and not self.rows.missing:
            return self.rows.X
        raw = self.preparation.read_rows(self.table)
        return selected_rows(self.table, raw.X, self.rows.row_mask[raw.row_mask])

    @property
    def has_missing(self) -> bool:
        """Whether values of `observed` are missing."""
        return self.rows.has_missing or bool(self.rows.missing and self.preparation.missing != "drop")

    def missing_by_cluster(self, labels: NDArray[np.integer], k: int) -> dict[str, NDArray[np.integer]]:
        """Number of missing values in each of k clusters, of each column of the table that has some."""
        preparation = self.preparation
        of_columns = [*preparation.numbers, *(name for name, _ in preparation.indicators)]
        columns = {name: of_columns.index(name) for name in self.rows.missing if self.has_missing}
        return {name: np.bincount(labels[np.isnan(self.observed[:, j])], minlength=k) for name, j in columns.items()}


def prepare(table: Table, options: PreparationOptions, method: Algorithm, callback: Callback = silent) -> PreparedTable:
    """Select columns, fit a preparation for `method`, and apply it."""
    _check_missing(options.missing, method)
    scale = _resolve_scale(options.scale, table, method)
    check_options(table, options, mixed=method.mixed)
    table = table.with_text(options.one_hot)
    kinds = ("number",) if method.series else ("number", "date") if method.mixed else ("number", "boolean", "date")
    # A mixture takes codes with leading zeros as categories, also if they are named.
    naming = replace(options, columns=(), include=()) if method.mixed else options
    detected = detect_readings(table, naming, reading_candidates(table, options), kinds)
    original, table = table, converted(table, detected.readings)
    options = with_parts(options, detected.readings)
    selection = select_columns(table, options, mixed=method.mixed, series=method.series, known=detected.reasons)
    sources = dict.fromkeys(reading.column for reading in detected.readings.values())
    unscaled = _unscaled(table, selection, options.missing, method)
    raw = unscaled.read_rows(table, callback)
    hints = () if method.series or table.is_array else table_hints(table, unscaled.numbers, raw, selection.skipped)
    weight = None if options.weight is None else row_weights(table, options.weight, raw.row_mask)
    filled, raw = _fill(unscaled, raw, weight)
    if len(raw.X) == 1:
        raise InputError(f"{table.name} has only one row to cluster: clustering needs at least two rows.")
    varying, raw, constant = _drop_constant(filled, raw, table, weight)
    varying, raw, duplicates = _drop_duplicates(varying, raw, table, options)
    scale, scale_notes = _scale_of_vectors(options.scale, scale, varying, raw, weight)
    varying, transform_notes = _with_transforms(varying, raw, options, scale, weight)
    varying.transform(table, raw)
    with np.errstate(over="ignore"):
        shift, spread, no_range = fit_scale(raw.X[:, : len(varying.numbers)], scale, weight)
    for j in np.flatnonzero(np.isinf(spread)):
        raise InputError(f'column "{varying.numbers[j]}" has differences above 1.8e308: divide its values by 10.')
    fitted = replace(
        varying, scale=scale, shift=tuple(shift.tolist()), spread=tuple(spread.tolist()),
        readings={name: reading for name, reading in detected.readings.items() if name in varying.numbers},
    )  # fmt: skip
    rows = fitted.finish(table, raw)
    equal_quartiles = [varying.numbers[j] for j in no_range]
    return PreparedTable(
        table=table,
        rows=rows,
        preparation=fitted,
        weight=weight,
        skipped=(*selection.skipped, *(SkippedColumn(name, CONSTANT) for name in constant), *duplicates),
        warnings=(
            *nearly_numeric_warnings(table, selection.skipped),
            *_about_columns(constant, "{} is constant and was dropped.", "{} are constant and were dropped."),
            *_about_columns(
                equal_quartiles,
                "half of {} is one value: it was scaled by its standard deviation.",
                "half of each of {} is one value: they were scaled by their standard deviations.",
            ),
            *_duplicate_warnings(rows.X),
            *empty_warnings(rows.empty),
        ),
        notes=(
            *detected.notes,
            *mark_notes(original, sources, selection.categories, options.na_values),
            *transform_notes,
            *scale_notes,
            *hints,
        ),
    )


def _about_columns(names: list[str], one: str, several: str) -> tuple[str, ...]:
    """A sentence about one column or several; none without names."""
    if not names:
        return ()
    return (one.format(f'column "{names[0]}"') if len(names) == 1 else several.format(f"columns {first_names(names)}"),)


def with_parts(options: PreparationOptions, readings: Mapping[str, Reading]) -> PreparationOptions:
    """The options with names of columns replaced by those of all columns that are read from them."""

    def parts(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            new
            for name in names
            for new in ([each for each, reading in readings.items() if reading.column == name] or [name])
        )

    columns, exclude, include = map(parts, (options.columns, options.exclude, options.include))
    return replace(options, columns=columns, exclude=exclude, include=include)


def row_weights(table: Table, name: str, row_mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights of the rows in `row_mask`."""
    column = table.column(name)
    if not column.dtype.is_numeric():
        raise InputError(f'column "{name}" is not numeric: a weight is a number of at least 0.')
    weights = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    invalid = int((~(weights >= 0) | np.isinf(weights)).sum())
    if invalid:
        raise InputError(
            f'column "{name}" has {count(invalid, "invalid weight")}: a weight is a finite number of at least 0.'
        )
    weights = weights[row_mask]
    if not weights.any():
        raise InputError(f'column "{name}" is 0 in every row that is used: at least one weight must be positive.')
    return weights


def _check_missing(missing: Missing, method: Algorithm) -> None:
    if missing == "ignore" and not method.handles_missing:
        raise ParameterError(f"--missing ignore is not for {method.title}: use drop, mean or median.")
    if missing in ("mean", "median") and (method.mixed or method.series):  # series may have different lengths
        other = "drop or ignore" if method.handles_missing else "drop"
        raise ParameterError(f"--missing {missing} is not for {method.title}: use {other}.")


def _resolve_scale(scale: Scale, table: Table, method: Algorithm) -> Scale:
    if scale == "auto":
        return "none" if table.is_array or method.mixed or method.series or method.directions else "standard"
    if (method.mixed or method.series) and scale != "none":
        raise ParameterError(f"--scale {scale} is not for {method.title}: use none.")
    return scale


def _unscaled(table: Table, selection: ColumnSelection, missing: Missing, method: Algorithm) -> Preparation:
    """A preparation that leaves numbers as they are."""
    dtypes = [table.schema[name] for name in selection.numbers]
    return Preparation(
        selection.numbers,
        {name: categories_of(table.column(name)) for name in selection.categories},
        missing,
        fill=(),
        scale="none",
        shift=(0.0,) * len(selection.numbers),
        spread=(1.0,) * len(selection.numbers),
        single=bool(dtypes) and all(dtype == pl.Float32 for dtype in dtypes),
        mixed=method.mixed,
        can_ignore=method.handles_missing,
        series=method.series,
    )


def _fill(preparation: Preparation, raw: RawRows, weight: Vector | None) -> tuple[Preparation, RawRows]:
    """Fill missing numbers with the mean or median of their column."""
    numbers = raw.X[:, : len(preparation.numbers)]
    if preparation.missing == "mean":
        values = means(numbers, numbers.dtype, weight)
    elif preparation.missing == "median":
        values = quantiles(numbers, [0.5], weight)[0].astype(numbers.dtype)
    else:
        return preparation, raw
    fill_rows(numbers, values)
    return replace(preparation, fill=tuple(values.tolist())), replace(raw, has_missing=False)


def _drop_constant(
    preparation: Preparation, raw: RawRows, table: Table, weight: Vector | None
) -> tuple[Preparation, RawRows, list[str]]:
    """Drop constant columns, except of series; also return their names."""
    n_numbers = len(preparation.numbers)
    if preparation.series or n_numbers == 0:
        return preparation, raw, []
    low, high = extremes(raw.X[:, :n_numbers], weight)
    constant = [name for name, same in zip(preparation.numbers, low >= high, strict=True) if same]
    if len(constant) == n_numbers and not preparation.categories:
        raise InputError(f"every column is constant ({', '.join(constant)}): all rows are equal.")
    return *_select_numbers(preparation, raw, table, np.flatnonzero(low < high)), constant


def _drop_duplicates(
    preparation: Preparation, raw: RawRows, table: Table, options: PreparationOptions
) -> tuple[Preparation, RawRows, tuple[SkippedColumn, ...]]:
    """Drop columns that are almost a linear function of an earlier column, unless they were asked for."""
    d, requested = len(preparation.numbers), {*options.columns, *options.include}
    is_checked = not (preparation.series or preparation.mixed or table.is_array) and 1 < d <= MAX_CORRELATED
    if not is_checked or len(raw.X) < MIN_CORRELATED:
        return preparation, raw, ()
    X = np.asarray(raw.X[sample_rows(len(raw.X), CORRELATED_ROWS), :d], dtype=np.float64)
    is_missing = np.isnan(X)
    X = np.where(is_missing, 0.0, X - means(X, np.dtype(np.float64)))
    X = np.ldexp(X, -np.frexp(np.abs(X).max(axis=0))[1])  # squares are neither too large nor too small
    norms = np.sqrt((X * X).sum(axis=0))
    correlations = np.abs(X.T @ X) / np.where(norms > 0, np.outer(norms, norms), 1.0)
    duplicates: dict[int, int] = {}
    for j in range(1, d):
        earlier = [i for i in range(j) if i not in duplicates and correlations[i, j] > NEAR_DUPLICATE]
        if earlier and preparation.numbers[j] not in requested:
            duplicates[j] = earlier[0]
    skipped = tuple(
        SkippedColumn(preparation.numbers[j], f"near-duplicate of {preparation.numbers[i]}", INCLUDE)
        for j, i in duplicates.items()
    )
    return *_select_numbers(preparation, raw, table, np.setdiff1d(np.arange(d), list(duplicates))), skipped


def selected_rows(table: Table, X: Matrix, mask: NDArray[np.bool_]) -> Matrix:
    """The rows of X in the mask, stored like the rows of the table; X itself if these are all."""
    if mask.all():
        return X
    result = table.allocate((int(np.count_nonzero(mask)), X.shape[1]), X.dtype)
    start = stop = 0
    for block in blocks(X):
        selected = block[mask[start : start + len(block)]]
        result[stop : stop + len(selected)] = selected
        start, stop = start + len(block), stop + len(selected)
    return result


def _select_numbers(
    preparation: Preparation, raw: RawRows, table: Table, numbers: NDArray[np.integer]
) -> tuple[Preparation, RawRows]:
    """The preparation and the rows with some of the numeric columns, and all others."""
    n_numbers = len(preparation.numbers)
    if len(numbers) == n_numbers:
        return preparation, raw
    reduced = replace(
        preparation,
        numbers=tuple(preparation.numbers[j] for j in numbers),
        fill=tuple(preparation.fill[j] for j in numbers) if preparation.fill else (),
        shift=(0.0,) * len(numbers),
        spread=(1.0,) * len(numbers),
    )
    columns = np.concatenate([numbers, np.arange(n_numbers, raw.X.shape[1])])
    X = table.allocate((len(raw.X), len(columns)), raw.X.dtype)
    for old, new in zip(blocks(raw.X), blocks(X, like=raw.X), strict=True):
        new[:] = old[:, columns]
    missing = raw.counts.missing
    used = np.concatenate([numbers, np.arange(n_numbers, len(missing))])
    return reduced, replace(raw, X=X, counts=replace(raw.counts, missing=missing[used]))


def _scale_of_vectors(
    requested: Scale, scale: Scale, preparation: Preparation, raw: RawRows, weight: Vector | None
) -> tuple[Scale, tuple[str, ...]]:
    """Elements of a vector, such as an embedding, have one unit: by default they are not scaled."""
    names = preparation.numbers
    if requested != "auto" or scale == "none" or len(names) < MIN_VECTOR or preparation.categories:
        return scale, ()
    spread = fit_scale(raw.X[:, : len(names)], "standard", weight)[1]
    if not is_series_of_names(names) or spread.max() > ONE_UNIT * np.median(spread):
        return scale, ()
    return "none", (
        f"columns {names[0]} to {names[-1]} look like elements of one vector: not scaled (unlike --scale standard).",
    )


def _with_transforms(
    preparation: Preparation, raw: RawRows, options: PreparationOptions, scale: Scale, weight: Vector | None
) -> tuple[Preparation, tuple[str, ...]]:
    """The preparation with transforms by request and, if `scale` is automatic, of clearly skewed columns."""
    requested = parse_transforms(options.transform)
    for name in requested:
        check_column(name, preparation.numbers)
    transforms = {name: transform for name, transform in requested.items() if transform != NO_TRANSFORM}
    if transforms and (preparation.mixed or preparation.series):
        raise ParameterError("--transform is for rows of numbers: leave it out for mixture and kmeans-dtw.")
    chosen: dict[str, str] = {}
    if options.scale == "auto" and scale == "standard":
        sample = sample_rows(len(raw.X), SKEWNESS_ROWS)
        minima = extremes(raw.X[:, : len(preparation.numbers)])[0]
        for j, name in enumerate(preparation.numbers):
            if name not in requested and minima[j] >= 0:
                mass = None if weight is None else weight[sample]
                transform = choose_transform(raw.X[sample, j], float(minima[j]), mass)
                chosen |= {} if transform is None else {name: transform}
    order = {name: j for j, name in enumerate(preparation.numbers)}
    transforms = dict(sorted((transforms | chosen).items(), key=lambda item: order[item[0]]))
    by_index = {order[name]: transform for name, transform in transforms.items()}
    fill = tuple(
        float(TRANSFORMS[by_index[j]].forward(np.array(value))) if j in by_index else value
        for j, value in enumerate(preparation.fill)
    )
    notes = tuple(
        f"{transform} of {', '.join(names)}: skewed over orders of magnitude (to turn it off: --transform "
        f"{shell_names(*off)})."
        for transform in TRANSFORMS
        for names in [[name for name, each in chosen.items() if each == transform]]
        for off in [[f"{NO_TRANSFORM}:{name}" for name in names]]
        if names
    )
    return replace(preparation, transforms=transforms, fill=fill), notes


def _duplicate_warnings(X: Matrix) -> tuple[str, ...]:
    hashes = pl.concat([pl.from_numpy(block).hash_rows() for block in blocks(X)])
    n = len(hashes)
    duplicates = n - hashes.n_unique()
    if duplicates / n <= DUPLICATE_SHARE:
        return ()
    return (
        f"{duplicates:,} of {count(n)} ({duplicates / n:.1%}) are duplicates of an earlier row in the columns "
        "used. They pull centers towards them, and may look like clusters. Drop them if they are copies by mistake.",
    )
