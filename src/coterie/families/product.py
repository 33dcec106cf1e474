"""Product: groups of columns, each with a family of its own."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from coterie.core.stored import stored
from coterie.families.groups import Grouped, Groups, numbers


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


@stored("family.Product", attributes="groups table holes _groups", check=_is_consistent)
class Product(Grouped):
    r"""Groups of columns that are independent given the component: tables of mixed columns, latent classes, profiles.

    .. math:: p(x) = \prod_g p_g(x_g)

    Do not use it for columns that depend on each other within a cluster; put those into one group of a family that can
    say so (Gaussian of full covariances).

    Parameters
    ----------
    groups : sequence of (family, columns)
        A family, or its name, and the numbers of its columns. A column belongs to one group.
    table : optional
        What is known of the columns of a frame; `Mixture.from_frame` has it.

    Attributes
    ----------
    groups_ : list of Family
        The family of each group, fitted.

    Examples
    --------
    >>> from coterie.families import Product
    >>> both = Product([("poisson", [0]), ("bernoulli", [1, 2])]).fit([[3, 0, 1], [5, 0, 0]])
    >>> both.groups_[0].rate_.tolist(), both.groups_[1].probability_.tolist()
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
        return sum(family.scores(ready, some) for (family, _), ready, some in parts)

    def row_base(self, X: np.ndarray) -> np.ndarray:
        return sum(family.row_base(X[:, columns]) for family, columns in self.families)

    # parameters

    def n_parameters(self, k: int, params: Any) -> int:
        return sum(family.n_parameters(k, part) for (family, _), part in self._with(params))

    def log_prior(self, params: Any) -> float:
        return sum(family.log_prior(part) for (family, _), part in self._with(params))

    def magnitude(self, params: Any) -> Any:
        return sum(family.magnitude(part) for (family, _), part in self._with(params))

    def expected_log_prob(self, params: Any, stats: Groups) -> float:
        parts = zip(self._with(params), stats.groups, strict=True)
        return sum(family.expected_log_prob(part, some) for ((family, _), part), some in parts)

    # statistics

    def statistics(self, prepared: Any, features: Any, resp: np.ndarray) -> Groups:
        ready = [None] * len(features) if prepared is None else prepared
        parts = zip(self.families, ready, features, strict=True)
        return Groups(*(family.statistics(one, some, resp) for (family, _), one, some in parts))

    def blank(self, params: Any) -> Groups:
        return Groups(*(family.blank(part) for (family, _), part in self._with(params)))

    def possible(self, stats: Groups) -> bool:
        return all(family.possible(some) for (family, _), some in zip(self.families, stats.groups, strict=True))

    def estimate(self, stats: Groups, before: Any = None) -> tuple[Any, ...]:
        parts = zip(self.families, stats.groups, [None] * len(stats.groups) if before is None else before, strict=True)
        return tuple(family.estimate(some, last) for (family, _), some, last in parts)

    def fit_one(self, X: np.ndarray, w: np.ndarray) -> tuple[Any, ...]:
        return tuple(family.fit_one(X[:, columns], w) for family, columns in self.families)

    # the posterior: that of each group

    def expected(self, stats: Groups) -> tuple[Any, ...]:
        parts = zip(self.families, stats.groups, strict=True)
        return tuple(family.expected(some) for (family, _), some in parts)

    def log_evidence(self, stats: Groups) -> np.ndarray:
        parts = zip(self.families, stats.groups, strict=True)
        return sum(family.log_evidence(some) for (family, _), some in parts)

    # sampling

    def draw(self, params: Any, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        rows = np.empty((n, sum(len(numbers(columns)) for _, columns in self.families)))
        for (family, columns), part in self._with(params):
            rows[:, columns] = family.draw(part, j, n, rng)
        return rows

    # for users

    def by_name(self) -> dict[str, str]:
        """The family of each column."""
        pairs = sorted((j, repr(family)) for family, columns in self.families for j in numbers(columns))
        return {self._name(j): family for j, family in pairs}

    def _name(self, j: int) -> str:
        return f"column {j}" if self.table is None else self.table.names[j]

    def shown(self, params: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (family, _), part in self._with(params):
            name = family.name or type(family).__name__
            again = sum(key.split(" ")[0] == name for key in found)
            found[f"{name} {again + 1}" if again else name] = family.shown(part)
        return found

    def show(self, params: Any) -> None:
        self.groups_ = []
        for (family, _), part in zip(self._learned.families, params, strict=True):
            shown = copy(family)
            shown._learned, shown._params = family, part
            shown.show(part)
            self.groups_.append(shown)

    def _with(self, params: Any) -> Any:
        return zip(self.families, params, strict=True)

    def __repr__(self) -> str:
        groups = (
            f"{family!r}: {', '.join(self._name(j) for j in numbers(columns))}" for family, columns in self.families
        )
        return f"Product({'; '.join(groups)})"
