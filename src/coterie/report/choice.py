"""How a number of clusters was chosen, as plain data."""

from dataclasses import dataclass
from typing import Any

from coterie.report.table import TableResult


@dataclass(frozen=True)
class CriterionVote:
    """What one criterion says: its K (None: it has no answer), how far ahead that is, and how much it counts."""

    criterion: str
    k: int | None
    confidence: float
    weight: float
    note: str | None


@dataclass(frozen=True)
class Choice:
    """The number of clusters, who speaks for it, and what was measured.

    Attributes
    ----------
    recommended : int
        The number of clusters; 1 means that there are none to be told apart.
    confidence : float
        From 0 to 1: its support by all criteria together.
    reason : str
        Two sentences.
    votes : tuple of CriterionVote
    table : tuple of dict
        A row for each K: what every criterion measured; None where it measured nothing.
    clusters_by : str
        The algorithm whose clusters were judged.
    rows_looked_at, rows : int
        Rows that were drawn to be judged, and rows there are.
    warnings : tuple of str
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
    """All that ``coterie choose-k`` has to say."""

    method: str
    choice: Choice
