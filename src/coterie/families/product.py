"""Product distribution: independent groups of columns with a family each."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from coterie.core.stored import stored
from coterie.families.groups import Grouped, Groups, column_indices


def _is_consistent(family: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether the codes of text columns are positions in their lists of categories."""
    table = family.get("table")
    if table is None:
        return True
    for group, columns in family.get("_groups", ()):
        for column, levels in zip(np.arange(len(table.names))[columns], getattr(group, "_levels", ()), strict=False):
            categories = table.categories[column]
            if categories is not None and not np.isin(levels, np.arange(len(categories))).all():
                return False
    return True


@stored("family.Product", attributes="groups table has_missing _groups", check=_is_consistent)
class Product(Grouped):
    r"""Product of families of groups of columns, which are independent within a component; for mixed columns.

    .. math:: p(x) = \prod_g p_g(x_g)

    Mixtures of products are latent class and latent profile models. If columns depend on each other within a cluster,
    put them into one group with a family that models the dependence, such as Gaussian with full covariances.

    Parameters
    ----------
    groups : sequence of (family, columns)
        A family, or its name, and the indices of its columns. Each column must be in exactly one group.
    table : default=None
        Names and categories of the columns of a data frame; set by `Mixture.from_frame`.

    Attributes
    ----------
    groups_ : list of Family
        The fitted family of each group.

    Examples
    --------
    >>> from coterie.families import Product
    >>> product = Product([("poisson", [0]), ("bernoulli", [1, 2])]).fit([[3, 0, 1], [5, 0, 0]])
    >>> product.groups_[0].rate_.tolist(), product.groups_[1].probability_.tolist()
    ([4.0], [1e-10, 0.5])
    """

    name = "product"

    def __init__(self, groups: Any, table: Any = None):
        self.groups = groups
        self.table = table

    @property
    def has_prior(self) -> bool:
        return any(family.has_prior for family, _ in self.families)

    # density

    def prepare(self, params: Any) -> tuple[Any, ...]:
        return tuple(family.prepare(part) for (family, _), part in self._with(params))

    def features(self, X: np.ndarray) -> tuple[Any, ...]:
        return tuple(family.features(X[:, columns]) for family, columns in self.families)

    def scores(self, prepared: Any, features: Any) -> np.ndarray:
        parts = zip(self.families, prepared, features, strict=True)
        total: Any = sum(family.scores(part, columns) for (family, _), part, columns in parts)
        return total

    def row_base(self, X: np.ndarray) -> np.ndarray:
        total: Any = sum(family.row_base(X[:, columns]) for family, columns in self.families)
        return total

    # parameters

    def n_parameters(self, k: int, params: Any) -> int:
        return sum(family.n_parameters(k, part) for (family, _), part in self._with(params))

    def log_prior(self, params: Any) -> float:
        return sum(family.log_prior(part) for (family, _), part in self._with(params))

    def magnitude(self, params: Any) -> Any:
        return sum(family.magnitude(part) for (family, _), part in self._with(params))

    def expected_log_prob(self, params: Any, stats: Groups) -> float:
        parts = zip(self._with(params), stats.groups, strict=True)
        return sum(family.expected_log_prob(part, sums) for ((family, _), part), sums in parts)

    # statistics

    def statistics(self, prepared: Any, features: Any, resp: np.ndarray) -> Groups:
        parts = zip(self.families, [None] * len(features) if prepared is None else prepared, features, strict=True)
        return Groups(*(family.statistics(part, columns, resp) for (family, _), part, columns in parts))

    def blank(self, params: Any) -> Groups:
        return Groups(*(family.blank(part) for (family, _), part in self._with(params)))

    def possible(self, stats: Groups) -> bool:
        return all(family.possible(sums) for (family, _), sums in zip(self.families, stats.groups, strict=True))

    def estimate(self, stats: Groups, before: Any = None) -> tuple[Any, ...]:
        parts = zip(self.families, stats.groups, [None] * len(stats.groups) if before is None else before, strict=True)
        return tuple(family.estimate(sums, params) for (family, _), sums, params in parts)

    def fit_one(self, X: np.ndarray, w: np.ndarray) -> tuple[Any, ...]:
        return tuple(family.fit_one(X[:, columns], w) for family, columns in self.families)

    # the posterior: that of each group

    def expected(self, stats: Groups) -> tuple[Any, ...]:
        families: Any = self.families
        return tuple(family.expected(sums) for (family, _), sums in zip(families, stats.groups, strict=True))

    def log_evidence(self, stats: Groups) -> np.ndarray:
        families: Any = self.families
        total: Any = sum(family.log_evidence(sums) for (family, _), sums in zip(families, stats.groups, strict=True))
        return total

    # sampling

    def draw(self, params: Any, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        rows = np.empty((n, sum(len(column_indices(columns)) for _, columns in self.families)))
        for (family, columns), part in self._with(params):
            rows[:, columns] = family.draw(part, j, n, rng)
        return rows

    # for users

    def by_name(self) -> dict[str, str]:
        """The family of each column."""
        pairs = sorted((j, repr(family)) for family, columns in self.families for j in column_indices(columns))
        return {self._name(j): family for j, family in pairs}

    def _name(self, j: int) -> str:
        return f"column {j}" if self.table is None else self.table.names[j]

    def shown(self, params: Any) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        for (family, _), part in self._with(params):
            name = family.name or type(family).__name__
            n_same = sum(key.split(" ")[0] == name for key in parts)
            parts[f"{name} {n_same + 1}" if n_same else name] = family.shown(part)
        return parts

    def show(self, params: Any) -> None:
        self.groups_ = []
        for (family, _), part in zip(self._learned.families, params, strict=True):
            fitted = copy(family)
            fitted._learned, fitted._params = family, part
            fitted.show(part)
            self.groups_.append(fitted)

    def _with(self, params: Any) -> Any:
        return zip(self.families, params, strict=True)

    def __repr__(self) -> str:
        groups = (
            f"{family!r}: {', '.join(self._name(j) for j in column_indices(columns))}"
            for family, columns in self.families
        )
        return f"Product({'; '.join(groups)})"
