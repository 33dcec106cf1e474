"""A comparison of algorithms as plain data."""

from dataclasses import dataclass

from coterie.report.table import TableResult


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
