"""How a model predicts, as plain data: columns of a table become features, and scores of the features give the cluster.

Each writer of this package turns a `PredictionRule` into one format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from coterie.errors import ParameterError

if TYPE_CHECKING:
    from coterie.data.tables.readings import Reading

LARGEST = 1e150  # features up to this size have squares and sums of squares in range

MissingPolicy: TypeAlias = Literal["none", "fill", "ignore"]


# Minimum of the values that a transform accepts, and whether the minimum itself is accepted; of others there is none.
DOMAINS = {"log": (0.0, False), "log1p": (-1.0, False), "sqrt": (0.0, True)}


@dataclass(frozen=True)
class Number:
    """The feature ``(value - shift) / spread * weight`` of a numeric column.

    The cell is read as a number by `reading`, if there is one. `transform` is applied to the value first: ``log``,
    ``log1p``, ``sqrt`` or nothing. A missing value is replaced by `fill`, which is a transformed value.
    """

    column: str
    shift: float = 0.0
    spread: float = 1.0
    weight: float = 1.0
    fill: float | None = None
    transform: str = ""
    reading: Reading | None = None

    @property
    def words(self) -> dict[str, float | None]:
        """Numbers by texts, in lower case without blanks around them; None for texts that mean a missing value."""
        if self.reading is None:
            return {}
        from coterie.data.tables.written_numbers import MISSING_MARKS

        missing = dict.fromkeys([*MISSING_MARKS, *(word.strip().lower() for word in self.reading.missing)])
        return dict.fromkeys(self.reading.true, 1.0) | dict.fromkeys(self.reading.false, 0.0) | missing

    @property
    def codes(self) -> tuple[float, ...]:
        """Numbers that mean a missing value."""
        if self.reading is None:
            return ()
        from coterie.data.tables.readings import codes_of

        return tuple(codes_of(self.reading.missing))


@dataclass(frozen=True)
class Indicator:
    """The feature of a category: `size` if the cell has the category `value`, otherwise 0."""

    column: str
    value: str
    size: float = 1.0
    is_exact: bool = False  # whether only this text has the category, because another one means the same


@dataclass(frozen=True)
class NearestCenter:
    """The first of the nearest centers.

    `metric` is ``squares`` (squared Euclidean distances), ``absolute`` (Manhattan distances) or ``directions`` (squared
    distances of the row at unit length).
    """

    metric: Literal["squares", "absolute", "directions"]
    centers: np.ndarray  # (k, d) float64


@dataclass(frozen=True)
class CenterTree:
    """The leaf that a row reaches if it goes to the nearer of two children at every node, the first if equal."""

    children: tuple[int, ...]  # (m,) index of the first child; the second one follows it; -1 for a leaf
    centers: np.ndarray  # (m, d) float64
    clusters: tuple[int, ...]  # (m,) cluster of a leaf, otherwise -1


@dataclass(frozen=True)
class MostProbable:
    """The first component with the largest ``offset - |U'(x - mean)|² / 2``.

    `factor` U is (k, d, d) upper triangular if `form` is ``full``, (d, d) if ``tied``, (k, d) if ``diag``, (k,) if
    ``spherical``.
    """

    form: str
    offset: np.ndarray  # (k,) minus infinity for a component of weight 0
    means: np.ndarray  # (k, d)
    factor: np.ndarray

    @property
    def has_matrices(self) -> bool:
        return self.form in ("full", "tied")

    @property
    def log_scales(self) -> np.ndarray:
        """Terms of `offset` that belong to single columns (k, d): those of missing values are left out.

        The other constants of a density are the same for all components.
        """
        diagonal = np.diagonal(self.factor, axis1=-2, axis2=-1) if self.has_matrices else self.column_factors
        return np.broadcast_to(np.log(diagonal), self.means.shape)

    @property
    def column_factors(self) -> np.ndarray:
        """Factors (k, d) of a diagonal or spherical form."""
        return np.broadcast_to(self.factor[:, None] if self.form == "spherical" else self.factor, self.means.shape)


@dataclass(frozen=True)
class PredictionRule:
    """Everything that a prediction needs.

    `missing` says what a row with missing values gets: no cluster (``none``), the cluster of the filled row (``fill``),
    or that of its observed values (``ignore``).
    """

    estimator: str  # name of the class
    numbers: tuple[Number, ...]  # the first features
    indicators: tuple[Indicator, ...]  # the other features, those of a column together
    missing: MissingPolicy
    score: NearestCenter | CenterTree | MostProbable

    @property
    def has_matrices(self) -> bool:
        """Whether scores need the product of a row with a matrix."""
        return isinstance(self.score, MostProbable) and self.score.has_matrices

    @property
    def is_directional(self) -> bool:
        """Whether rows are compared at unit length, so that a row of zeros has no cluster."""
        return isinstance(self.score, NearestCenter) and self.score.metric == "directions"

    @property
    def categories(self) -> dict[str, tuple[Indicator, ...]]:
        """Indicators of each categorical column."""
        columns = dict.fromkeys(each.column for each in self.indicators)
        return {name: tuple(each for each in self.indicators if each.column == name) for name in columns}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table: numbers first, then categories."""
        return (*(number.column for number in self.numbers), *self.categories)

    @property
    def n_features(self) -> int:
        return len(self.numbers) + len(self.indicators)

    @property
    def n_clusters(self) -> int:
        if isinstance(self.score, CenterTree):
            return 1 + max(self.score.clusters)
        centers = self.score.centers if isinstance(self.score, NearestCenter) else self.score.means
        return len(centers)

    @property
    def limit(self) -> float:
        """Size of a feature above which squares could overflow; such rows have no cluster."""
        if not isinstance(self.score, MostProbable):
            return LARGEST
        return LARGEST / max(1.0, self.n_features * float(np.abs(self.score.factor).max()))

    def check_matrices(self, target: str) -> None:
        """Reject missing values with matrices for a `target` that cannot choose a matrix for each row."""
        if self.has_matrices and self.missing == "ignore":
            raise ParameterError(
                f"{self.estimator} with missing='ignore' and full or tied covariances cannot be exported to {target}, "
                "because every pattern of missing values needs other matrices: export it to Python, or fit diagonal "
                "covariances ('VVI'), or fill missing values."
            )
