"""What a job found, as plain data: every renderer starts from here."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    columns : tuple of str
        Columns that took part.
    skipped : tuple of SkippedColumn
    scale : str
        How the columns were scaled: ``standard``, ``robust``, ``minmax`` or ``none``.
    missing : str
        What was done about missing values, in words.
    inertia : float
        Sum of squared distances of rows to their centre, on the scaled columns.
    seconds : float
        Time of the fit alone, without reading and writing.
    labels : ndarray of shape (rows,)
        Cluster of each row of the file; -1 where the row took no part.
    notes : tuple of str
        What was decided on the reader's behalf.
    warnings : tuple of str
        What the reader should know before trusting the result.
    output : str or None
        File written, if any.
    """

    source: str
    method: str
    rows: int
    rows_used: int
    n_columns: int
    columns: tuple[str, ...]
    skipped: tuple[SkippedColumn, ...]
    scale: str
    missing: str
    k: int
    seed: int
    n_init: int
    inertia: float
    iterations: int
    converged: bool
    seconds: float
    clusters: tuple[ClusterSummary, ...]
    labels: "NDArray[Any]" = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: str | None = None
