"""Product distribution: independent groups of columns with a family each."""

from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np

from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families.family import Family
from coterie.families.groups import Groups, as_group, as_slice, column_indices


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
class Product(Family):
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
    _groups: list[tuple[Family, Any]]

    def __init__(self, groups: Any, table: Any = None):
        self.groups, self.table = groups, table

    # groups of columns

    @property
    def families(self) -> list[tuple[Family, Any]]:
        """Families and their columns; adjacent columns are a slice, so that they are not copied."""
        from coterie.families import as_family

        if hasattr(self, "_groups"):
            return self._groups
        groups = [(as_family(family), columns) for family, columns in map(as_group, self.groups)]
        indices = sorted(j for _, columns in groups for j in columns)
        if indices != list(range(len(indices))) or not all(columns for _, columns in groups):
            raise ParameterError(f"groups must contain each column (0, 1, ...) exactly once; got columns {indices}")
        return [(family, as_slice(columns)) for family, columns in groups]

    def _each(self, method: str, *arguments: Any) -> list[Any]:
        """The results of a method of all families; each argument has an entry for each family."""
        rows = zip(self.families, *arguments, strict=True)
        return [getattr(family, method)(*values) for (family, _), *values in rows]

    def with_families(self, function: Callable[[Family, Any], Family]) -> Self:
        """The same product with ``function(family, columns)`` instead of each family."""
        result = copy(self)
        result._groups = [(function(family, columns), columns) for family, columns in self.families]
        return result

    def with_prior(self, prior: Any) -> Self:
        return self.with_families(lambda family, _: family.with_prior(prior))

    @property
    def has_prior(self) -> bool:
        return any(family.has_prior for family, _ in self.families)

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Self:
        return self.with_families(lambda family, columns: family.in_units(rows, mean[columns], variance[columns]))

    def in_units_of(self, X: Any, w: np.ndarray) -> Self:
        return self.with_families(lambda family, columns: family.in_units_of(X[:, columns], w))

    @property
    def by_column(self) -> bool:  # type: ignore[override]
        return all(family.by_column for family, _ in self.families)

    # valid values

    def survey(self, X: np.ndarray) -> Any:
        width = sum(len(column_indices(columns)) for _, columns in self.families)
        if X.shape[1] != width:
            raise ParameterError(f"groups have {width} columns, but X has {X.shape[1]}: assign each column to a group")
        return Groups(*self._each("survey", self._columns(X)))

    def check(self, survey: Groups, names: list[str] | None = None) -> None:
        for (family, columns), part in zip(self.families, survey.groups, strict=True):
            family.check(part, [names[j] if names else f"column {j}" for j in column_indices(columns)])

    def learned(self, survey: Groups, has_missing: bool = False) -> Self:
        surveys = iter(survey.groups)
        result = self.with_families(lambda family, _: family.learned(next(surveys), has_missing))
        result.has_missing = has_missing
        return result

    def with_missing(self) -> Self:
        result = self.with_families(lambda family, _: family.with_missing())
        result.has_missing = True
        return result

    def alike(self, other: Family) -> bool:
        return (
            isinstance(other, Product)
            and len(self.families) == len(other.families)
            and all(a.alike(b) and c == e for (a, c), (b, e) in zip(self.families, other.families, strict=True))
        )

    @property
    def translates(self) -> bool:
        return any(family.translates for family, _ in self.families)

    def translate(self, X: np.ndarray) -> np.ndarray:
        return self._converted(X, "translate")

    def restore(self, X: np.ndarray) -> np.ndarray:
        return self._converted(X, "restore")

    def _converted(self, X: np.ndarray, method: str) -> np.ndarray:
        rows = np.array(X)
        for family, columns in self.families:
            if family.translates:
                rows[:, columns] = getattr(family, method)(X[:, columns])
        return rows

    def _columns(self, X: np.ndarray) -> list[np.ndarray]:
        """The columns of each group."""
        return [X[:, columns] for _, columns in self.families]

    # density

    def prepare(self, params: Any) -> tuple[Any, ...]:
        return tuple(self._each("prepare", params))

    def features(self, X: np.ndarray) -> tuple[Any, ...]:
        return tuple(self._each("features", self._columns(X)))

    def scores(self, prepared: Any, features: Any) -> Any:
        return sum(self._each("scores", prepared, features))

    def row_base(self, X: np.ndarray) -> Any:
        return sum(self._each("row_base", self._columns(X)))

    # parameters

    def n_parameters(self, k: int, params: Any) -> int:
        return sum(self._each("n_parameters", [k] * len(params), params))

    def log_prior(self, params: Any) -> float:
        return sum(self._each("log_prior", params))

    def magnitude(self, params: Any) -> Any:
        return sum(self._each("magnitude", params))

    def expected_log_prob(self, params: Any, stats: Groups) -> float:
        return sum(self._each("expected_log_prob", params, stats.groups))

    # statistics

    def statistics(self, prepared: Any, features: Any, resp: np.ndarray) -> Groups:
        prepared = [None] * len(features) if prepared is None else prepared
        return Groups(*self._each("statistics", prepared, features, [resp] * len(features)))

    def blank(self, params: Any) -> Groups:
        return Groups(*self._each("blank", params))

    def possible(self, stats: Groups) -> bool:
        return all(self._each("possible", stats.groups))

    def estimate(self, stats: Groups, before: Any = None) -> tuple[Any, ...]:
        return tuple(self._each("estimate", stats.groups, [None] * len(stats.groups) if before is None else before))

    def fit_one(self, X: np.ndarray, w: np.ndarray) -> tuple[Any, ...]:
        return tuple(self._each("fit_one", self._columns(X), [w] * len(self.families)))

    # the posterior: that of each group

    def expected(self, stats: Groups) -> tuple[Any, ...]:
        return tuple(self._each("expected", stats.groups))

    def log_evidence(self, stats: Groups) -> Any:
        return sum(self._each("log_evidence", stats.groups))

    # sampling

    def draw(self, params: Any, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        rows = np.empty((n, sum(len(column_indices(columns)) for _, columns in self.families)))
        for (family, columns), part in zip(self.families, params, strict=True):
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
        for (family, _), part in zip(self.families, params, strict=True):
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

    def __repr__(self) -> str:
        groups = (
            f"{family!r}: {', '.join(self._name(j) for j in column_indices(columns))}"
            for family, columns in self.families
        )
        return f"Product({'; '.join(groups)})"
