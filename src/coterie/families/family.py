"""The base class of families of mixture components."""

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import as_floats, as_rng, whole_number
from coterie.core.arrays import as_float64, is_sparse
from coterie.core.stats import Stats
from coterie.errors import InputError, ParameterError

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Survey(Stats):
    """Statistics of the rows that a family needs before a fit."""

    n_invalid: Any  # (d,) number of values outside the support of the family
    example: Any  # (d,) one of these values; NaN if there is none

    def __add__(self, other: Self) -> Self:
        example = np.where(np.isnan(self.example), other.example, self.example)
        return type(self)(self.n_invalid + other.n_invalid, example, *self._sum_of_others(other))

    def _sum_of_others(self, other: Self) -> tuple[Any, ...]:
        """The sums of the fields that a subclass adds."""
        return ()


class Family:
    """Base class of families of distributions; its methods handle K components at once.

    The parameters of K components are one NamedTuple of float64 arrays whose first axis is K; so are the arrays of the
    statistics. Components are independent of each other, so any number of them can be handled together. A family is
    small and picklable. Facts about the columns, such as their categories, come from a survey of the rows.

    A mixture calls these methods, in this order: `survey` (summed over all rows), `check`, `learned`; then in every
    pass `prepare`, `features`, `scores`, `statistics`, and after it `estimate`. Users call `fit`, `log_prob` and
    `sample`, which do the same with one component.

    Examples
    --------
    >>> from coterie.families import Poisson
    >>> family = Poisson().fit([[1], [3]])
    >>> family.rate_.tolist(), family.log_prob([[2]]).round(3).tolist()
    ([2.0], [-1.307])
    """

    name: ClassVar[str] = ""  # of the option `family` of `coterie.Mixture`
    support: ClassVar[str] = "finite numbers"  # description of the valid values, for errors
    remedy: ClassVar[str] = "drop those rows, or use another family"
    by_column: ClassVar[bool] = False  # whether columns are independent within a component, so that NaN can be missing
    takes_sparse: ClassVar[bool] = False  # whether rows may be CSR
    # By parameter, the power of the unit of the rows with which it scales; None if rows cannot be converted.
    powers: ClassVar[dict[str, int] | None] = None
    starts_smoothed: ClassVar[bool] = False  # whether initialisations use the default prior, because samples are small
    has_missing: bool = False  # whether NaN is a missing value
    prior: Any = None

    # valid values

    def supports(self, values: np.ndarray) -> np.ndarray:
        """A mask of the values (n, d) in the support of the family; for sparse rows, of the stored values."""
        return np.isfinite(values)

    @property
    def surveys(self) -> bool:
        """Whether the family needs a survey: it has a support other than finite numbers, or overrides `survey`."""
        return type(self).supports is not Family.supports or type(self).survey is not Family.survey

    def survey(self, X: Any) -> Survey:
        """Statistics of the rows that are needed before a fit."""
        values = X.data if is_sparse(X) else X
        invalid = ~(self.supports(values) | np.isnan(values))
        n_invalid, example = np.zeros(X.shape[1]), np.full(X.shape[1], np.nan)
        if invalid.any():
            columns = X.indices[invalid] if is_sparse(X) else np.nonzero(invalid)[1]
            n_invalid += np.bincount(columns, minlength=X.shape[1])
            example[columns[::-1]] = values[invalid][::-1]
        return Survey(n_invalid, example)

    def check(self, survey: Any, names: list[str] | None = None) -> None:
        """Raise an `InputError` that names the columns with values outside the support."""
        columns = np.flatnonzero(survey.n_invalid)
        if len(columns) == 0:
            return
        names = names or [f"column {j}" for j in range(len(survey.n_invalid))]
        details = [f"{names[j]} ({int(survey.n_invalid[j])}, such as {survey.example[j]:g})" for j in columns[:5]]
        others = f" and {len(columns) - 5} more columns" if len(columns) > 5 else ""
        raise InputError(
            f"Input X has values that {type(self).__name__} does not support: {', '.join(details)}{others}. "
            f"It supports {self.support}: {self.remedy}"
        )

    def learned(self, survey: Any, has_missing: bool = False) -> Self:
        """The family for rows with this survey; with `has_missing`, NaN is a missing value."""
        return self.with_missing() if has_missing else copy(self)

    def with_missing(self) -> Self:
        """The same family for rows in which NaN is a missing value."""
        if not self.by_column:
            raise ParameterError(
                f"missing values (NaN) are supported by families with independent columns only, and {self!r} has "
                "dependent columns: drop rows with NaN, or fill them in"
            )
        family = copy(self)
        family.has_missing = True
        return family

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Self:
        """The same family for rows with this weighted mean and variance (d,); `rows` is the mean component weight."""
        return self

    def in_units_of(self, X: Any, w: np.ndarray) -> Self:
        """The same family for these rows with weights `w` (n,)."""
        return self

    def alike(self, other: "Family") -> bool:
        """Whether the parameters of the other family are valid for this one."""
        return type(self) is type(other)

    def translate(self, X: np.ndarray) -> np.ndarray:
        """Rows in the form that `features` needs, of the same shape; called once before a fit."""
        return X

    @property
    def translates(self) -> bool:
        """Whether `translate` changes the rows."""
        return False

    def restore(self, X: np.ndarray) -> np.ndarray:
        """The inverse of `translate`, for sampled rows."""
        return X

    def with_prior(self, prior: Any) -> Self:
        """The same family with this prior."""
        family = copy(self)
        family.prior = prior
        return family

    @property
    def has_prior(self) -> bool:
        """Whether parameters have a prior, which is equivalent to additional rows of weight 1."""
        return self.prior is not None

    # K components

    def prepare(self, params: Any) -> Any:
        """Quantities derived from the parameters, computed once per pass."""
        return params

    def features(self, X: Any) -> Any:
        """Quantities derived from a block of rows, computed once for densities and statistics."""
        return as_float64(X)

    def scores(self, prepared: Any, features: Any) -> np.ndarray:
        """Log densities (n, k), without the part that does not depend on the parameters: `row_base`."""
        raise NotImplementedError

    def row_base(self, X: Any) -> np.ndarray:
        """The part of the log densities of rows that does not depend on the parameters (n,)."""
        return np.zeros(X.shape[0])

    def statistics(self, prepared: Any, features: Any, resp: np.ndarray) -> Any:
        """Sums over the rows with responsibilities times weights `resp` (n, k); `prepared` is None initially."""
        raise NotImplementedError

    def blank(self, params: Any) -> Any:
        """Statistics of no rows, for as many components as `params` has."""
        raise NotImplementedError

    def possible(self, stats: Any) -> bool:
        """Whether rows could have these statistics, as far as `estimate` requires."""
        return True

    def estimate(self, stats: Any, before: Any = None) -> Any:
        """The maximum-likelihood (or, with a prior, MAP) parameters; the statistics were computed with `before`."""
        raise NotImplementedError

    def expected_log_prob(self, params: Any, stats: Any) -> float:
        """The sum of w r log p(x) over rows and components without `row_base`, from the statistics."""
        raise NotImplementedError

    def log_prior(self, params: Any) -> float:
        """The log density of the prior at the parameters of all components, up to a constant."""
        return 0.0

    def magnitude(self, params: Any) -> np.ndarray | float:
        """Size of the terms of a log density that nearly cancel (k,); rounding errors are proportional to it."""
        return 0.0

    def n_parameters(self, k: int, params: Any) -> int:
        """Number of free parameters of k components."""
        raise NotImplementedError

    def draw(self, params: Any, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Sample `n` rows of component `j` (n, d)."""
        raise NotImplementedError

    # one component, for users

    def fit(self, X: Any, sample_weight: Any = None, prior: Any = None) -> Self:
        """Estimate the parameters by maximum likelihood, or with a prior by maximum a posteriori.

        Parameters
        ----------
        X : array or CSR array (n, d)
            Rows. NaN is a missing value in families with independent columns.
        sample_weight : array (n,), default=None
            Weight of each row; None means 1 for all.
        prior : default=None
            Prior to use instead of that of the family.

        Returns
        -------
        self
        """
        X, w = _rows(X, sample_weight)
        family = self if prior is None else self.with_prior(prior)
        survey = family.survey(X)
        family.check(survey)
        family = family.learned(survey, _has_missing(X)).in_units_of(X, w)
        self._learned, self._params = family, family.fit_one(family.translate(X), w)
        self.show(self._params)
        return self

    def shown(self, params: Any) -> Any:
        """Parameters of K components in the form that users see."""
        return params

    def show(self, params: Any) -> None:
        """Set the public attributes of a fit: the parameters of the one component."""
        for field, value in params._asdict().items():
            setattr(self, f"{field}_", value[0])

    def fit_one(self, X: Any, w: np.ndarray) -> Any:
        """Parameters of one component for rows with weights `w` (n,)."""
        return self.estimate(self.statistics(None, self.features(X), w[:, None]))

    def log_prob(self, X: Any) -> np.ndarray:
        """Compute the log density of every row.

        Parameters
        ----------
        X : array or CSR array (n, d)

        Returns
        -------
        array (n,)
        """
        family, (X, _) = self._fitted, _rows(X)
        family.check(family.survey(X))
        family, X = family.with_missing() if _has_missing(X) else family, family.translate(X)
        return family.scores(family.prepare(self._params), family.features(X))[:, 0] + family.row_base(X)

    def sample(self, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw random rows from the fitted distribution.

        Parameters
        ----------
        n : int, default=1
            Number of rows.
        random_state : None, int, RandomState or Generator, default=None
            Seed or random generator.

        Returns
        -------
        array (n, d)
        """
        rows = self._fitted.draw(self._params, 0, whole_number("n", n, 1), as_rng(random_state))
        return self._fitted.restore(rows)

    @property
    def _fitted(self) -> Any:
        if not hasattr(self, "_params"):
            raise InputError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._learned

    def __repr__(self) -> str:
        options = {name: value for name, value in vars(self).items() if value is not None and not name.startswith("_")}
        options = {name: value for name, value in options.items() if not name.endswith("_") and name != "has_missing"}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in options.items())})"


def _rows(X: Any, sample_weight: Any = None) -> tuple[Any, np.ndarray]:
    """Rows (n, d) and their weights (n,), as numbers."""
    if not is_sparse(X):
        try:
            X = as_floats(X)
        except (TypeError, ValueError):
            raise InputError("X must contain numbers only: encode other values first") from None
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions, rows and columns; its shape is {X.shape}")
    if 0 in X.shape:
        raise InputError(f"X must have at least one row and one column; its shape is {X.shape}")
    try:
        w = np.ones(X.shape[0]) if sample_weight is None else as_floats(sample_weight)
    except (TypeError, ValueError):
        raise InputError("sample_weight must be numbers, one for each row of X") from None
    if w.shape != (X.shape[0],) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise InputError(f"sample_weight must be a finite number >= 0 for each of the {X.shape[0]} rows, and not all 0")
    return X, w


def _has_missing(X: Any) -> bool:
    return bool(np.isnan(X.data if is_sparse(X) else X).any())
