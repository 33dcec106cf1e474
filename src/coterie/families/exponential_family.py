"""The base class of exponential families."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from coterie import kernels
from coterie.core.arrays import as_float64, column_sums, is_sparse
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families.family import Family
from coterie.families.prior import Pseudo

NO_WEIGHT = 1e-200  # the sums of a component without rows are divided by this, so that those of a prior do not overflow


class Linear(NamedTuple):
    """Log densities of an exponential family as linear functions of the sufficient statistics."""

    natural: np.ndarray  # (k, p) natural parameters
    constant: np.ndarray  # (k,) minus the log normalizer; (k, d) by column if values can be missing
    direct: Any = None  # argument of `direct_scores`, if matrix products would lose digits


@stored("statistics.ExponentialFamily")
@dataclass(frozen=True)
class Sums(Stats):
    """Sums of the sufficient statistics of an exponential family."""

    weight: Any  # (k, 1) sums of w r; (k, d) by column if values can be missing
    sum_t: Any  # (k, p) sums of w r T(x)


class ObservedStatistics(NamedTuple):
    """Statistics of rows with missing values."""

    T: np.ndarray  # (n, p), 0 for missing values
    observed: np.ndarray  # (n, d) 1 for observed values, 0 for missing ones


class ExponentialFamily(Family):
    r"""Base class of exponential families, with densities :math:`h(x) \exp(T(x) \cdot \eta - A(\eta))`.

    A subclass defines T, eta, A and h, and the parameters for which T has a given mean: these maximise the likelihood.
    The densities of all components are one matrix product, the statistics another. So a subclass of a few lines runs
    fast on every engine, and supports weights.

    If columns are independent (`by_column`), `log_normalizer` is (k, d) and `log_base` (n, d), and T contains its first
    statistic for all columns, then the second, and so on. Rows can then have missing values: a missing value adds
    nothing to the density of its row, nor to the statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from typing import NamedTuple
    >>> from coterie.families import ExponentialFamily
    >>> class Rates(NamedTuple):
    ...     rate: np.ndarray
    >>> class Waiting(ExponentialFamily):  # the exponential distribution
    ...     by_column = True
    ...
    ...     def natural(self, params):
    ...         return -params.rate
    ...
    ...     def log_normalizer(self, params):
    ...         return -np.log(params.rate)
    ...
    ...     def from_means(self, mean):
    ...         return Rates(1.0 / mean)
    >>> Waiting().fit([[1.0], [3.0]]).rate_.tolist()
    [0.5]
    """

    statistics_per_column: ClassVar[int] = 1  # if columns are independent
    weighs_columns: ClassVar[bool] = True  # whether statistics contain a weight per column if values can be missing
    filler: ClassVar[float] = 1.0  # a value of the support that temporarily replaces missing values

    # to be defined by subclasses

    def sufficient(self, X: np.ndarray) -> np.ndarray:
        """T(x) of every row (n, p)."""
        return X

    def natural(self, params: Any) -> np.ndarray:
        """eta (k, p)."""
        raise NotImplementedError

    def log_normalizer(self, params: Any) -> np.ndarray:
        """A (k,), or (k, d) if columns are independent."""
        raise NotImplementedError

    def log_base(self, X: Any) -> Any:
        """log h(x) of every row (n,), or (n, d) if columns are independent."""
        return np.zeros(X.shape[0])

    def from_means(self, mean: np.ndarray) -> Any:
        """The parameters for which T has this mean (k, p); they must be valid for any mean."""
        raise NotImplementedError

    def pseudo(self) -> Pseudo:
        """The prior, as statistics of pseudo-observations; a family that supports a prior overrides this."""
        if self.prior is not None:
            name = type(self).__name__
            raise ParameterError(f"{name} does not support a prior; got {self.prior!r}: set prior=None")
        return Pseudo()

    # defined here

    def prepare(self, params: Any) -> Linear:
        return self._linear(self.natural(params), -self.log_normalizer(params))

    def _linear(self, natural: np.ndarray, constant: np.ndarray, direct: Any = None) -> Linear:
        """Linear log densities; `constant` is summed over the columns, unless values can be missing."""
        by_column = self.has_missing or constant.ndim == 1
        return Linear(natural, constant if by_column else constant.sum(axis=1), direct)

    def features(self, X: Any) -> Any:
        if is_sparse(X):
            return X
        X = as_float64(X)
        missing = np.isnan(X) if self.has_missing else None
        if missing is None or not missing.any():
            return self.sufficient(X)
        T = self.sufficient(np.where(missing, self.filler, X))
        return ObservedStatistics(np.where(self.per_statistic(missing), 0.0, T), (~missing).astype(np.float64))

    def scores(self, prepared: Linear, features: Any) -> np.ndarray:
        natural, constant, direct = prepared
        if isinstance(features, ObservedStatistics):
            scores = features.T @ natural.T + features.observed @ constant.T
        else:
            scores = kernels.select("products", features, len(natural)).products(features, natural) + (
                constant.sum(axis=1) if constant.ndim == 2 else constant
            )
        return scores if direct is None else scores + self.direct_scores(direct, features)

    def direct_scores(self, direct: Any, features: Any) -> np.ndarray:
        """Scores (n, k) that are added to the products; they are computed directly, because products would cancel."""
        raise NotImplementedError

    def row_base(self, X: Any) -> np.ndarray:
        X = X if is_sparse(X) else as_float64(X)
        missing = np.isnan(X) if self.has_missing else None
        base = self.log_base(X if missing is None else np.where(missing, self.filler, X))
        if base.ndim == 2:
            base = (base if missing is None else np.where(missing, 0.0, base)).sum(axis=1)
        return as_float64(base).ravel()

    def statistics(self, prepared: Any, features: Any, resp: np.ndarray) -> Sums:
        if isinstance(features, ObservedStatistics):
            return Sums(resp.T @ features.observed, resp.T @ features.T)
        weight = np.repeat(column_sums(resp)[:, None], self._n_weights(features.shape[1]), axis=1)
        return Sums(weight, kernels.select("products", features, resp.shape[1]).weighted_sums(features, resp))

    def blank(self, params: Any) -> Sums:
        natural = self.natural(params)
        return Sums(np.zeros((len(natural), self._n_weights(natural.shape[1]))), np.zeros(natural.shape))

    def _n_weights(self, p: int) -> int:
        """The number of weights per component: one per column if values can be missing, else 1."""
        return p // self.statistics_per_column if self.has_missing and self.weighs_columns else 1

    def possible(self, stats: Sums) -> bool:
        return bool((stats.weight > 0).all())

    def estimate(self, stats: Sums, before: Any = None) -> Any:
        prior = self.pseudo()
        p = stats.sum_t.shape[1]
        for value, length in zip(prior, (p // self.statistics_per_column, p), strict=True):
            if np.ndim(value) and np.shape(value) != (length,):
                raise ParameterError(
                    f"{self!r}: the prior must have one number for all columns, or {length} numbers, one per column"
                )
        weight = stats.weight + prior.weight
        if weight.shape[1] > 1:
            weight = self.per_statistic(weight)
        return self.from_means((stats.sum_t + prior.sum_t) / np.maximum(weight, NO_WEIGHT))

    def expected_log_prob(self, params: Any, stats: Sums) -> float:
        normalizer = self.log_normalizer(params).reshape(len(stats.weight), -1)
        return float((stats.sum_t * self.natural(params)).sum() - (stats.weight * normalizer).sum())

    def log_prior(self, params: Any) -> float:
        weight, sum_t = self.pseudo()
        return float((sum_t * self.natural(params)).sum() - (weight * self.log_normalizer(params)).sum())

    def n_parameters(self, k: int, params: Any) -> int:
        return int(self.natural(params)[0].size) * k

    def per_statistic(self, by_column: np.ndarray) -> np.ndarray:
        """Repeat values (n, d) for each statistic of the columns: (n, p)."""
        return np.concatenate([by_column] * self.statistics_per_column, axis=1)


class ConjugateFamily(ExponentialFamily):
    """Base class of exponential families with a conjugate prior and a posterior in closed form."""

    def __init__(self, prior: Any = None):
        self.prior = prior

    def expected(self, stats: Sums) -> Linear:
        """Expected log densities under the posterior of components with these statistics."""
        return self._linear(*self._expected_natural(stats))

    def log_evidence(self, stats: Sums) -> np.ndarray:
        """The log evidence of the rows of each component (k,), without `row_base`."""
        difference = self._log_size(stats) - self._log_size(stats.scaled(0.0))
        return difference if difference.ndim == 1 else difference.sum(axis=1)

    def _expected_natural(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        """The expectations of eta (k, p), and of -A (k,), or (k, d) if columns are independent."""
        raise NotImplementedError

    def _log_size(self, stats: Sums) -> np.ndarray:
        """The log normalising constant of the posterior (k,), or (k, d) if columns are independent."""
        raise NotImplementedError


def of_stored(X: Any, function: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Apply `function` to all values, or to the stored values of sparse rows; it must be 0 at 0."""
    if is_sparse(X):
        return sparse.csr_array((function(X.data.astype(np.float64)), X.indices, X.indptr), shape=X.shape)
    return function(X)
