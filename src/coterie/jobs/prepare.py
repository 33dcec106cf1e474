"""From chosen columns to what an algorithm takes: missing values, constant columns, categories, scale."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.errors import InputError, ParameterError
from coterie.diagnosis.row_checks import MAX_DUPLICATES
from coterie.jobs import Missing, Progress, Scale, TableJob, gaps, silent
from coterie.jobs.columns import Choice, almost_numbers, choose
from coterie.jobs.methods import Method
from coterie.jobs.preparation import Gathered, Preparation, Rows
from coterie.jobs.scaling import Matrix, Vector, blocks, extremes, fill_rows, means, quantiles, scaling
from coterie.jobs.table import Table
from coterie.report.table import SkippedColumn

CONSTANT = "constant"


@dataclass(frozen=True)
class Prepared:
    """A table ready for an algorithm, and how it was made so."""

    rows: Rows
    preparation: Preparation
    weight: NDArray[np.float64] | None  # (n,)
    skipped: tuple[SkippedColumn, ...]
    warnings: tuple[str, ...]


def prepare(table: Table, job: TableJob, method: Method, progress: Progress = silent) -> Prepared:
    """Choose columns, learn from them how to make numbers of them, and do so."""
    _check_missing(job.missing, method)
    scale = _resolved(job.scale, table, method)
    choice = choose(table, job, mixed=method.mixed)
    plain = _plain(table, choice, job.missing, method)
    found = plain.gather(table, progress)
    weight = None if job.weight is None else weights_of(table, job.weight, found.kept)
    filled, found = _filled(plain, found, weight)
    if len(found.S) == 1:
        raise InputError(f"there is one row to cluster in {table.name}: clusters are of two rows or more.")
    varying, found, constant = _varying(filled, found, table, weight)
    learned, warnings = _scaled(varying, found, scale, weight)
    rows = learned.finish(table, found)
    return Prepared(
        rows=rows,
        preparation=learned,
        weight=weight,
        skipped=(*choice.skipped, *(SkippedColumn(name, CONSTANT) for name in constant)),
        warnings=(
            *almost_numbers(table, choice.skipped),
            *(f'column "{name}" is constant and was dropped.' for name in constant),
            *warnings,
            *_about_copies(rows.S),
        ),
    )


def weights_of(table: Table, name: str, kept: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How much each row counts that was kept."""
    column = table.column(name)
    if not column.dtype.is_numeric():
        raise InputError(f'column "{name}" is not numeric: a weight is a number of at least 0.')
    weights = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    wrong = int((~(weights >= 0) | np.isinf(weights)).sum())
    if wrong:
        raise InputError(f'{gaps.rows(wrong)} have no weight in column "{name}": a weight is a number of at least 0.')
    weights = weights[kept]
    if not weights.any():
        raise InputError(f'column "{name}" is 0 in every row that takes part: a row with a larger weight is needed.')
    return weights


def _check_missing(missing: Missing, method: Method) -> None:
    if missing == "ignore" and not method.holes:
        raise ParameterError(f"--missing ignore is not for {method.title}: use drop, mean or median.")
    if missing in ("mean", "median") and (method.mixed or method.series):  # a series may end before others do
        other = "drop or ignore" if method.holes else "drop"
        raise ParameterError(f"--missing {missing} is not for {method.title}: use {other}.")


def _resolved(scale: Scale, table: Table, method: Method) -> Scale:
    if scale == "auto":
        return "none" if table.is_array or method.mixed or method.series else "standard"
    if (method.mixed or method.series) and scale != "none":
        raise ParameterError(f"--scale {scale} is not for {method.title}: use none.")
    return scale


def _plain(table: Table, choice: Choice, missing: Missing, method: Method) -> Preparation:
    """The preparation of values as they are."""
    kinds = [table.schema[name] for name in choice.numbers]
    return Preparation(
        choice.numbers,
        {name: _values(table.column(name)) for name in choice.categories},
        missing,
        fill=(),
        scale="none",
        shift=(0.0,) * len(choice.numbers),
        spread=(1.0,) * len(choice.numbers),
        single=bool(kinds) and all(kind == pl.Float32 for kind in kinds),
        mixed=method.mixed,
        series=method.series,
    )


def _values(column: pl.Series) -> tuple[str, ...]:
    return tuple(sorted(column.cast(pl.String).drop_nulls().unique().to_list()))


def _filled(how: Preparation, found: Gathered, weight: Vector | None) -> tuple[Preparation, Gathered]:
    """With what stands in for missing numbers, in its place."""
    own = found.S[:, : len(how.numbers)]
    if how.missing == "mean":
        middle = means(own, own.dtype, weight)
    elif how.missing == "median":
        middle = quantiles(own, [0.5], weight)[0].astype(own.dtype)
    else:
        return how, found
    fill_rows(own, middle)
    return replace(how, fill=tuple(middle.tolist())), replace(found, holes=False)


def _varying(
    how: Preparation, found: Gathered, table: Table, weight: Vector | None
) -> tuple[Preparation, Gathered, list[str]]:
    """Without constant columns, which are named; a series may stand still for a moment."""
    own = len(how.numbers)
    if how.series or own == 0:
        return how, found, []
    low, high = extremes(found.S[:, :own], weight)
    constant = [name for name, same in zip(how.numbers, low >= high, strict=True) if same]
    if len(constant) == own and not how.categories:
        raise InputError(f"every column is constant ({', '.join(constant)}): all rows are alike.")
    if not constant:
        return how, found, []
    varies = np.flatnonzero(low < high)
    kept = replace(
        how,
        numbers=tuple(how.numbers[j] for j in varies),
        fill=tuple(how.fill[j] for j in varies) if how.fill else (),
        shift=(0.0,) * len(varies),
        spread=(1.0,) * len(varies),
    )
    columns = np.concatenate([varies, np.arange(own, found.S.shape[1])])
    S = table.room((len(found.S), len(columns)), found.S.dtype)
    for old, new in zip(blocks(found.S), blocks(S, like=found.S), strict=True):
        new[:] = old[:, columns]
    return kept, replace(found, S=S), constant


def _scaled(
    how: Preparation, found: Gathered, scale: Scale, weight: Vector | None
) -> tuple[Preparation, tuple[str, ...]]:
    """With what makes columns comparable, and what there is to warn of."""
    own = found.S[:, : len(how.numbers)]
    shift, spread, odd = scaling(own, scale, weight)
    warnings = tuple(
        f'half of column "{how.numbers[j]}" is one value: it was scaled by its standard deviation.' for j in odd
    )
    return replace(how, scale=scale, shift=tuple(shift.tolist()), spread=tuple(spread.tolist())), warnings


def _about_copies(S: Matrix) -> tuple[str, ...]:
    """That many rows are the same in the columns used, and what that does to clusters."""
    hashes = pl.concat([pl.from_numpy(block).hash_rows() for block in blocks(S)])
    n = len(hashes)
    copies = n - hashes.n_unique()
    if copies / n <= MAX_DUPLICATES:
        return ()
    return (
        f"{copies:,} of {gaps.rows(n)} ({copies / n:.1%}) are the same as an earlier one in the columns used: each "
        "counts, so that centers are drawn to them and they may look like clusters of their own. Drop those that are "
        "copies by mistake.",
    )
