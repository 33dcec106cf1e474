"""Jobs: a table in, clusters out. All that the command line does goes through here.

Importing this module is cheap: arrays, tables and estimators are loaded when a job runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from coterie.report.result import JobResult

__all__ = ["Job", "JobResult", "Missing", "Scale", "run"]

Scale: TypeAlias = Literal["auto", "standard", "robust", "minmax", "none"]
Missing: TypeAlias = Literal["error", "drop", "mean", "median"]


@dataclass(frozen=True)
class Job:
    """A table to cluster, and how.

    Attributes
    ----------
    path : Path
        The table: ``.csv``, ``.tsv``, ``.parquet`` or ``.npy``.
    method : {"kmeans"}
        The algorithm.
    k : int
        Number of clusters.
    columns : tuple of str
        Columns to use; none named means every numeric column that is not an identifier.
    exclude : tuple of str
        Columns to leave out.
    scale : {"auto", "standard", "robust", "minmax", "none"}
        How to make columns comparable. ``auto`` is ``standard`` for a table and ``none`` for ``.npy``, whose
        columns are taken to share a unit.
    missing : {"error", "drop", "mean", "median"}
        What to do about missing values.
    seed : int
        Seed of the random starts.
    n_init : int
        Number of starts; the best one counts.
    output : Path or None
        Where to write the table with its clusters: ``.csv``, ``.tsv`` or ``.parquet``.
    force : bool
        Whether `output` may replace a file, or a column, that is there already.
    """

    path: Path
    method: Literal["kmeans"] = "kmeans"
    k: int = 8
    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    scale: Scale = "auto"
    missing: Missing = "error"
    seed: int = 0
    n_init: int = 10
    output: Path | None = None
    force: bool = False


def run(job: Job, progress: Callable[[str], None] | None = None) -> JobResult:
    """Run `job`.

    Parameters
    ----------
    job : Job
    progress : callable, optional
        Called with a few words at the start of each stage.

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
        If `job.output` exists and `job.force` is false. Nothing is written then.
    """
    from coterie.jobs.runner import execute

    return execute(job, progress or (lambda stage: None))
