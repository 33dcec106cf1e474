"""The table of a job: a file, or a data frame in memory."""

from coterie.core.progress import Callback, Progress
from coterie.data.tables.frame_table import frame_table
from coterie.data.tables.read_errors import table_name
from coterie.data.tables.reader import Table, read
from coterie.jobs import TableJob
from coterie.preparation.long_series import wide_series


def job_table(job: TableJob, callback: Callback) -> Table:
    """Read the file of the job, or take its data frame; long tables of series get one row for each series."""
    callback(Progress(f"reading {table_name(job.path)}"))
    if job.frame is not None:
        table: Table = frame_table(job.frame)
    else:
        table = read(job.path, job.batch_rows, sheet=job.sheet, header_row=job.header_row, sql=job.sql)
    return wide_series(table, job.series, job) if job.series else table
