"""The seven ways to say how near two clusters are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coterie.kernels.plain.linkage import CENTER, LARGEST, MEAN, WARD

Tell = Callable[[int], None]


@dataclass(frozen=True)
class Method:
    """How the distance to a merged cluster follows from those to its two parts."""

    kind: int | None  # of the kernels; None for the smaller one, for which a spanning tree serves
    equal: bool = False  # the parts weigh the same, whatever their sizes
    squared: bool = False  # clusters have centers: by squares of Euclidean distances

    @property
    def single(self) -> bool:
        return self.kind is None

    @property
    def rises(self) -> bool:
        """Whether no merge is lower than those before it."""
        return self.kind != CENTER


METHODS = {
    "single": Method(None),
    "complete": Method(LARGEST),
    "average": Method(MEAN),
    "weighted": Method(MEAN, equal=True),
    "centroid": Method(CENTER, squared=True),
    "median": Method(CENTER, equal=True, squared=True),
    "ward": Method(WARD, squared=True),
}
