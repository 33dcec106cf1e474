"""Jobs: everything that the command line does, with options as plain data.

Importing this module is cheap: NumPy, Polars and estimators are loaded when a job runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from coterie.core.progress import Callback, Progress, silent
from coterie.preparation import Missing, ModelMissing, PreparationOptions, Scale

if TYPE_CHECKING:
    from coterie.report import inspection, results

__all__ = [
    "Budget",
    "ChooseJob",
    "CompareJob",
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
    """A table, and options for preparing its rows.

    Attributes
    ----------
    path : Path
        The table, in any format of `coterie.data.tables.file_formats`; ``-`` is CSV on standard input.
    columns : tuple of str
        Columns to use; by default every numeric column that is not an identifier.
    exclude : tuple of str
        Columns to exclude.
    id, weight : str or None
        Columns of row names and of row weights.
    one_hot : tuple of str
        Categorical columns to encode as a column of zeros and ones for each value.
    scale : {"auto", "standard", "robust", "minmax", "none"}
        Scaling of columns. ``auto`` is ``standard`` for a table and ``none`` for arrays, whose columns are assumed
        to have the same unit.
    missing : {"error", "drop", "mean", "median", "ignore"}
        Treatment of missing values; ``ignore`` passes them to the algorithm.
    seed : int
        Seed of the random generator.
    threads : int or None
        Number of threads; None uses all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}
        Device to use; ``cuda`` is not supported yet.
    batch_rows : int or None
        Rows of the table in memory at a time; the matrix is then in a temporary file. None reads all rows at once,
        unless the table is too large for memory. The result does not depend on it.
    """

    path: Path
    seed: int = 0
    threads: int | None = None
    device: Device = "auto"
    batch_rows: int | None = None


@dataclass(frozen=True)
class Job(TableJob):
    """A table to cluster, with the algorithm and its options.

    Attributes
    ----------
    method : str
        The algorithm, one of `coterie.algorithms.ALGORITHMS`.
    k : int, (int, int) or "auto"
        Number of clusters, or the smallest and largest to choose from.
    options : mapping
        Options of the algorithm by their names on the command line.
    budget : {"quick", "normal", "thorough"}
        Effort spent on choosing K.
    sample : int or None
        Fit on this number of random rows; assign the others to the nearest cluster.
    strict : bool
        Whether a fit that has not converged is an error.
    engine : str
        ``local``, ``dask`` (its threads in this process) or ``dask:tcp://host:8786`` (a cluster).
    checkpoint : Path or None
        File in which the state of the fit is saved. If it exists, the fit resumes from it; it is deleted at the end.
    output : Path or None
        File for the table with its clusters.
    safe_csv : bool
        Write a quote before text in CSV that a spreadsheet program would run as a formula.
    model : Path or None
        File for the fitted model.
    report : Path or None
        File for a report about the result (.html).
    static : bool
        Write the report without JavaScript, with a static map.
    animate : Path or None
        File for an animation of the fit (.html, .gif or .mp4); it is also part of the report.
    force : bool
        Overwrite existing files, and replace existing columns.
    """

    method: str = "kmeans"
    k: Number = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = "normal"
    sample: int | None = None
    strict: bool = False
    engine: str = "local"
    checkpoint: Path | None = None
    output: Path | None = None
    safe_csv: bool = False
    model: Path | None = None
    report: Path | None = None
    static: bool = False
    animate: Path | None = None
    force: bool = False


@dataclass(frozen=True)
class PredictJob:
    """A table whose rows are assigned to the clusters of a fitted model.

    Attributes
    ----------
    model : Path
        A file that a `Job` wrote, or `coterie.save`.
    path : Path
        The table, with the columns that the model was fitted to.
    proba, distance : bool
        Write the probability of every cluster, and the distance to every center.
    missing : {"auto", "error", "drop", "ignore"}
        Treatment of missing values; ``auto`` is that of the fit: fill or ignore them if the fit did, otherwise an
        error.
    batch_rows, output, safe_csv, force
        As for a `Job`.
    """

    model: Path
    path: Path
    proba: bool = False
    distance: bool = False
    missing: ModelMissing = "auto"
    batch_rows: int | None = None
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
    """A table with existing clusters, to be described in a report.

    Attributes
    ----------
    model : Path or None
        A file that a `Job` wrote; rows are assigned to its clusters.
    labels : str or None
        Column with the cluster of each row; -1 and empty cells mean no cluster.
    output : Path
        File for the report (.html).
    static, force : bool
        As for a `Job`.
    """

    model: Path | None = None
    labels: str | None = None
    output: Path = Path("report.html")
    static: bool = False
    force: bool = False


def run(job: Job, callback: Callback | None = None) -> results.JobResult:
    """Run `job`.

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
