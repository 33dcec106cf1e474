"""Results of jobs as plain data, from which text, JSON and HTML are rendered."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.preparation import SkippedColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """The table of a result, and how it was prepared.

    Attributes
    ----------
    source : str
        Name of the input file.
    rows, rows_used : int
        Number of rows in the file, and of rows that were used.
    n_columns : int
        Number of columns in the file.
    columns, categories : tuple of str
        Numeric columns and categorical columns that were used.
    skipped : tuple of SkippedColumn
        Columns that were not used, with reasons.
    scale : str
        How the columns were scaled: ``standard``, ``robust``, ``minmax`` or ``none``.
    missing : str
        Description of how missing values were handled.
    seed : int
        Seed of the random generator.
    weight : str or None
        Column of row weights, if any; means and shares are then weighted.
    notes : tuple of str
        Decisions that were made automatically.
    warnings : tuple of str
        Warnings about the data or the fit.
    report : str or None
        HTML report, if one was written.
    report_size : int or None
        Size of the report in bytes.
    """

    source: str
    rows: int
    rows_used: int
    n_columns: int
    columns: tuple[str, ...]
    categories: tuple[str, ...]
    skipped: tuple[SkippedColumn, ...]
    scale: str
    missing: str
    seed: int
    weight: str | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    report: str | None = None
    report_size: int | None = None


@dataclass(frozen=True)
class CriterionVote:
    """The vote of one criterion: its K (None: no vote), its margin over the other K, and its weight."""

    criterion: str
    k: int | None
    confidence: float
    weight: float
    note: str | None


@dataclass(frozen=True)
class Choice:
    """The recommended number of clusters, the votes, and the values of the criteria.

    Attributes
    ----------
    recommended : int
        The number of clusters; 1 means that no cluster structure was found.
    confidence : float
        Combined support of `recommended` by all criteria, from 0 to 1.
    reason : str
        The reason in two sentences.
    votes : tuple of CriterionVote
        One vote for each criterion.
    table : tuple of dict
        A row for each K with the values of all criteria; None where there is no value.
    clusters_by : str
        The algorithm whose clusters were evaluated.
    rows_looked_at, rows : int
        Number of rows in the sample that was evaluated, and number of all rows.
    warnings : tuple of str
        Warnings of `choose_k`.
    """

    recommended: int
    confidence: float
    reason: str
    votes: tuple[CriterionVote, ...]
    table: tuple[dict[str, Any], ...]
    clusters_by: str
    rows_looked_at: int
    rows: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChoiceResult(TableResult):
    """The result of ``coterie choose-k``."""

    method: str
    choice: Choice


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
    choice: Choice | None = None


@dataclass(frozen=True)
class Contestant:
    """The scores of one algorithm with one number of clusters; all runs use the same scaled rows."""

    method: str
    k: int
    inertia: float
    silhouette: float | None
    davies_bouldin: float | None
    calinski_harabasz: float | None
    smallest: int  # number of rows in the smallest cluster
    seconds: float | None  # None if the fit is from the choice of K
    best: bool  # whether it has the highest silhouette of the runs of its algorithm


@dataclass(frozen=True, kw_only=True)
class ComparisonResult(TableResult):
    """The result of ``coterie compare``.

    Attributes
    ----------
    runs : tuple of Contestant
        One run for each algorithm and number of clusters.
    agreement : tuple of tuple of float
        Adjusted Rand index of the best runs of each pair of algorithms, in the order of the algorithms.
    """

    runs: tuple[Contestant, ...]
    agreement: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PredictionResult:
    """The result of ``coterie predict``; the other fields have the same meaning as in `JobResult`.

    Attributes
    ----------
    model, estimator : str
        The model file, and the class of the model.
    sizes : dict of int
        Number of rows in each cluster, by its label.
    seed : object
        The seed of the fit; None if the model has none.
    """

    source: str
    model: str
    estimator: str
    rows: int
    rows_used: int
    columns: tuple[str, ...]
    missing: str
    seed: Any
    sizes: dict[int, int]
    labels: "NDArray[Any]" = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: str | None = None
    added: tuple[str, ...] = ()
