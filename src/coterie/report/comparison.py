"""Algorithms side by side, as plain data."""

from dataclasses import dataclass

from coterie.report.table import TableResult


@dataclass(frozen=True)
class Contestant:
    """One algorithm with one number of clusters; indices are of the same scaled rows for all."""

    method: str
    k: int
    inertia: float
    silhouette: float | None
    davies_bouldin: float | None
    calinski_harabasz: float | None
    smallest: int  # rows in the smallest cluster
    seconds: float | None  # None if it was made while K was chosen
    best: bool  # of the runs of its algorithm, by the silhouette


@dataclass(frozen=True, kw_only=True)
class ComparisonResult(TableResult):
    """All that ``coterie compare`` has to say.

    Attributes
    ----------
    runs : tuple of Contestant
    agreement : tuple of tuple of float
        Adjusted Rand index of the best run of each algorithm with that of each other, in the order of the algorithms.
    """

    runs: tuple[Contestant, ...]
    agreement: tuple[tuple[float, ...], ...]
