"""Categorical distribution of independent columns."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from coterie import kernels
from coterie.core.stored import stored
from coterie.errors import InputError, ParameterError
from coterie.families import simplex
from coterie.families.family import Family, Survey
from coterie.families.prior import DirichletPrior

MAX_CATEGORIES = 10_000  # maximum number of different values of a column


@dataclass(frozen=True)
class Values(Survey):
    """The different values of each column."""

    values: Any  # tuple of (m,) sorted arrays

    def _sum_of_others(self, other: Self) -> tuple[Any, ...]:
        pairs = zip(self.values, other.values, strict=True)
        return (tuple(np.union1d(a, b)[: MAX_CATEGORIES + 1] for a, b in pairs),)


@stored("parameters.Categorical")
class CategoryProbabilities(NamedTuple):
    probability: np.ndarray  # (k, categories of all columns), column by column


def _is_consistent(family: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether the categories of each column are finite and ascending."""
    return all(
        isinstance(levels, np.ndarray)
        and levels.ndim == 1
        and np.isfinite(levels).all()
        and (np.diff(levels) > 0).all()
        for levels in family.get("_levels", ())
    )


@stored("family.Categorical", attributes="n_categories prior has_missing _levels", check=_is_consistent)
class Categorical(simplex.SimplexFamily):
    r"""Categorical distribution of columns, which are independent within a component.

    .. math:: P(x) = \prod_j p_{j x_j}, \quad T(x) = \text{one-hot } x, \quad \hat p_{jc} = n_{jc} / n_j

    A mixture of Categorical components is latent class analysis. Categories can be any numbers, or text in data frames
    (`Mixture.from_frame`). A category that did not occur in the fit raises an error later, unless `n_categories`
    includes it.

    Do not use it for numbers whose order or differences are meaningful.

    Parameters
    ----------
    n_categories : int or sequence of int, default=None
        Number of categories, of all columns or of each column; the categories are 0 to `n_categories` - 1. By default
        the categories are the values that occur in X.
    prior : DirichletPrior or 'default', default=None
        Prior of the probabilities of each column. The estimate is then proportional to counts + concentration - 1.
        'default' means DirichletPrior(1.5).

    Attributes
    ----------
    probability_ : array (m,)
        Probabilities of all categories of the first column, then of the second, and so on; at least 1e-10 each. `split`
        splits them by column.
    categories : list of arrays
        The categories of each column.

    Examples
    --------
    >>> from coterie.families import Categorical
    >>> family = Categorical().fit([[0, 5], [1, 5], [1, 7], [1, 7]])
    >>> [column.tolist() for column in family.split(family.probability_[None])]
    [[[0.25, 0.75]], [[0.5, 0.5]]]
    """

    name = "categorical"
    by_column = True
    weighs_columns = False
    default_prior = DirichletPrior(1.5)

    def __init__(self, n_categories: Any = None, prior: Any = None):
        self.n_categories = n_categories
        self.prior = prior

    # categories

    def survey(self, X: np.ndarray) -> Values:
        invalid = super().survey(X)
        values = (np.unique(column[np.isfinite(column)]) for column in np.asarray(X, np.float64).T)
        return Values(invalid.n_invalid, invalid.example, tuple(levels[: MAX_CATEGORIES + 1] for levels in values))

    def check(self, survey: Values, names: list[str] | None = None) -> None:
        super().check(survey, names)
        names = names or [f"column {j}" for j in range(len(survey.values))]
        for j, (name, values) in enumerate(zip(names, survey.values, strict=True)):
            if len(values) > MAX_CATEGORIES:
                raise InputError(
                    f"{name} has more than {MAX_CATEGORIES} different values, too many for Categorical: "
                    "drop it, or use another family"
                )
            allowed = self._allowed(j, len(names))
            unknown = values if allowed is None else np.setdiff1d(values, allowed)
            if allowed is not None and len(unknown):
                raise InputError(
                    f"{name} has the value {unknown[0]:g}, which is not one of its {len(allowed)} categories: drop "
                    "these rows, include them in the fit, or set n_categories"
                )

    _levels: tuple[np.ndarray, ...]  # categories of each column, after they were learned

    def _allowed(self, j: int, d: int) -> np.ndarray | None:
        """Categories of column j of d; None if they are not known yet."""
        if hasattr(self, "_levels"):
            return self._levels[j]
        if self.n_categories is None:
            return None
        counts = np.broadcast_to(self.n_categories, d) if np.ndim(self.n_categories) == 0 else self.n_categories
        if len(counts) != d or np.min(counts) < 1:
            raise ParameterError(
                f"n_categories must be an integer >= 1, or one for each of the {d} columns; got {self.n_categories!r}"
            )
        return np.arange(float(counts[j]))

    def learned(self, survey: Values, has_missing: bool = False) -> Self:
        family = super().learned(survey, has_missing)
        d = len(survey.values)
        allowed = [self._allowed(j, d) for j in range(d)]
        family._levels = tuple(
            values if levels is None else levels for levels, values in zip(allowed, survey.values, strict=True)
        )
        return family

    @property
    def categories(self) -> list[np.ndarray]:
        return list(self._fitted._levels if hasattr(self, "_params") else self._levels)

    def alike(self, other: Family) -> bool:
        return (
            isinstance(other, Categorical)
            and len(self._levels) == len(other._levels)
            and all(np.array_equal(a, b) for a, b in zip(self._levels, other._levels, strict=True))
        )

    @property
    def translates(self) -> bool:
        return any(not np.array_equal(levels, np.arange(len(levels))) for levels in self._levels)

    def translate(self, X: np.ndarray) -> np.ndarray:
        """Replace values by their category codes."""
        if not self.translates:
            return X
        codes = np.empty(X.shape, X.dtype)
        for j, levels in enumerate(self._levels):
            codes[:, j] = np.where(np.isnan(X[:, j]), np.nan, np.searchsorted(levels, X[:, j]))
        return codes

    def restore(self, X: np.ndarray) -> np.ndarray:
        return np.stack([levels[X[:, j].astype(np.intp)] for j, levels in enumerate(self._levels)], axis=1)

    # density

    def features(self, X: Any) -> Any:
        """One-hot rows (n, all categories); a missing value is 0 in all its categories."""
        ends = np.cumsum([len(levels) for levels in self._levels])
        first = np.append(0, ends[:-1]).astype(np.int32)  # position of the first category of each column
        observed = ~np.isnan(X)
        indices = np.where(observed, X, 0).astype(np.int32) + first
        if not ((indices >= first) & (indices < ends)).all():  # SciPy would read and write outside of its arrays
            raise InputError("X has values that are not codes of the categories of this family")
        return kernels.select("products", X, 1).one_hot(indices, observed, int(ends[-1]))

    # parameters

    def n_parameters(self, k: int, params: CategoryProbabilities) -> int:
        return k * (params.probability.shape[1] - len(self._levels))

    def split(self, probability: np.ndarray) -> list[np.ndarray]:
        """Split probabilities (k, all categories) by column, into arrays (k, categories)."""
        return np.split(probability, np.cumsum([len(levels) for levels in self.categories])[:-1], axis=-1)

    # estimates

    def from_means(self, mean: np.ndarray) -> CategoryProbabilities:
        return CategoryProbabilities(
            np.concatenate([simplex.max_likelihood(column) for column in self.split(mean)], axis=1)
        )

    # sampling

    def draw(self, params: CategoryProbabilities, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        columns = [rng.choice(len(p[j]), n, p=p[j] / p[j].sum()) for p in self.split(params.probability)]
        return np.stack(columns, axis=1).astype(np.float64)
