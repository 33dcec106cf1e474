"""What a job found, as plain data: every renderer starts from here."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coterie.report.choice import Choice


@dataclass(frozen=True)
class SkippedColumn:
    """A column that took no part, and why: ``text``, ``identifier``, ``constant`` …"""

    name: str
    reason: str


@dataclass(frozen=True)
class Trait:
    """How far a cluster's mean lies from the mean of all rows, in standard deviations of all rows."""

    column: str
    deviation: float


@dataclass(frozen=True)
class ClusterSummary:
    """One line of the result: a cluster, its size, its means in the table's own units, what sets it apart."""

    label: int
    rows: int
    share: float
    means: dict[str, float]
    stands_out_by: tuple[Trait, ...]
    silhouette: float | None = None  # mean of its rows; None where it has no meaning or was not taken


@dataclass(frozen=True)
class JobResult:
    """All that a finished job has to say.

    Attributes
    ----------
    source : str
        Name of the file read.
    rows, rows_used : int
        Rows in the file, and rows that took part.
    n_columns : int
        Columns in the file.
    columns, categories : tuple of str
        Columns that took part as numbers, and as categories.
    skipped : tuple of SkippedColumn
    scale : str
        How the columns were scaled: ``standard``, ``robust``, ``minmax`` or ``none``.
    missing : str
        What was done about missing values, in words.
    title : str
        What the algorithm is called in a sentence.
    options : dict
        Parameters of the estimator that were not left to it.
    scores : dict of float
        What the fit made as small, or as large, as it could, on the scaled columns: ``inertia`` …
    iterations : int or None
        Steps of the best start; None where an algorithm has no steps.
    seconds : float
        Time of the fit alone, without reading and writing.
    choice : Choice or None
        How `k` was chosen, if it was.
    labels : ndarray of shape (rows,)
        Cluster of each row of the file; -1 where the row took no part.
    notes : tuple of str
        What was decided on the reader's behalf.
    warnings : tuple of str
        What the reader should know before trusting the result.
    output : str or None
        File written, if any.
    added : tuple of str
        Columns that it has beside those of the source.
    model : str or None
        File of the fitted model, if one was written.
    """

    source: str
    method: str
    rows: int
    rows_used: int
    n_columns: int
    columns: tuple[str, ...]
    categories: tuple[str, ...]
    skipped: tuple[SkippedColumn, ...]
    scale: str
    missing: str
    title: str
    k: int
    seed: int
    options: dict[str, Any]
    scores: dict[str, float]
    iterations: int | None
    converged: bool
    seconds: float
    clusters: tuple[ClusterSummary, ...]
    labels: "NDArray[Any]" = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: str | None = None
    added: tuple[str, ...] = ()
    model: str | None = None
    choice: "Choice | None" = None
