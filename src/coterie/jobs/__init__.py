"""Jobs: everything that the command line does, with options as plain data.

Importing this module is cheap: NumPy, Polars and estimators are loaded when a job runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from coterie.core.progress import Callback, Progress, silent
from coterie.preparation import Dates, DecimalMark, Missing, ModelMissing, PreparationOptions, Scale

if TYPE_CHECKING:
    from coterie.report import inspection, results

__all__ = [
    "Budget",
    "ChooseJob",
    "CompareJob",
    "Dates",
    "DecimalMark",
    "Device",
    "Job",
    "Missing",
    "ModelMissing",
    "Number",
    "PredictJob",
    "Progress",
    "ReportJob",
    "Scale",
    "TableJob",
    "choose",
    "compare",
    "examine",
    "inspect",
    "predict",
    "report",
    "run",
]

Budget: TypeAlias = Literal["quick", "normal", "thorough"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Number: TypeAlias = int | tuple[int, int] | Literal["auto"]


@dataclass(frozen=True)
class TableJob(PreparationOptions):
    """A table, and options for preparing its rows."""

    path: Path  # in any format of `coterie.data.tables.file_formats`; ``-`` is CSV on standard input
    seed: int = 0  # of the random generator
    threads: int | None = None  # None uses all cores; the result does not depend on it
    device: Device = "auto"  # ``cuda`` is not supported yet
    # Rows of the table in memory at a time; the matrix is then in a temporary file. None reads all rows at once, unless
    # the table is too large for memory. The result does not depend on it.
    batch_rows: int | None = None
    sheet: str | None = None  # of a workbook; by default the first
    header_row: int | None = None  # line or row of the column names, counted from 1; None finds it


@dataclass(frozen=True)
class Job(TableJob):
    """A table to cluster, with the algorithm and its options."""

    method: str = "kmeans"  # one of `coterie.algorithms.ALGORITHMS`
    k: Number = "auto"  # number of clusters, or the smallest and largest to choose from
    options: Mapping[str, Any] = field(default_factory=dict)  # of the algorithm, by their names on the command line
    budget: Budget = "normal"  # effort spent on choosing K
    sample: int | None = None  # fit on this number of random rows; assign the others to the nearest cluster
    strict: bool = False  # whether a fit that has not converged is an error
    engine: str = "local"  # or ``dask`` (its threads in this process) or ``dask:tcp://host:8786`` (a cluster)
    checkpoint: Path | None = None  # state of the fit, which resumes from it if it exists; it is deleted at the end
    output: Path | None = None  # the table with its clusters
    safe_csv: bool = False  # write a quote before text in CSV that a spreadsheet program would run as a formula
    model: Path | None = None  # the fitted model
    report: Path | None = None  # a report about the result (.html)
    static: bool = False  # write the report without JavaScript, with a static map
    animate: Path | None = None  # an animation of the fit (.html, .gif or .mp4); it is also part of the report
    force: bool = False  # overwrite existing files, and replace existing columns


@dataclass(frozen=True)
class PredictJob:
    """A table whose rows are assigned to the clusters of a fitted model; other fields are as for a `Job`."""

    model: Path  # a file that a `Job` wrote, or `coterie.save`
    path: Path  # the table, with the columns that the model was fitted to
    proba: bool = False  # write the probability of every cluster
    distance: bool = False  # write the distance to every center
    missing: ModelMissing = "auto"  # ``auto``: fill or ignore missing values if the fit did, otherwise an error
    batch_rows: int | None = None
    sheet: str | None = None
    header_row: int | None = None
    output: Path | None = None
    safe_csv: bool = False
    force: bool = False


@dataclass(frozen=True)
class ChooseJob(TableJob):
    """A table whose number of clusters is chosen by `criteria`; by default by those of the `budget`."""

    method: str = "kmeans"
    k: Number = "auto"
    criteria: tuple[str, ...] = ()
    budget: Budget = "normal"
    report: Path | None = None
    static: bool = False
    force: bool = False


@dataclass(frozen=True)
class CompareJob(TableJob):
    """A table, and the algorithms to compare on it, each with every number of clusters."""

    methods: tuple[str, ...] = ()
    k: Number = "auto"
    budget: Budget = "quick"
    report: Path | None = None
    static: bool = False
    force: bool = False


@dataclass(frozen=True)
class ReportJob(TableJob):
    """A table with existing clusters, to be described in a report."""

    model: Path | None = None  # a file that a `Job` wrote; rows are assigned to its clusters
    labels: str | None = None  # column with the cluster of each row; -1 and empty cells mean no cluster
    output: Path = Path("report.html")
    static: bool = False
    force: bool = False


def run(job: Job, callback: Callback | None = None) -> results.JobResult:
    """Cluster a table.

    Parameters
    ----------
    job : Job
    callback : callable or None, default=None
        Called with a `Progress` at the start of each stage, and repeatedly during long ones. If it returns True during
        a fit, the fit stops with the best result so far.

    Returns
    -------
    JobResult

    Raises
    ------
    InputError
        If the data cannot be clustered with these options; the message suggests a remedy.
    ParameterError
        If an option has an invalid value.
    FileExistsError
        If an output file exists and `job.force` is false. No file is written then.
    NotConvergedError
        If `job.strict` and the fit has not converged. No file is written then.
    """
    from coterie.jobs.fit_job import execute

    return execute(job, callback or silent)


def choose(job: ChooseJob, callback: Callback | None = None) -> results.ChoiceResult:
    """Choose the number of clusters of a table; errors and `callback` are as in `run`."""
    from coterie.jobs.choose_k_job import execute

    return execute(job, callback or silent)


def compare(job: CompareJob, callback: Callback | None = None) -> results.ComparisonResult:
    """Run several algorithms on the same rows; errors and `callback` are as in `run`."""
    from coterie.jobs.compare_job import execute

    return execute(job, callback or silent)


def report(job: ReportJob, callback: Callback | None = None) -> results.JobResult:
    """Write a report about existing clusters; errors and `callback` are as in `run`."""
    from coterie.jobs.report_job import execute

    return execute(job, callback or silent)


def predict(job: PredictJob, callback: Callback | None = None) -> results.PredictionResult:
    """Assign rows to the clusters of a fitted model; errors and `callback` are as in `run`."""
    from coterie.jobs.predict_job import execute

    return execute(job, callback or silent)


def inspect(path: Path) -> inspection.TableInfo | inspection.ModelInfo:
    """Describe a table or a model file."""
    from coterie.jobs.info import describe

    return describe(path)


def examine() -> inspection.MachineInfo:
    """Describe the machine and the installation, and list what is missing."""
    from coterie.jobs.doctor import examine

    return examine()


def warm(callback: Callback | None = None) -> inspection.CompiledKernels:
    """Compile all kernels, so that no later call has to wait for the compiler."""
    from coterie.jobs.kernel_compilation import compile_all

    return compile_all(callback or silent)
