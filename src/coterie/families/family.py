"""What a mixture needs of its components."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import as_floats, as_rng, whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.core.stats import Stats

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Survey(Stats):
    """What has to be known of the rows before components are fitted to them."""

    off: Any  # (d,) how many values the family does not take
    example: Any  # (d,) one of them; NaN where there is none

    def __add__(self, other: Survey) -> Survey:
        return Survey(self.off + other.off, np.where(np.isnan(self.example), other.example, self.example))


class Family:
    """A kind of distribution of rows, K components of it at once.

    Parameters of K components are one NamedTuple of float64 arrays whose first axis is K; so are the arrays of the
    statistics. Components know nothing of each other: any number of them may be handled together. A family is small
    and can be sent anywhere; what it has to know of the columns (categories, say) it learns from a survey of the rows.

    What a mixture calls, in this order: `survey` (summed over all rows), `check`, `learned`; then in every pass
    `prepare`, `features`, `scores`, `statistics`, and after it `estimate`. For users there are `fit`, `log_prob` and
    `sample`: the same with one component.
    """

    name: ClassVar[str] = ""  # by which `coterie.Mixture` can be told to use it
    support: ClassVar[str] = "finite numbers"  # what values it takes, in words
    remedy: ClassVar[str] = "drop those rows, or choose another family"
    by_column: ClassVar[bool] = False  # columns are independent given the component: NaN may stand for missing values
    takes_sparse: ClassVar[bool] = False  # rows may be CSR
    starts_smoothed: ClassVar[bool] = False  # starts are sought with the default prior: a sample sees few of the values
    holes: bool = False  # whether NaN stands for a missing value
    prior: Any = None

    # what values it takes

    def supports(self, values: np.ndarray) -> np.ndarray:
        """Which of the values (n, d) can come from the family; of sparse rows, the stored ones."""
        return np.isfinite(values)

    @property
    def surveys(self) -> bool:
        """Whether there is anything to learn of the rows, or to refuse, beside that they are finite."""
        return type(self).supports is not Family.supports or type(self).survey is not Family.survey

    def survey(self, X: Any) -> Survey:
        """What these rows have to say before any component is fitted."""
        values = X.data if hasattr(X, "indptr") else X
        bad = ~(self.supports(values) | np.isnan(values))
        off, example = np.zeros(X.shape[1]), np.full(X.shape[1], np.nan)
        if bad.any():
            columns = X.indices[bad] if hasattr(X, "indptr") else np.nonzero(bad)[1]
            off += np.bincount(columns, minlength=X.shape[1])
            example[columns[::-1]] = values[bad][::-1]
        return Survey(off, example)

    def check(self, survey: Any, names: list[str] | None = None) -> None:
        """Refuses values that the family does not take, by the names of their columns."""
        where = np.flatnonzero(survey.off)
        if len(where) == 0:
            return
        names = names or [f"column {j}" for j in range(len(survey.off))]
        found = ", ".join(f"{names[j]} ({int(survey.off[j])}, such as {survey.example[j]:g})" for j in where[:5])
        more = f" and {len(where) - 5} more columns" if len(where) > 5 else ""
        raise InputError(
            f"Input X has values that {type(self).__name__} does not take: {found}{more}. "
            f"It takes {self.support}: {self.remedy}"
        )

    def learned(self, survey: Any, holes: bool = False) -> Self:
        """The family for rows like those surveyed; with `holes`, NaN stands for a missing value."""
        return self.allowing_holes() if holes else copy(self)

    def allowing_holes(self) -> Self:
        """The same for rows in which NaN stands for a missing value."""
        if not self.by_column:
            raise ParameterError(
                f"NaN can stand for missing values in families of independent columns; {self!r} is not one: "
                "drop rows with NaN, or fill them in"
            )
        found = copy(self)
        found.holes = True
        return found

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Self:
        """The same for rows of that mean and variance (d,), by weight, of which a component has `rows` on average."""
        return self

    def alike(self, other: Family) -> bool:
        """Whether parameters of the other can be taken for its own."""
        return type(self) is type(other)

    def translate(self, X: np.ndarray) -> np.ndarray:
        """Rows as `features` wants them, of the same shape; done once, before a fit."""
        return X

    @property
    def translates(self) -> bool:
        return False

    def restore(self, X: np.ndarray) -> np.ndarray:
        """The way back from `translate`, for rows that were drawn."""
        return X

    def with_prior(self, prior: Any) -> Self:
        """The same with that prior."""
        found = copy(self)
        found.prior = prior
        return found

    @property
    def has_prior(self) -> bool:
        """Whether parameters have a prior, which counts as rows of weight 1 do."""
        return self.prior is not None

    # K components

    def prepare(self, params: Any) -> Any:
        """What the passes need of the parameters, made once a pass."""
        return params

    def features(self, X: Any) -> Any:
        """What densities and statistics need of a block of rows, made once for both."""
        return np.asarray(X, dtype=np.float64)

    def scores(self, prepared: Any, features: Any) -> np.ndarray:
        """Log densities (n, k), less what is the same for all parameters: `row_base`."""
        raise NotImplementedError

    def row_base(self, X: Any) -> np.ndarray:
        """The part of the rows' log densities that is the same for all parameters (n,)."""
        return np.zeros(X.shape[0])

    def statistics(self, prepared: Any, features: Any, resp: np.ndarray) -> Any:
        """Sums over the rows under `resp` (n, k), which holds their weights too; `prepared` is None before a start."""
        raise NotImplementedError

    def blank(self, params: Any) -> Any:
        """Statistics of no rows, for as many components as there are parameters of."""
        raise NotImplementedError

    def possible(self, stats: Any) -> bool:
        """Whether rows could have such statistics, as far as `estimate` minds."""
        return True

    def estimate(self, stats: Any, before: Any = None) -> Any:
        """The most probable parameters for the statistics (the likeliest, without a prior); `before` led to these."""
        raise NotImplementedError

    def expected_log_prob(self, params: Any, stats: Any) -> float:
        """The sum of w r log p(x) over rows and components less `row_base`, from the statistics alone."""
        raise NotImplementedError

    def log_prior(self, params: Any) -> float:
        """The log density of the prior at the parameters of all components together, up to a constant."""
        return 0.0

    def magnitude(self, params: Any) -> np.ndarray | float:
        """How large terms of a log density can be that all but cancel (k,): so much larger is its rounding."""
        return 0.0

    def n_parameters(self, k: int, params: Any) -> int:
        """Free parameters of k components."""
        raise NotImplementedError

    def draw(self, params: Any, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """`n` rows of component `j` (n, d)."""
        raise NotImplementedError

    # one component, for users

    def fit(self, X: Any, sample_weight: Any = None, prior: Any = None) -> Self:
        """The likeliest parameters for the rows of `X` (n, d), or with a `prior` the most probable ones."""
        X, w = _rows(X, sample_weight)
        asked = self if prior is None else self.with_prior(prior)
        survey = asked.survey(X)
        asked.check(survey)
        family = asked.learned(survey, _has_holes(X))
        self._learned, self._params = family, family.fit_one(family.translate(X), w)
        self.show(self._params)
        return self

    def shown(self, params: Any) -> Any:
        """Parameters of K components as users see them."""
        return params

    def show(self, params: Any) -> None:
        """Sets what users see of a fit: the parameters of the one component."""
        for field, value in params._asdict().items():
            setattr(self, f"{field}_", value[0])

    def fit_one(self, X: Any, w: np.ndarray) -> Any:
        """Parameters of one component for rows of weight `w` (n,)."""
        return self.estimate(self.statistics(None, self.features(X), w[:, None]))

    def log_prob(self, X: Any) -> np.ndarray:
        """The log density of every row (n,)."""
        family, (X, _) = self._fitted, _rows(X)
        family.check(family.survey(X))
        family, X = family.allowing_holes() if _has_holes(X) else family, family.translate(X)
        return family.scores(family.prepare(self._params), family.features(X))[:, 0] + family.row_base(X)

    def sample(self, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Rows drawn from it (n, d)."""
        rows = self._fitted.draw(self._params, 0, whole_number("n", n, 1), as_rng(random_state))
        return self._fitted.restore(rows)

    @property
    def _fitted(self) -> Any:
        if not hasattr(self, "_params"):
            raise InputError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._learned

    def __repr__(self) -> str:
        asked = {name: value for name, value in vars(self).items() if value is not None and not name.startswith("_")}
        asked = {name: value for name, value in asked.items() if not name.endswith("_") and name != "holes"}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in asked.items())})"


def _rows(X: Any, sample_weight: Any = None) -> tuple[Any, np.ndarray]:
    """Rows (n, d) and their weights (n,), as numbers."""
    if not hasattr(X, "indptr"):
        try:
            X = as_floats(X)
        except (TypeError, ValueError):
            raise InputError("X must hold numbers, a row each: encode others first") from None
    if X.ndim != 2:
        raise InputError(f"X must have rows and columns; its shape is {X.shape}")
    if 0 in X.shape:
        raise InputError(f"X must have at least one row and one column; its shape is {X.shape}")
    try:
        w = np.ones(X.shape[0]) if sample_weight is None else as_floats(sample_weight)
    except (TypeError, ValueError):
        raise InputError("sample_weight must be numbers, one for each row of X") from None
    if w.shape != (X.shape[0],) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise InputError(
            f"sample_weight must be a finite number of at least 0 for each of the {X.shape[0]} rows, not all 0"
        )
    return X, w


def _has_holes(X: Any) -> bool:
    return bool(np.isnan(X.data if hasattr(X, "indptr") else X).any())
