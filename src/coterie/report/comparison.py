"""Algorithms side by side, as plain data."""

from dataclasses import dataclass

from coterie.report.result import SkippedColumn


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
    seconds: float
    best: bool  # of the runs of its algorithm, by the silhouette


@dataclass(frozen=True)
class ComparisonResult:
    """All that ``coterie compare`` has to say; names shared with `JobResult` mean the same.

    Attributes
    ----------
    runs : tuple of Contestant
    agreement : tuple of tuple of float
        Adjusted Rand index of the best run of each algorithm with that of each other, in the order of the algorithms.
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
    runs: tuple[Contestant, ...]
    agreement: tuple[tuple[float, ...], ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
