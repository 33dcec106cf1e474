"""Predicted clusters as plain data."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class PredictionResult:
    """The result of ``coterie predict``; the other fields have the same meaning as in `JobResult`.

    Attributes
    ----------
    model, estimator : str
        The model file, and the class of the model.
    sizes : dict of int
        Number of rows in each cluster, by its label.
    seed : object
        The seed of the fit; None if the model has none.
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
