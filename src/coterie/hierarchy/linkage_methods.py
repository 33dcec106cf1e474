"""The seven linkage methods."""

from collections.abc import Callable
from dataclasses import dataclass

from coterie.kernels.plain.linkage import AVERAGE, CENTROID, COMPLETE, WARD

ReportMerges = Callable[[int], None]  # called with the number of merges done


@dataclass(frozen=True)
class Method:
    """How the distance to a merged cluster is computed from the distances to its two parts."""

    kind: int | None  # constant of the kernels; None for single linkage, which is a minimum spanning tree
    equal: bool = False  # both parts have the same weight, whatever their sizes
    squared: bool = False  # clusters have centers, and the update formula needs squared Euclidean distances

    @property
    def is_single(self) -> bool:
        return self.kind is None

    @property
    def is_monotone(self) -> bool:
        """Whether heights never fall from one merge to the next."""
        return self.kind != CENTROID


METHODS = {
    "single": Method(None),
    "complete": Method(COMPLETE),
    "average": Method(AVERAGE),
    "weighted": Method(AVERAGE, equal=True),
    "centroid": Method(CENTROID, squared=True),
    "median": Method(CENTROID, equal=True, squared=True),
    "ward": Method(WARD, squared=True),
}
