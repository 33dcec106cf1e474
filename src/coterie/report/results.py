"""Results of jobs as plain data, from which text, JSON and HTML are rendered."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.core.repr_html import ReprHTMLMixin
from coterie.preparation import SkippedColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from coterie.explanation import Rule


class TextResult(ReprHTMLMixin):
    """The result of a job, whose text is that of the terminal."""

    def __str__(self) -> str:
        from coterie.report.text import as_text

        return as_text(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class TableResult(TextResult):
    """The table of a result, and how it was prepared."""

    source: str  # name of the input file
    rows: int
    rows_used: int
    n_columns: int  # in the file
    columns: tuple[str, ...]  # numeric columns that were used
    categories: tuple[str, ...]  # categorical columns that were used
    skipped: tuple[SkippedColumn, ...]  # columns that were not used, with reasons
    scale: str  # how the columns were scaled: ``standard``, ``robust``, ``minmax`` or ``none``
    missing: str  # description of how missing values were handled
    seed: int  # of the random generator
    missing_values: dict[str, int] = field(default_factory=dict)  # of columns that were used, in all rows of the table
    weight: str | None = None  # column of row weights, if any; means and shares are then weighted
    notes: tuple[str, ...] = ()  # decisions that were made automatically
    warnings: tuple[str, ...] = ()  # about the data or the fit
    report: str | None = None  # HTML report, if one was written
    report_size: int | None = None  # bytes


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
    """The recommended number of clusters, the votes, and the values of the criteria."""

    recommended: int  # 1 means that there are no clusters, or that no number of them is clear
    strength: str  # how clear it is: ``clear``, ``weak`` or ``none``
    runner_up: int | None  # the number with the next largest support; None if no other has any
    confidence: float  # combined support of `recommended` by all criteria, from 0 to 1
    heading: str  # "K = 4 (weak; runner-up 3)"
    reason: str  # in a few sentences
    votes: tuple[CriterionVote, ...]  # one for each criterion
    table: tuple[dict[str, Any], ...]  # a row for each K with the values of all criteria; None where there is no value
    clusters_by: str  # the algorithm whose clusters were evaluated
    rows_looked_at: int  # size of the sample that was evaluated
    rows: int
    warnings: tuple[str, ...] = ()  # of `choose_k`


@dataclass(frozen=True, kw_only=True, repr=False)
class ChoiceResult(TableResult):
    """The result of ``coterie choose-k``."""

    method: str
    choice: Choice


@dataclass(frozen=True)
class Trait:
    """Difference of the mean of a cluster from the mean of all rows, in standard deviations of all rows.

    Of a category, or of a column of zeros and ones, also the shares of the rows that have it. Of series, `column` is a
    feature of their shape, such as "late maximum". The difference of dates is positive if they are later.
    """

    column: str
    deviation: float
    share: float | None = None  # of the cluster; None for numbers
    overall: float | None = None  # of all rows
    category: tuple[str, str] | None = None  # column and value, if `column` stands for one value of a column
    value: str | None = None  # of a feature of series: its mean in the cluster
    date: str | None = None  # of a column of dates: their mean in the cluster


@dataclass(frozen=True)
class ClusterSummary:
    """A cluster: its size, its means in the units of the table, and the columns in which it stands out.

    All are those of the values in the table, also if missing values were filled for the fit.
    """

    label: int
    rows: int
    share: float
    means: dict[str, float]
    stands_out_by: tuple[Trait, ...]
    silhouette: float | None = None  # mean of its rows; None if it is not defined or was not computed
    name: str | None = None  # None if clusters have no names
    rule: "Rule | None" = None  # conditions that describe it; None if they were not searched
    missing: dict[str, int] = field(default_factory=dict)  # number of missing values of each column that has some

    @property
    def display_name(self) -> str:
        """The name of the cluster, or its label."""
        return str(self.label) if self.name is None else self.name


@dataclass(frozen=True)
class NeighbourMapSummary:
    """How far to trust the neighbour map of a report, and its two principal axes."""

    rows: int  # on the map
    neighbours: int  # number of nearest rows that are compared
    trustworthiness: float  # 1 is best, 0.5 is random
    neighbours_kept: float  # share of the nearest rows on the map that are among the nearest in the data
    axes_trustworthiness: float  # the same of the principal axes
    axes_neighbours_kept: float
    axes_variance: float | None  # share of the variance that they show; None for two columns


@dataclass(frozen=True, kw_only=True, repr=False)
class JobResult(TableResult):
    """The result of a fit."""

    method: str  # identifier of the algorithm
    title: str  # its name for people
    k: int
    options: dict[str, Any]  # parameters of the estimator that are not its defaults
    scores: dict[str, float]  # objective and other scores of the fit, on the scaled columns: ``inertia``, ...
    iterations: (
        int | None
    )  # of the best restart; None if the algorithm has none, or the fit was made while K was chosen
    converged: bool
    seconds: float | None  # time of the fit alone; None if there was none, or if it was made while K was chosen
    clusters: tuple[ClusterSummary, ...]
    labels: "NDArray[Any]" = field(
        repr=False, compare=False
    )  # (rows,) cluster of each row; -1 if it is noise or was not used
    output: str | None = None  # output file, if one was written
    added: tuple[str, ...] = ()  # columns of `output` that the source does not have
    model: str | None = None  # model file, if one was written
    profiles: str | None = None  # table of profiles, if one was written
    animation: str | None = None  # animation of the fit, if one was written
    choice: Choice | None = None  # the choice of `k`, if it was chosen automatically
    rule_cost_ratio: float | None = None  # K-means cost of a threshold tree over that of the clusters
    neighbour_map: NeighbourMapSummary | None = None  # of the report, if it has one
    noise: int | None = None  # number of rows in no cluster; None for algorithms without noise
    total_seconds: float | None = None  # of the whole job, with reading, choosing K, describing and writing


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
    stability: float | None = None  # mean adjusted Rand index of resamples, of the best runs


@dataclass(frozen=True)
class Recommendation:
    """The recommended run of a comparison."""

    method: str
    k: int
    strength: str  # ``clear``, ``weak`` or ``none``
    reason: str  # the criteria, what speaks against it, and the next best

    @property
    def heading(self) -> str:
        """The run and how clear it is, in words."""
        if self.strength == "none":
            return f"no clear algorithm; {self.method}, K = {self.k} is slightly ahead"
        return f"{self.method}, K = {self.k} is recommended ({self.strength})"


@dataclass(frozen=True, kw_only=True, repr=False)
class ComparisonResult(TableResult):
    """The result of ``coterie compare``."""

    runs: tuple[Contestant, ...]  # one for each algorithm and number of clusters
    agreement: tuple[tuple[float, ...], ...]  # adjusted Rand index of the best runs of each pair of algorithms
    recommendation: Recommendation | None = None  # of several algorithms


@dataclass(frozen=True, repr=False)
class LabelComparison(TextResult):
    """The result of ``coterie compare-labels``."""

    source: str
    other: str
    columns: tuple[str, str]  # of labels, in both tables
    rows: int  # that are in both tables
    rows_compared: int  # that have a cluster in both
    unmatched: tuple[int, int]  # rows of each table that are not in the other
    adjusted_rand: float
    adjusted_mutual_information: float
    agreement: float  # share of rows in matched clusters, under the best one-to-one matching
    moved: int  # rows that are not
    labels_before: tuple[str, ...]  # of the rows of `table`
    labels_after: tuple[str, ...]  # of the columns of `table`, matched ones first
    table: tuple[tuple[int, ...], ...]  # number of rows with each pair of labels
    matching: dict[str, str]  # label before of each label after
    output: str | None = None


@dataclass(frozen=True, repr=False)
class PredictionResult(TextResult):
    """The result of ``coterie predict``; the other fields have the same meaning as in `JobResult`."""

    source: str
    model: str  # the model file
    estimator: str  # the class of the model
    rows: int
    rows_used: int
    columns: tuple[str, ...]
    missing: str
    seed: Any  # of the fit; None if the model has none
    sizes: dict[int, int]  # number of rows in each cluster, by its label
    labels: "NDArray[Any]" = field(repr=False, compare=False)
    unusual: int | None = None  # number of rows that are unlike the training data; None if the model cannot tell
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: str | None = None
    added: tuple[str, ...] = ()
    names: dict[int, str] | None = None  # of the clusters, by label; None if the model has none


@dataclass(frozen=True, repr=False)
class ExportResult(TextResult):
    """The result of ``coterie export``."""

    model: str  # the model file
    estimator: str  # the class of the model
    clusters: int
    columns: tuple[str, ...]  # columns that a row must have
    to: str  # format: ``sql``, ``onnx`` or ``python``
    output: str
    size: int  # bytes
