"""All that a page tells, as plain data: what was found, and numbers to draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.report.choice import ChoiceResult
from coterie.report.comparison import ComparisonResult
from coterie.report.result import JobResult

if TYPE_CHECKING:
    from coterie.diagnosis.diagnosis import Diagnosis
    from coterie.plots import (
        ConvergenceDisplay,
        DendrogramDisplay,
        ElbowDisplay,
        GapDisplay,
        InformationDisplay,
        ProfilesDisplay,
        SilhouetteDisplay,
        StabilityDisplay,
    )
    from coterie.plots.cloud import Cloud
    from coterie.report.html.displays import Certainty, Index, Shares, Spreads, Votes
    from coterie.web import ClusterMap


@dataclass(frozen=True)
class Absent:
    """Why something is not there, and what would give it."""

    why: str


@dataclass(frozen=True)
class Measure:
    """A number of a card, and in a few words where it comes from."""

    label: str
    value: str
    about: str


@dataclass(frozen=True)
class Stable:
    """How far the clusters of resampled rows agree with each other."""

    mean: float  # adjusted Rand index
    resamples: int
    rows: int  # that were resampled


@dataclass(frozen=True)
class Criteria:
    """What `choose_k` measured, and what it was not asked for."""

    recommended: int
    confidence: float
    reason: str
    rows: int  # looked at
    n: int
    clusters_by: str
    votes: Votes
    elbow: ElbowDisplay
    indices: tuple[Index, ...] = ()
    gap: GapDisplay | None = None
    information: tuple[InformationDisplay, ...] = ()
    stability: tuple[StabilityDisplay, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)  # criterion: the option that would ask it

    def vote(self, name: str) -> int | None:
        """The K that the criterion of this name votes for."""
        return next((vote["k"] for vote in self.votes.votes if vote["name"] == name), None)


@dataclass(frozen=True)
class Tree:
    """The tree of merges: of the rows, or of the centers of clusters."""

    display: DendrogramDisplay
    of_centers: bool
    method: str  # in words
    names: list[str]  # of the clusters


@dataclass(frozen=True)
class Reproduce:
    """How to have the same again."""

    python: str | Absent  # code that gives the same labels
    command: str
    fingerprint: str  # of the data
    versions: dict[str, str]


@dataclass(frozen=True)
class Report:
    """All that the page of a fit tells; where something is missing, `Absent` says why.

    Attributes
    ----------
    result : JobResult
    version : str
        Of coterie.
    asked : str
        The number of clusters as it was asked for.
    names : list of str
        Of the clusters that have rows, in the order of `result.clusters`.
    examples : list of list of str
        For each of them the rows nearest to its center, by `called`.
    called : str
        What names the rows: a column, or their number.
    weighted : str or None
        The column of weights.
    explained : Measure or Absent
        Share of the variance that lies between clusters, or the likelihood of a mixture.
    certainty : Certainty or None
        How probable rows' own clusters are; None where rows either belong to a cluster or do not.
    checked : int
        Rows that were diagnosed.
    animation : dict or None
        What the player plays, see `coterie.web.player`.
    """

    result: JobResult
    version: str
    asked: str
    names: list[str]
    examples: list[list[str]]
    called: str
    weighted: str | None
    explained: Measure | Absent
    stable: Stable | Absent
    silhouettes: SilhouetteDisplay | Absent
    certainty: Certainty | None
    map: ClusterMap | Cloud
    map_note: str
    criteria: Criteria | Absent
    profiles: ProfilesDisplay
    spreads: Spreads
    shares: tuple[Shares, ...]
    tree: Tree | Absent
    convergence: ConvergenceDisplay | Absent
    diagnosis: Diagnosis | Absent
    checked: int
    reproduce: Reproduce
    animation: dict[str, Any] | None = None


@dataclass(frozen=True)
class ChoiceReport:
    """All that the page of ``coterie choose-k`` tells."""

    result: ChoiceResult
    version: str
    asked: str
    criteria: Criteria
    reproduce: Reproduce


@dataclass(frozen=True)
class ComparisonReport:
    """All that the page of ``coterie compare`` tells; maps are of the two best runs."""

    result: ComparisonResult
    version: str
    asked: str
    maps: tuple[tuple[str, ClusterMap | Cloud], ...]
    reproduce: Reproduce
