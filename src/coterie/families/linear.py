"""What an exponential family has to say to be a family of components: little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from coterie import kernels
from coterie.core.errors import ParameterError
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.families.family import TINY, Family
from coterie.families.prior import Pseudo


class Linear(NamedTuple):
    """Log densities of an exponential family as linear functions of its statistics."""

    natural: np.ndarray  # (k, p)
    constant: np.ndarray  # (k,) minus the log normalizer; (k, d) column by column where values may be missing
    direct: Any = None  # what `direct_scores` needs, where products would lose digits


@stored("statistics.ExponentialFamily")
@dataclass(frozen=True)
class Sums(Stats):
    """All that rows have to say about the components of an exponential family."""

    weight: Any  # (k, 1) of w r; (k, d) column by column where values may be missing
    sum_t: Any  # (k, p) of w r T(x)


class Observed(NamedTuple):
    """Statistics of rows with holes."""

    T: np.ndarray  # (n, p), 0 where the value is missing
    there: np.ndarray  # (n, d) 1 where it is there, else 0


class ExponentialFamily(Family):
    r"""Densities :math:`h(x) \exp(T(x) \cdot \eta - A(\eta))`.

    A subclass says what T, eta, A and h are, and which parameters make the mean of T what it is: these are the
    likeliest. Densities of all components are one matrix product, statistics another, so a subclass of a few lines
    runs on every engine, with weights, at their speed.

    Where columns are independent (`by_column`), `log_normalizer` is (k, d) and `log_base` (n, d), one number a column,
    and T holds one statistic of all columns after the other. Rows may then have holes: a value that is missing adds
    nothing to the density of its row, nor to the statistics.
    """

    statistics_per_column: ClassVar[int] = 1  # where columns are independent
    weighs_columns: ClassVar[bool] = True  # whether statistics keep a weight a column where values may be missing
    filler: ClassVar[float] = 1.0  # of the support; it stands where a value is missing, and counts for nothing

    # what a subclass says

    def sufficient(self, X: np.ndarray) -> np.ndarray:
        """T(x) of every row (n, p)."""
        return X

    def natural(self, params: Any) -> np.ndarray:
        """eta (k, p)."""
        raise NotImplementedError

    def log_normalizer(self, params: Any) -> np.ndarray:
        """A (k,), or (k, d) where columns are independent."""
        raise NotImplementedError

    def log_base(self, X: Any) -> Any:
        """log h(x) of every row (n,), or (n, d) where columns are independent."""
        return np.zeros(X.shape[0])

    def from_means(self, mean: np.ndarray) -> Any:
        """The parameters under which T has that mean (k, p); sound ones, whatever the mean."""
        raise NotImplementedError

    def pseudo(self) -> Pseudo:
        """The prior, as rows seen before."""
        return Pseudo()

    # what it gets for it

    def prepare(self, params: Any) -> Linear:
        constant = -self.log_normalizer(params)
        return Linear(self.natural(params), constant if self.holes or constant.ndim == 1 else constant.sum(axis=1))

    def features(self, X: Any) -> Any:
        if hasattr(X, "indptr"):
            return X
        X = np.asarray(X, dtype=np.float64)
        gaps = np.isnan(X) if self.holes else None
        if gaps is None or not gaps.any():
            return self.sufficient(X)
        T = self.sufficient(np.where(gaps, self.filler, X))
        return Observed(np.where(self.per_statistic(gaps), 0.0, T), (~gaps).astype(np.float64))

    def scores(self, prepared: Linear, features: Any) -> np.ndarray:
        natural, constant, direct = prepared
        if isinstance(features, Observed):
            scores = features.T @ natural.T + features.there @ constant.T
        else:
            scores = kernels.select("products", features, len(natural)).products(features, natural) + (
                constant.sum(axis=1) if constant.ndim == 2 else constant
            )
        return scores if direct is None else scores + self.direct_scores(direct, features)

    def direct_scores(self, direct: Any, features: Any) -> np.ndarray:
        """What components add to the products (n, k), value by value: terms that would cancel are left out of both."""
        raise NotImplementedError

    def row_base(self, X: Any) -> np.ndarray:
        X = X if hasattr(X, "indptr") else np.asarray(X, dtype=np.float64)
        gaps = np.isnan(X) if self.holes else None
        base = self.log_base(X if gaps is None else np.where(gaps, self.filler, X))
        if base.ndim == 2:
            base = (base if gaps is None else np.where(gaps, 0.0, base)).sum(axis=1)
        return np.asarray(base, dtype=np.float64).ravel()

    def statistics(self, prepared: Any, features: Any, resp: np.ndarray) -> Sums:
        if isinstance(features, Observed):
            return Sums(resp.T @ features.there, resp.T @ features.T)
        weight = np.repeat((np.ones(len(resp)) @ resp)[:, None], self._weights_kept(features.shape[1]), axis=1)
        return Sums(weight, kernels.select("products", features, resp.shape[1]).weighted(features, resp))

    def blank(self, params: Any) -> Sums:
        natural = self.natural(params)
        return Sums(np.zeros((len(natural), self._weights_kept(natural.shape[1]))), np.zeros(natural.shape))

    def _weights_kept(self, p: int) -> int:
        return p // self.statistics_per_column if self.holes and self.weighs_columns else 1

    def possible(self, stats: Sums) -> bool:
        return bool((stats.weight > 0).all())

    def estimate(self, stats: Sums, before: Any = None) -> Any:
        seen_before = self.pseudo()
        p = stats.sum_t.shape[1]
        for given, wanted in zip(seen_before, (p // self.statistics_per_column, p), strict=True):
            if np.ndim(given) and np.shape(given) != (wanted,):
                raise ParameterError(f"{self!r}: a prior has one number for all columns, or {wanted}, one for each")
        weight = stats.weight + seen_before.weight
        if weight.shape[1] > 1:
            weight = self.per_statistic(weight)
        return self.from_means((stats.sum_t + seen_before.sum_t) / np.maximum(weight, TINY))

    def expected_log_prob(self, params: Any, stats: Sums) -> float:
        normalizer = self.log_normalizer(params).reshape(len(stats.weight), -1)
        return float((stats.sum_t * self.natural(params)).sum() - (stats.weight * normalizer).sum())

    def log_prior(self, params: Any) -> float:
        weight, sum_t = self.pseudo()
        return float((sum_t * self.natural(params)).sum() - (weight * self.log_normalizer(params)).sum())

    def n_parameters(self, k: int, params: Any) -> int:
        return int(self.natural(params)[0].size) * k

    def per_statistic(self, by_column: np.ndarray) -> np.ndarray:
        """(n, d) values as (n, p), one for each statistic of the column."""
        return np.concatenate([by_column] * self.statistics_per_column, axis=1)


def of_stored(X: Any, function: Callable[[np.ndarray], np.ndarray]) -> Any:
    """`function` of every value; of sparse rows, of those that are stored: it must be 0 at 0."""
    if hasattr(X, "indptr"):
        return sparse.csr_array((function(X.data.astype(np.float64)), X.indices, X.indptr), shape=X.shape)
    return function(X)
