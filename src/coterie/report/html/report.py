"""The data of a page: the result, and the numbers of all charts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.core.arrays import Array
from coterie.report.results import Choice, ChoiceResult, ComparisonResult, JobResult, NeighbourMapSummary

if TYPE_CHECKING:
    from coterie import plots
    from coterie.diagnosis.findings import Diagnosis
    from coterie.plots.cloud import Cloud
    from coterie.selection import Curve
    from coterie.selection.votes import Vote
    from coterie.web import ClusterMap


@dataclass(frozen=True)
class Absent:
    """A part of the report that is not available."""

    reason: str  # why, and which option would add it


@dataclass(frozen=True, eq=False)
class NeighbourView:
    """A map that places near rows near each other."""

    map: ClusterMap
    note: str  # how far to trust it
    summary: NeighbourMapSummary


@dataclass(frozen=True, eq=False)
class Spreads:
    """Quantiles of columns in each cluster."""

    names: list[str]  # (k,) names of the clusters
    sizes: Array  # (k,) rows
    columns: list[str]  # (c,) the columns in which clusters differ most
    n_columns: int  # all columns
    quantiles: Array  # (k, c, 5) at 5, 25, 50, 75 and 95 %
    sampled: int | None = None  # sample size for clusters that have more rows; None if all rows were used


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the values of a categorical column in each cluster."""

    column: str
    used: bool  # whether the column was used in the fit
    names: list[str]  # (k,)
    sizes: Array  # (k,)
    values: list[str]  # (v,) the most frequent values; the last may stand for all others
    shares: Array  # (k, v)


@dataclass(frozen=True, eq=False)
class Certainty:
    """Probabilities of the rows for their clusters; the fields have the names of `SilhouetteDisplay`."""

    names: list[str]  # (k,)
    sizes: Array  # (k,)
    means: Array  # (k,)
    below: Array  # (k,) share of rows with a low probability
    outlines: list[Array]  # (k) probabilities in descending order, thinned evenly if there are many
    mean: float
    shown: Array  # indices of the clusters that are drawn
    n: int
    sampled: int | None = None


@dataclass(frozen=True)
class Measure:
    """The number on a card, with a short description."""

    label: str
    value: str
    about: str


@dataclass(frozen=True)
class Stability:
    """Agreement of the clusters of resampled rows with each other."""

    mean: float  # of the adjusted Rand index
    resamples: int
    rows: int  # number of rows that were resampled


@dataclass(frozen=True)
class Criteria:
    """The results of `choose_k`, and the criteria that were not computed."""

    choice: Choice
    ks: Array  # (m,) numbers of clusters
    support: Array  # (m,) of each by all criteria combined
    votes: list[Vote]  # the largest weight first
    elbow: plots.ElbowDisplay
    indices: tuple[Curve, ...] = ()
    gap: plots.GapDisplay | None = None
    information: tuple[plots.InformationDisplay, ...] = ()
    stability: tuple[plots.StabilityDisplay, ...] = ()
    not_computed: dict[str, str] = field(default_factory=dict)  # criterion: the option that computes it

    def vote(self, name: str) -> int | None:
        """The K for which the criterion `name` votes; None if it does not vote."""
        return next((vote.k for vote in self.votes if vote.criterion == name), None)


@dataclass(frozen=True)
class Tree:
    """A dendrogram of the rows, or of the centers of the clusters."""

    display: plots.DendrogramDisplay
    of_centers: bool  # whether the leaves are centers
    method: str  # description of the linkage
    names: list[str]  # of the clusters


@dataclass(frozen=True)
class Reproduce:
    """Information to reproduce the result."""

    python: str | Absent  # code that gives the same labels
    command: str | Absent
    fingerprint: str  # of the data
    versions: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class PageData:
    """The data that all pages have."""

    result: Any
    requested_k: str  # the number of clusters as requested: a number, a range, "auto", or "given" for given labels
    reproduce: Reproduce


@dataclass(frozen=True, kw_only=True)
class Report(PageData):
    """The data of the page of a fit; parts that are not available are `Absent`, with the reason."""

    result: JobResult
    names: list[str]  # of the clusters that have rows, in the order of `result.clusters`
    examples: list[list[str]]  # for each cluster, the names of the rows nearest to its center
    id_name: str  # the column that has the names of the rows, or "row, from 0" for row numbers
    weight: str | None  # the column of row weights
    explained: Measure | Absent  # share of the variance between clusters, or the likelihood of a mixture
    stability: Stability | Absent
    silhouettes: plots.SilhouetteDisplay | Absent
    certainty: Certainty | None  # probabilities of the rows for their clusters; None for models without probabilities
    map: ClusterMap | Cloud
    map_note: str
    criteria: Criteria | Absent
    profiles: plots.ProfilesDisplay
    spreads: Spreads
    shares: tuple[Shares, ...]
    tree: Tree | Absent
    convergence: plots.ConvergenceDisplay | Absent
    diagnosis: Diagnosis | Absent
    checked_rows: int  # number of rows that were diagnosed
    series: plots.SeriesDisplay | None = None  # the lines of time series, in place of means of columns
    neighbours: NeighbourView | Absent | None = None  # None: not requested
    starts_with_neighbours: bool = False  # whether the neighbour map comes before the principal axes
    animation: dict[str, Any] | None = None  # the data of the player, see `coterie.web.player`
    title: str | None = None  # of the page; None: from the name of the table
    density: tuple[plots.ReachabilityDisplay, plots.CondensedTreeDisplay] | None = None  # of HDBSCAN
    in_python: bool = False  # whether remedies name parameters instead of options of the command line


@dataclass(frozen=True, kw_only=True)
class ChoiceReport(PageData):
    """The data of the page of ``coterie choose-k``."""

    result: ChoiceResult
    criteria: Criteria


@dataclass(frozen=True, kw_only=True)
class ComparisonReport(PageData):
    """The data of the page of ``coterie compare``; `maps` are those of the best run of each algorithm."""

    result: ComparisonResult
    maps: tuple[tuple[str, ClusterMap | Cloud], ...]
