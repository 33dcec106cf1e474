"""What a fit saw of its table, stored with the model: `predict` compares new rows and columns with it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coterie.core.protocols import Array
from coterie.core.stored import stored

SCORES = ("distance", "density")


def _is_consistent(fields: Mapping[str, Any], lengths: dict[str, int]) -> bool:
    columns, centers, spread = fields["columns"], fields["centers"], fields["spread"]
    return (
        fields["score"] in SCORES
        and isinstance(fields["limit"], float)
        and math.isfinite(fields["limit"])
        and all(isinstance(name, str) for name in columns)
        and len(columns) == len(fields["quantiles"])
        and isinstance(fields["unit_rows"], bool)
        and (fields["score"] == "density" or (centers is not None and len(spread) == len(centers)))
    )


@stored(
    "training.Summary", centers="none | real * *", spread="none | real *", columns="tuple", quantiles="float c q",
    shares="float c q", rows="count", check=_is_consistent,
)  # fmt: skip
@dataclass(frozen=True)
class TrainingSummary:
    """Limits of the scores of rows, and quantiles of the columns, of the rows to which a model was fitted.

    The score of a row is its log-density, or its distance to the center of its cluster divided by the root mean square
    distance in that cluster.
    """

    score: str  # ``distance`` or ``density``
    limit: float  # rows with a larger distance, or a smaller log-density, are unusual
    centers: Array | None  # (k, d) means of the prepared rows of each cluster, for distances
    spread: Array | None  # (k,) root mean square distances
    unit_rows: bool  # whether rows are divided by their length first
    columns: tuple[str, ...]  # numeric columns
    quantiles: Array  # (columns, q) in the units of the table
    shares: Array  # (columns, q) of rows at or below each quantile
    rows: int
