"""The result of a fit as plain data, from which text, JSON and HTML are rendered."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.report.table import TableResult

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coterie.report.choice import Choice


@dataclass(frozen=True)
class Trait:
    """Difference of the mean of a cluster from the mean of all rows, in standard deviations of all rows."""

    column: str
    deviation: float


@dataclass(frozen=True)
class ClusterSummary:
    """A cluster: its size, its means in the units of the table, and the columns in which it stands out."""

    label: int
    rows: int
    share: float
    means: dict[str, float]
    stands_out_by: tuple[Trait, ...]
    silhouette: float | None = None  # mean of its rows; None if it is not defined or was not computed
    name: str | None = None  # None if clusters have no names

    @property
    def display_name(self) -> str:
        """The name of the cluster, or its label."""
        return str(self.label) if self.name is None else self.name


@dataclass(frozen=True, kw_only=True)
class JobResult(TableResult):
    """The result of a fit.

    Attributes
    ----------
    method, title : str
        Identifier of the algorithm, and its name for people.
    k : int
        Number of clusters.
    options : dict
        Parameters of the estimator that are not its defaults.
    scores : dict of float
        Objective and other scores of the fit, on the scaled columns: ``inertia``, ...
    iterations : int or None
        Iterations of the best restart; None if the algorithm has none, or if the fit was made while K was chosen.
    seconds : float or None
        Time of the fit, without reading and writing; None if there was no fit.
    labels : ndarray of shape (rows,)
        Cluster of each row of the file; -1 for rows that were not used.
    output : str or None
        Output file, if one was written.
    added : tuple of str
        Columns of `output` that the source does not have.
    model : str or None
        Model file, if one was written.
    animation : str or None
        Animation of the fit, if one was written.
    choice : Choice or None
        The choice of `k`, if it was chosen automatically.
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
