"""Jobs: everything that the command line does, with options as plain data.

Importing this module is cheap: NumPy, Polars and estimators are loaded when a job runs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from coterie.algorithms import OPTIONS
from coterie.core.progress import Callback, Progress, silent
from coterie.core.repr_html import ReprHTMLMixin
from coterie.errors import InputError, ParameterError
from coterie.exports import Dialect, ExportFormat
from coterie.preparation import Dates, DecimalMark, Missing, ModelMissing, PreparationOptions, Scale
from coterie.preparation.name_lists import split_names

if TYPE_CHECKING:
    from coterie.report import inspection, results

__all__ = [
    "Budget",
    "ChooseJob",
    "CompareJob",
    "CompareLabelsJob",
    "Dates",
    "DecimalMark",
    "Device",
    "Dialect",
    "ExportFormat",
    "ExportJob",
    "Job",
    "MapKind",
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
    "compare_labels",
    "examine",
    "export",
    "inspect",
    "predict",
    "report",
    "run",
]

Budget: TypeAlias = Literal["quick", "normal", "thorough"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]
MapKind: TypeAlias = Literal["auto", "axes", "neighbours"]
Number: TypeAlias = int | tuple[int, int] | Literal["auto"]

OTHER_NAMES = {
    "method": "algorithm",
    "n_clusters": "k",
    "n_components": "k",
    "random_state": "seed",
    "n_jobs": "threads",
}
FILES = ("checkpoint", "output", "model", "profiles", "report", "animate")  # options that are paths, and may be strings
COLUMN_LISTS = tuple(each.name for each in fields(PreparationOptions) if each.default == ())  # names of columns


@dataclass(frozen=True, repr=False)
class TableJob(ReprHTMLMixin, PreparationOptions):
    """A table, and options for preparing its rows."""

    # A file in a format of `coterie.data.tables.file_formats`, ``-`` for CSV on standard input, or a data frame, which
    # becomes `frame`.
    path: Path
    seed: int = 0  # of the random generator
    threads: int | None = None  # None uses all cores; the result does not depend on it
    device: Device = "auto"  # ``cuda`` is for some algorithms
    # Rows of the table in memory at a time; the matrix is then in a temporary file. None reads all rows at once, unless
    # the table is too large for memory. The result does not depend on it.
    batch_rows: int | None = None
    sheet: str | None = None  # of a workbook; by default the first
    header_row: int | None = None  # line or row of the column names, counted from 1; None finds it
    sql: str | None = None  # query in a DuckDB database, or about the table ``data`` in the file
    series: tuple[str, ...] = ()  # of a long table of series: the columns of their names, of times and of values
    frame: Any = field(default=None, repr=False, compare=False)  # data frame in memory
    in_python: bool = field(default=False, repr=False, compare=False)  # whether remedies name options of this class

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Reject unknown options with the name to use."""
        known = {each.name for each in fields(cls)}
        for name in options:
            if name not in known:
                raise TypeError(_unknown_option(cls.__name__, name, known))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | PathLike):
            from coterie.data.tables.read_errors import DATA_FRAME

            object.__setattr__(self, "frame", self.path)
            object.__setattr__(self, "path", DATA_FRAME)
            object.__setattr__(self, "in_python", True)
        for each in fields(self):
            if each.default == ():  # several names; a string has them separated by commas, as on the command line
                value = getattr(self, each.name)
                names = split_names((value,)) if isinstance(value, str) else tuple(value)
                object.__setattr__(self, each.name, names)
        if self.series and self.id is None:
            object.__setattr__(self, "id", self.series[0])
        if self.series and getattr(self, "algorithm", None) == "kmeans":  # K-means of series
            object.__setattr__(self, "algorithm", "kmeans-dtw")
        for name in ("path", *FILES):
            if isinstance(value := getattr(self, name, None), str):
                object.__setattr__(self, name, Path(value))

    def __str__(self) -> str:
        """The table, and the options that are not the defaults."""
        options = [str(self.path)] if self.frame is not None else [repr(str(self.path))]
        for each in fields(self):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            if each.repr and each.name != "path" and (value := getattr(self, each.name)) != default:
                options.append(f"{each.name}={(str(value) if isinstance(value, Path) else value)!r}")
        return f"{type(self).__name__}({', '.join(options)})"


def _unknown_option(job: str, name: str, known: set[str]) -> str:
    """The message about an option that a job does not have."""
    if name in OPTIONS and "options" in known:
        return f"{job} has no option {name!r}: options of algorithms are options={{{name!r}: ...}}"
    similar = OTHER_NAMES.get(name) or next(iter(get_close_matches(name, sorted(known), 1)), None)
    public = sorted(known - {"frame", "in_python"})
    remedy = f"use {similar}=" if similar in known else f"options are {', '.join(public)}"
    return f"{job} has no option {name!r}: {remedy}"


