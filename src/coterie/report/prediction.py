"""Clusters that rows got from a fitted model, as plain data."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class PredictionResult:
    """All that ``coterie predict`` has to say; names shared with `JobResult` mean the same.

    Attributes
    ----------
    model, estimator : str
        The file, and the class of what is in it.
    sizes : dict of int
        Rows in each cluster, by its number.
    seed : object
        That of the fit; None where it had none.
    """

    source: str
    model: str
    estimator: str
    rows: int
    rows_used: int
    columns: tuple[str, ...]
    missing: str
    seed: Any
    sizes: dict[int, int]
    labels: "NDArray[Any]" = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    output: str | None = None
    added: tuple[str, ...] = ()
