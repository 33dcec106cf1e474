"""Files of a job that the workers of a cluster read; a random sample of their rows is used here."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.formatting import count
from coterie.core.packages import required
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, ClusterEngine
from coterie.core.stats import Stats
from coterie.data import as_source, label_files, row_sample
from coterie.data.files import FileSource
from coterie.data.locations import find_files
from coterie.data.open_files import scan_files
from coterie.data.tables.frame_table import sample_table
from coterie.data.tables.read_errors import STANDARD_INPUT
from coterie.data.tables.reader import Table
from coterie.data.tables.table_file import IN_PARTS, open_file
from coterie.errors import InputError, ParameterError
from coterie.jobs import Job
from coterie.preparation.column_selection import LABEL
from coterie.preparation.preparation import Preparation
from coterie.report.results import ClusterSummary, JobResult

TABLES = tuple(suffix for suffix in IN_PARTS if suffix != ".npy")  # an array has neither names nor scales of columns
SAMPLE_ROWS = 100_000  # rows by which columns are prepared, K is chosen and clusters are described


@dataclass(frozen=True)
class SampledRows(Stats):
    """Rows of a sample, in their order."""

    rows: Any  # (m, d)

    def __add__(self, other: "SampledRows") -> "SampledRows":
        return SampledRows(np.concatenate([self.rows, other.rows]))


@dataclass(frozen=True)
class ClusterRows:
    """All rows in the files, a connected engine, and a table of a random sample of the rows."""

    source: FileSource
    engine: ClusterEngine
    n_workers: int
    table: Table
    numbers: NDArray[np.integer]  # of the rows of the table
    notes: tuple[str, ...]

    def prepared(self, preparation: Preparation, weight: str | None) -> FileSource:
        """The rows as an algorithm needs them; the workers prepare those that they read."""
        dtype = np.dtype(np.float32 if preparation.single else np.float64)
        columns = list(preparation.numbers)
        return replace(self.source, columns=columns, dtype=dtype, weight=weight, functions=(preparation.of_numbers,))

    def write_labels(self, model: Any, rows: FileSource, pattern: Path | None, force: bool) -> None:
        """Let the workers write the clusters of their rows."""
        if pattern is not None:
            model.set_params(engine=self.engine)
            model.predict_to(rows, pattern, overwrite=force)
            model.set_params(engine="auto")
        del model.feature_names_in_  # of the files; rows of a pipeline have none, as after a fit without a cluster

    def of_all_rows(self, result: JobResult, labels: Any, output: Path | None) -> JobResult:
        """The result for the sample, with numbers of rows of all files."""
        sizes = np.bincount(labels[labels >= 0], minlength=result.k)
        return replace(
            result, rows=self.source.shape[0], rows_used=len(labels), labels=labels, clusters=_resized(result, sizes),
            notes=(*self.notes, *result.notes), output=None if output is None else str(output),
            added=() if output is None else (LABEL,),
        )  # fmt: skip


def _resized(result: JobResult, sizes: Any) -> tuple[ClusterSummary, ...]:
    """The clusters with their numbers of all rows; shares of weights stay those of the sample."""
    total = int(sizes.sum())
    return tuple(
        replace(each, rows=int(sizes[each.label]), share=each.share if result.weight else sizes[each.label] / total)
        for each in result.clusters
    )


def is_read_by_workers(job: Job) -> bool:
    """Whether the engine of a job is a cluster, and its table is in files that can be read in parts."""
    name, _, address = job.engine.partition(":")
    is_cluster = name == "ray" or (name == "dask" and bool(address))
    is_file = job.frame is None and job.sql is None and not job.series and job.path != STANDARD_INPUT
    return is_cluster and is_file and (job.path.suffix.lower() in TABLES or not job.path.suffix)


def check_cluster_job(job: Job) -> None:
    """Reject options that need all rows here."""
    rejected = {"--sample": job.sample is not None, "--animate": job.animate is not None}
    for option, is_used in rejected.items():
        if is_used:
            raise ParameterError(f"{option} needs the rows in one memory: leave it out, or leave out --engine.")
    if job.output is not None:
        try:
            label_files.as_pattern(job.output)
        except ParameterError:
            raise ParameterError(
                f'--engine {job.engine} lets each worker write the clusters of its rows: "{job.output}" must be a '
                "pattern of Parquet files, such as --output 'labels/*.parquet'."
            ) from None


@contextmanager
def cluster_rows(job: Job, callback: Callback) -> Iterator[ClusterRows]:
    """Connect to the cluster of a job, and open its files; at the end, also after Ctrl-C, the cluster is freed."""
    with ExitStack() as stack:
        engine, n_workers = stack.enter_context(connected_engine(job.engine))
        columns, others = _numeric_columns(job.path)
        source = scan_files(job.path, columns=columns, cache="none")
        n, size = source.shape[0], min(source.shape[0], SAMPLE_ROWS)
        callback(Progress(f"reading {job.path.name} on {count(n_workers, 'worker')}"))
        numbers = row_sample.sample_rows(n, size)
        table = _sample_table(job.path, source, engine, numbers)
        notes = [] if not others else [f"skipped, because workers read numbers only: {', '.join(others)}."]
        if size < n:
            notes.append(
                f"columns were prepared, and clusters described, by a random sample of {count(size, 'row')}; the fit "
                f"and the sizes of clusters are of all {count(n, 'row')}."
            )
        yield ClusterRows(source, engine, n_workers, table, numbers, tuple(notes))


@contextmanager
def connected_engine(engine: str) -> Iterator[tuple[Any, int]]:
    """The engine of a cluster, and its number of workers; 0: Dask in this process."""
    name, _, address = engine.partition(":")
    if name == "ray":
        from coterie.engines.ray import connection

        with connection(engine) as (ray_engine, n_workers):
            yield ray_engine, n_workers
        return
    with required('--engine dask needs one more package. Run: pip install "coterie[dask]"'):
        from coterie.engines.dask import Dask, connected
    with connected(address) as n_workers:
        yield Dask(), n_workers


def _numeric_columns(path: Path) -> tuple[list[str], list[str]]:
    """Names of the columns of the first file that are numbers, and of the others."""
    schema = open_file(find_files(path)[0], in_parts=True).schema
    numeric = [name for name, dtype in schema.items() if dtype.is_numeric()]
    if not numeric:
        raise InputError(f'"{path}" has no column of numbers: leave out --engine, so that its columns are converted.')
    return numeric, [name for name in schema if name not in numeric]


def _sample_table(path: Path, source: FileSource, engine: ClusterEngine, numbers: Any) -> Table:
    """The rows with these numbers, which the workers send."""
    import polars as pl

    rows = engine.sum(partial(_sampled, numbers), as_source(source)).rows
    return sample_table(pl.DataFrame(rows, schema=source.columns), str(path))


def _sampled(numbers: Any, chunk: Chunk) -> SampledRows:
    start, stop = np.searchsorted(numbers, [chunk.first, chunk.first + len(chunk.X)])
    return SampledRows(chunk.X[numbers[start:stop] - chunk.first])