@dataclass(frozen=True, repr=False)
class Job(TableJob):
    """A table to cluster, with the algorithm and its options: what ``coterie fit`` does, from Python.

    Examples
    --------
    >>> import pandas as pd
    >>> from coterie import Job
    >>> frame = pd.DataFrame({"age": [21, 22, 23, 60, 61, 62], "visits": [9, 8, 9, 1, 2, 1]})
    >>> result = Job(frame, k=2).run()
    >>> [cluster.rows for cluster in result.clusters]
    [3, 3]
    """

    algorithm: str = "kmeans"  # one of `coterie.algorithms.ALGORITHMS`
    k: Number = "auto"  # number of clusters, or the smallest and largest to choose from
    options: Mapping[str, Any] = field(default_factory=dict)  # of the algorithm, by their names on the command line
    budget: Budget = "normal"  # effort spent on choosing K
    sample: int | None = None  # fit on this number of random rows; assign the others to the nearest cluster
    strict: bool = False  # whether a fit that has not converged is an error
    engine: str = "local"  # ``dask`` (its threads here), or a cluster: ``dask:tcp://host:8786``, ``ray``
    checkpoint: Path | None = None  # state of the fit, which resumes from it if it exists; it is deleted at the end
    output: Path | None = None  # the table with its clusters
    safe_csv: bool = False  # write a quote before text in CSV that a spreadsheet program would run as a formula
    model: Path | None = None  # the fitted model
    names: tuple[str, ...] = ()  # of the clusters, in the order of their labels; ``("auto",)`` makes them from rules
    profiles: Path | None = None  # a table with one row for each cluster
    report: Path | None = None  # a report about the result (.html)
    static: bool = False  # write the report without JavaScript, with a static map
    # The map of the report: ``axes`` are principal axes; ``neighbours`` adds a map that keeps neighbours together;
    # ``auto`` adds it if two axes show little of the variance.
    map: MapKind = "auto"
    animate: Path | None = None  # an animation of the fit (.html, .gif or .mp4); it is also part of the report
    force: bool = False  # overwrite existing files, and replace existing columns

    def run(self, callback: Callback | None = None, *, verbose: int = 0) -> results.JobResult:
        """Cluster the table: see `coterie.jobs.run`. With ``verbose=1`` a progress bar is shown."""
        from coterie.core.progress_bar import shown_progress

        with shown_progress(callback, verbose) as progress:
            return run(replace(self, in_python=True), progress)


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
    sql: str | None = None
    series: tuple[str, ...] = ()
    output: Path | None = None
    safe_csv: bool = False
    force: bool = False


@dataclass(frozen=True, repr=False)
class ChooseJob(TableJob):
    """A table whose number of clusters is chosen by `criteria`; by default by those of the `budget`."""

    algorithm: str = "kmeans"
    k: Number = "auto"
    criteria: tuple[str, ...] = ()
    budget: Budget = "normal"
    report: Path | None = None
    static: bool = False
    force: bool = False


@dataclass(frozen=True, repr=False)
class CompareJob(TableJob):
    """A table, and the algorithms to compare on it, each with every number of clusters."""

    algorithms: tuple[str, ...] = ()
    k: Number = "auto"
    budget: Budget = "quick"
    report: Path | None = None
    static: bool = False
    force: bool = False


@dataclass(frozen=True)
class CompareLabelsJob:
    """Two tables of the same rows, each with a column of labels."""

    path: Path
    other: Path
    labels: str | None = None  # column of labels in both; by default the column that a `Job` writes
    id: str | None = None  # column that identifies the rows; by default their order does
    output: Path | None = None  # the rows that moved to another cluster
    force: bool = False


@dataclass(frozen=True, repr=False)
class ReportJob(TableJob):
    """A table with existing clusters, to be described in a report."""

    model: Path | None = None  # a file that a `Job` wrote; rows are assigned to its clusters
    labels: str | None = None  # column with the cluster of each row; -1 and empty cells mean no cluster
    output: Path = Path("report.html")
    static: bool = False
    map: MapKind = "auto"  # as for a `Job`
    force: bool = False


@dataclass(frozen=True)
class ExportJob:
    """A fitted model, to be written as code that predicts without coterie."""

    model: Path  # a file that a `Job` wrote, or `coterie.save`
    to: ExportFormat
    output: Path
    table: str = "data"  # name of the table in SQL
    dialect: Dialect = "duckdb"  # of SQL
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

    start = time.perf_counter()
    result: results.JobResult = _executed(execute, job, callback)
    return replace(result, total_seconds=time.perf_counter() - start)


def _executed(execute: Any, job: TableJob, callback: Callback | None) -> Any:
    """The result of a job; from Python, errors name options of the job instead of those of the command line."""
    try:
        return execute(job, callback or silent)
    except (InputError, ParameterError) as error:
        if job.in_python:
            from coterie.jobs.python_remedies import as_job_options

            error.args = (as_job_options(str(error)), *error.args[1:])
        raise


def choose(job: ChooseJob, callback: Callback | None = None) -> results.ChoiceResult:
    """Choose the number of clusters of a table; errors and `callback` are as in `run`."""
    from coterie.jobs.choose_k_job import execute

    return _executed(execute, job, callback)


def compare(job: CompareJob, callback: Callback | None = None) -> results.ComparisonResult:
    """Run several algorithms on the same rows; errors and `callback` are as in `run`."""
    from coterie.jobs.compare_job import execute

    return _executed(execute, job, callback)


def compare_labels(job: CompareLabelsJob, callback: Callback | None = None) -> results.LabelComparison:
    """Compare two columns of labels; errors and `callback` are as in `run`."""
    from coterie.jobs.compare_labels_job import execute

    return execute(job, callback or silent)


def report(job: ReportJob, callback: Callback | None = None) -> results.JobResult:
    """Write a report about existing clusters; errors and `callback` are as in `run`."""
    from coterie.jobs.report_job import execute

    return execute(job, callback or silent)


def predict(job: PredictJob, callback: Callback | None = None) -> results.PredictionResult:
    """Assign rows to the clusters of a fitted model; errors and `callback` are as in `run`."""
    from coterie.jobs.predict_job import execute

    return execute(job, callback or silent)


def export(job: ExportJob) -> results.ExportResult:
    """Write a fitted model as SQL, ONNX or Python code; errors are as in `run`."""
    from coterie.jobs.export_job import execute

    return execute(job)


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
