"""The command ``coterie compare-labels``: agreement of two columns of labels, and the rows that moved."""

from functools import partial

import numpy as np
import polars as pl

from coterie.core.formatting import count
from coterie.core.progress import Callback, Progress
from coterie.data.tables.reader import Table, read
from coterie.data.tables.writer import write
from coterie.errors import InputError, ParameterError
from coterie.jobs import CompareLabelsJob
from coterie.jobs.output_files import OutputFiles, check_outputs
from coterie.metrics import adjusted_mutual_info_score, adjusted_rand_score, matched_confusion
from coterie.preparation.column_selection import LABEL, NAME, check_categories, check_column
from coterie.report.results import LabelComparison

NO_CLUSTER = ("", "-1", "-1.0")
MAX_LABELS = 200
BEFORE, AFTER = "before", "after"


def execute(job: CompareLabelsJob, callback: Callback) -> LabelComparison:
    check_outputs(job.path, force=job.force, moved=job.output)
    check_outputs(job.other, force=job.force, moved=job.output)
    callback(Progress(f"reading {job.path.name}"))
    tables = read(job.path), read(job.other)
    columns = [_label_column(table, job.labels) for table in tables]
    labels = _joined(job, *tables, columns)
    is_clustered = labels.select(~pl.any_horizontal(pl.col(BEFORE, AFTER).is_in(NO_CLUSTER))).to_series()
    clustered = labels.filter(is_clustered)
    if clustered.height == 0:
        raise InputError(f"no row has a cluster in both {tables[0].name} and {tables[1].name}.")
    before, after = (clustered[name].to_numpy() for name in (BEFORE, AFTER))
    _check_number(tables, columns, (before, after))
    confusion = matched_confusion(before, after)
    matched = np.array([confusion.matching.get(label, "") for label in after.tolist()])
    moved = clustered.filter(pl.Series(matched != before))
    if job.output is not None:
        with OutputFiles(force=job.force) as files:
            files.write(job.output, partial(write, iter([moved])))
    return LabelComparison(
        source=tables[0].name,
        other=tables[1].name,
        columns=(columns[0], columns[1]),
        rows=labels.height,
        rows_compared=clustered.height,
        unmatched=(0, 0) if job.id is None else (tables[0].n_rows - labels.height, tables[1].n_rows - labels.height),
        adjusted_rand=adjusted_rand_score(before, after),
        adjusted_mutual_information=adjusted_mutual_info_score(before, after),
        agreement=confusion.accuracy,
        moved=moved.height,
        labels_before=tuple(map(str, confusion.classes.tolist())),
        labels_after=tuple(map(str, confusion.clusters.tolist())),
        table=tuple(tuple(row) for row in confusion.table.tolist()),
        matching={str(new): str(old) for new, old in confusion.matching.items()},
        output=None if job.output is None else str(job.output),
    )


def _label_column(table: Table, name: str | None) -> str:
    """The column of labels: the one that was named, or a column that `fit` wrote."""
    if name is not None:
        check_categories(table, name)
        return name
    default = next((column for column in (LABEL, NAME) if column in table.columns), None)
    if default is None:
        raise ParameterError(f"{table.name} has no column {LABEL}: name the column of labels with --labels COLUMN.")
    return default


def _joined(job: CompareLabelsJob, first: Table, second: Table, columns: list[str]) -> pl.DataFrame:
    """The labels of both tables as text, of the same rows: by their ids, or in their order."""
    before, after = (
        table.column(name).cast(pl.String).fill_null("").str.strip_chars()
        for table, name in zip((first, second), columns, strict=True)
    )
    if job.id is None:
        if first.n_rows != second.n_rows:
            raise InputError(
                f"{first.name} has {count(first.n_rows)}, {second.name} has {second.n_rows:,}: rows are compared in "
                "their order. Use --id COLUMN to match them by a column."
            )
        return pl.DataFrame({"row": np.arange(first.n_rows), BEFORE: before, AFTER: after})
    ids = []
    for table in (first, second):
        check_column(job.id, table.columns)
        column = table.column(job.id).cast(pl.String)
        if column.null_count() or not column.is_unique().all():
            raise InputError(f'column "{job.id}" of {table.name} has empty or repeated values: --id needs unique ones.')
        ids.append(column)
    left, right = pl.DataFrame({"row": ids[0], BEFORE: before}), pl.DataFrame({"row": ids[1], AFTER: after})
    joined = left.join(right, on="row", maintain_order="left")
    if joined.height == 0:
        raise InputError(f'no value of "{job.id}" is in both {first.name} and {second.name}.')
    return joined


def _check_number(tables: tuple[Table, Table], columns: list[str], labels: tuple[np.ndarray, np.ndarray]) -> None:
    for table, name, values in zip(tables, columns, labels, strict=True):
        distinct = len(np.unique(values))
        if distinct > MAX_LABELS:
            raise InputError(
                f'column "{name}" of {table.name} has {distinct:,} different values, and compare-labels takes '
                f"{MAX_LABELS} at most: is it the column of the clusters?"
            )
