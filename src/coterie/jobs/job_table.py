"""The table of a job, and its rows that are in a cluster."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from coterie.core.formatting import count
from coterie.core.progress import Callback, Progress
from coterie.data.tables.frame_table import frame_table
from coterie.data.tables.read_errors import table_name
from coterie.data.tables.reader import Table, read
from coterie.jobs import TableJob
from coterie.preparation.fit_preparation import PreparedTable, selected_rows
from coterie.preparation.long_series import wide_series
from coterie.preparation.scaling import blocks


def job_table(job: TableJob, callback: Callback) -> Table:
    """Read the file of the job, or take its data frame; long tables of series get one row for each series."""
    callback(Progress(f"reading {table_name(job.path)}"))
    if job.frame is not None:
        table: Table = frame_table(job.frame)
    else:
        table = read(job.path, job.batch_rows, sheet=job.sheet, header_row=job.header_row, sql=job.sql)
    return wide_series(table, job.series, job) if job.series else table


def clustered_rows(
    table: Table, prepared: PreparedTable, labels: NDArray[np.integer]
) -> tuple[PreparedTable, NDArray[np.integer]]:
    """The prepared rows with a label of at least 0, of which means and silhouettes are computed; and their labels."""
    is_member = labels >= 0
    if is_member.all():
        return prepared, labels
    return select_rows(table, prepared, prepared.rows.expand(labels) >= 0), labels[is_member]


def select_rows(table: Table, prepared: PreparedTable, table_mask: NDArray[np.bool_]) -> PreparedTable:
    """The prepared rows that are also in a mask of the rows of the table."""
    rows, mask = prepared.rows, table_mask[prepared.rows.row_mask]
    n_without = int((~mask).sum())
    note = f"{count(n_without)} in no cluster left out"
    treatment = rows.treatment if n_without == 0 else note if rows.treatment == "none" else f"{rows.treatment}; {note}"
    X = selected_rows(table, rows.X, mask)
    has_missing = rows.has_missing and any(bool(np.isnan(block).any()) for block in blocks(X))
    rows = replace(
        rows, X=X, model_input=X, row_mask=rows.row_mask & table_mask, treatment=treatment, has_missing=has_missing
    )
    return replace(prepared, rows=rows, weight=None if prepared.weight is None else prepared.weight[mask])
