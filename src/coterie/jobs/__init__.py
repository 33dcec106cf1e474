"""Jobs: a table in, clusters out. All that the command line does goes through here.

Importing this module is cheap: arrays, tables and estimators are loaded when a job runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from coterie.report import (
        ChoiceResult,
        ComparisonResult,
        JobResult,
        MachineInfo,
        ModelInfo,
        PredictionResult,
        TableInfo,
    )

__all__ = [
    "Budget",
    "ChooseJob",
    "CompareJob",
    "Device",
    "Job",
    "Missing",
    "ModelMissing",
    "NotConvergedError",
    "Number",
    "PredictJob",
    "ReportJob",
    "Scale",
    "Step",
    "TableJob",
    "choose",
    "compare",
    "examine",
    "inspect",
    "predict",
    "report",
    "run",
]

Scale: TypeAlias = Literal["auto", "standard", "robust", "minmax", "none"]
Missing: TypeAlias = Literal["error", "drop", "mean", "median", "ignore"]
ModelMissing: TypeAlias = Literal["auto", "error", "drop", "ignore"]
Budget: TypeAlias = Literal["quick", "normal", "thorough"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Number: TypeAlias = int | tuple[int, int] | Literal["auto"]


@dataclass(frozen=True)
class Step:
    """How far a job is: what it does now, and how much of that is done where it can tell."""

    what: str
    done: int = 0
    total: int | None = None
    left: float | None = field(default=None, compare=False)  # seconds that it will still take, about


Progress: TypeAlias = Callable[[Step], None]


class NotConvergedError(RuntimeError):
    """A fit came to its last iteration before it had settled, and the job was told to be strict."""


@dataclass(frozen=True)
class TableJob:
    """A table, and how its rows become numbers.

    Attributes
    ----------
    path : Path
        The table, of any kind that `coterie.data.tables.file_formats` reads; ``-`` is CSV on standard input.
    columns : tuple of str
        Columns to use; none named means every numeric column that is not an identifier.
    exclude : tuple of str
        Columns to leave out.
    id, weight : str or None
        Columns that name the rows, and that say how much each row counts.
    one_hot : tuple of str
        Columns of categories that become a column of zeros and ones for each value.
    scale : {"auto", "standard", "robust", "minmax", "none"}
        How to make columns comparable. ``auto`` is ``standard`` for a table and ``none`` for arrays, whose
        columns are taken to share a unit.
    missing : {"error", "drop", "mean", "median", "ignore"}
        What to do about missing values; ``ignore`` leaves them to the algorithm.
    seed : int
        Seed of all that is random.
    threads : int or None
        Threads to use; None is all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda"}
        What computes. There is nothing for GPUs yet, so that ``cuda`` is refused.
    batch_rows : int or None
        Rows of the table to have in memory at a time; the matrix made of them then lies in a scratch file. None is
        all of them, unless the table is too large for that. The result does not depend on it.
    """

    path: Path
    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    one_hot: tuple[str, ...] = ()
    scale: Scale = "auto"
    missing: Missing = "error"
    seed: int = 0
    threads: int | None = None
    device: Device = "auto"
    batch_rows: int | None = None


@dataclass(frozen=True)
class Job(TableJob):
    """A table to cluster, and how.

    Attributes
    ----------
    method : str
        The algorithm, of `coterie.algorithms.METHODS`.
    k : int, (int, int) or "auto"
        Number of clusters, or the first and last of those to choose from.
    options : mapping
        Options of the algorithm by their names on the command line; what is not there is the method's own.
    budget : {"quick", "normal", "thorough"}
        How much the choice of a number of clusters may cost.
    sample : int or None
        Fit so many rows drawn at random; the others get the cluster that the fitted model says.
    strict : bool
        Whether a fit that has not converged is an error.
    engine : str
        ``local``, ``dask`` (its threads in this process) or ``dask:tcp://host:8786`` (a cluster).
    checkpoint : Path or None
        File that the fit writes itself down in as it goes, and goes on from if it is there; it is gone at the end.
    output : Path or None
        Where to write the table with its clusters.
    safe_csv : bool
        Whether to write a quote before text in CSV that a spreadsheet program would run as a formula.
    model : Path or None
        Where to write the fitted model.
    report : Path or None
        Where to write a page about the result (.html).
    static : bool
        Whether that page has no script: it is the same page, with a picture for a map that moves.
    animate : Path or None
        Where to write a page that plays the fit step by step (.html); the report has it, too.
    force : bool
        Whether files, or columns, that are there already may be replaced.
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
    """A table whose rows get clusters of a model that was fitted before.

    Attributes
    ----------
    model : Path
        A file that a `Job` wrote, or `coterie.save`.
    path : Path
        The table, with the columns that the model was fitted to.
    proba, distance : bool
        Whether to write the probability of every cluster, and the distance to every center.
    missing : {"auto", "error", "drop", "ignore"}
        What to do about missing values; ``auto`` does what the model does: it fills them if it was fitted so, ignores
        them if it was fitted so, and else refuses them.
    batch_rows : int or None
        Rows of the table to have in memory at a time, as for a `TableJob`.
    output : Path or None
        Where to write the table with its clusters.
    safe_csv : bool
        Whether to write a quote before text in CSV that a spreadsheet program would run as a formula.
    force : bool
        Whether files, or columns, that are there already may be replaced.
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
    """A table, and how to look for its number of clusters: by which criteria (none named: what `budget` says)."""

    method: str = "kmeans"
    k: Number = "auto"
    criteria: tuple[str, ...] = ()
    budget: Budget = "normal"
    report: Path | None = None
    static: bool = False
    force: bool = False


@dataclass(frozen=True)
class CompareJob(TableJob):
    """A table, and the algorithms to run on it side by side, each with every number of clusters."""

    methods: tuple[str, ...] = ()
    k: Number = "auto"
    budget: Budget = "quick"
    report: Path | None = None
    static: bool = False
    force: bool = False


@dataclass(frozen=True)
class ReportJob(TableJob):
    """A table, and clusters that its rows have already, to be told about in a page.

    Attributes
    ----------
    model : Path or None
        A file that a `Job` wrote: rows get the clusters that it says.
    labels : str or None
        The column of the table that says the cluster of each row, from any tool; -1 and nothing are no cluster.
    output : Path
        Where to write the page (.html).
    static : bool
        Whether it has no script.
    force : bool
        Whether a file that is there already may be replaced.
    """

    model: Path | None = None
    labels: str | None = None
    output: Path = Path("report.html")
    static: bool = False
    force: bool = False


def run(job: Job, progress: Progress | None = None) -> JobResult:
    """Run `job`.

    Parameters
    ----------
    job : Job
    progress : callable, optional
        Called with a `Step` at the start of each stage and, within long ones, now and then.

    Returns
    -------
    JobResult

    Raises
    ------
    InputError
        If the data cannot be clustered as asked; the message says what would help.
    ParameterError
        If an option has a value that is never right.
    FileExistsError
        If a file to be written exists and `job.force` is false. Nothing is written then.
    NotConvergedError
        If `job.strict` and the fit has not converged. Nothing is written then.
    """
    from coterie.jobs.fit_job import execute

    return execute(job, progress or silent)


def choose(job: ChooseJob, progress: Progress | None = None) -> ChoiceResult:
    """How many clusters the table of `job` has; errors and `progress` are those of `run`."""
    from coterie.jobs.choose_k_job import execute

    return execute(job, progress or silent)


def compare(job: CompareJob, progress: Progress | None = None) -> ComparisonResult:
    """Every algorithm of `job` on the same rows; errors and `progress` are those of `run`."""
    from coterie.jobs.compare_job import execute

    return execute(job, progress or silent)


def report(job: ReportJob, progress: Progress | None = None) -> JobResult:
    """Write a page about clusters that are there already; errors and `progress` are those of `run`."""
    from coterie.jobs.report_job import execute

    return execute(job, progress or silent)


def predict(job: PredictJob, progress: Progress | None = None) -> PredictionResult:
    """Clusters of a fitted model for the table of `job`; errors and `progress` are those of `run`."""
    from coterie.jobs.predict_job import execute

    return execute(job, progress or silent)


def inspect(path: Path) -> TableInfo | ModelInfo:
    """What is in the file, and what a job would do with it."""
    from coterie.jobs.info import inspect

    return inspect(path)


def examine() -> MachineInfo:
    """What this machine and this installation have, and what is missing."""
    from coterie.jobs.doctor import examine

    return examine()


def silent(step: Step) -> None:
    """What is told of progress when nobody asked."""
