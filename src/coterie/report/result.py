"""What a job found, as plain data: every renderer starts from here."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.report.table import TableResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coterie.report.choice import Choice


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
    name: str | None = None  # where clusters came with names

    @property
    def called(self) -> str:
        """Its name, or its number."""
        return str(self.label) if self.name is None else self.name


@dataclass(frozen=True, kw_only=True)
class JobResult(TableResult):
    """All that a finished job has to say.

    Attributes
    ----------
    method, title : str
        The algorithm, and what it is called in a sentence.
    k : int
        Number of clusters.
    options : dict
        Parameters of the estimator that were not left to it.
    scores : dict of float
        What the fit made as small, or as large, as it could, on the scaled columns: ``inertia`` …
    iterations : int or None
        Steps of the best start; None where an algorithm has no steps.
    seconds : float or None
        Time of the fit alone, without reading and writing; None where there was none.
    labels : ndarray of shape (rows,)
        Cluster of each row of the file; -1 where the row took no part.
    output : str or None
        File written, if any.
    added : tuple of str
        Columns that it has beside those of the source.
    model : str or None
        File of the fitted model, if one was written.
    animation : str or None
        File that plays the fit, if one was written.
    choice : Choice or None
        How `k` was chosen, if it was.
    """

    method: str
    title: str
    k: int
    options: dict[str, Any]
    scores: dict[str, float]
    iterations: int | None
    converged: bool
    seconds: float | None
    clusters: tuple[ClusterSummary, ...]
    labels: "NDArray[Any]" = field(repr=False, compare=False)
    output: str | None = None
    added: tuple[str, ...] = ()
    model: str | None = None
    animation: str | None = None
    choice: "Choice | None" = None
