"""The table of a job: a file, or a data frame in memory."""

from coterie.core.progress import Callback, Progress
from coterie.data.tables.frame_table import frame_table
from coterie.data.tables.read_errors import table_name
from coterie.data.tables.reader import Table, read
from coterie.jobs import TableJob


def job_table(job: TableJob, callback: Callback) -> Table:
    """Read the file of the job, or take its data frame."""
    callback(Progress(f"reading {table_name(job.path)}"))
    if job.frame is not None:
        return frame_table(job.frame)
    return read(job.path, job.batch_rows, sheet=job.sheet, header_row=job.header_row, sql=job.sql)
