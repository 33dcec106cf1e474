"""The choice of the number of clusters as plain data."""

from dataclasses import dataclass
from typing import Any

from coterie.report.table import TableResult


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
