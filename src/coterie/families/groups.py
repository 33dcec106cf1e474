"""Groups of columns with a family each: the part of `Product` that handles columns and their values."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families.family import Family


@stored("statistics.Groups")
@dataclass(frozen=True, init=False)
class Groups(Stats):
    """Statistics of all groups."""

    groups: tuple[Any, ...]

    def __init__(self, *groups: Any):
        object.__setattr__(self, "groups", groups)

    def leaves(self) -> list[Any]:
        return list(self.groups)


class Grouped(Family):
    """Families of groups of columns; `Product` adds densities and estimates."""

    groups: Any
    _groups: list[tuple[Family, Any]]

    @property
    def families(self) -> list[tuple[Family, Any]]:
        """Families and their columns; adjacent columns are a slice, so that they are not copied."""
        from coterie.families import as_family

        if hasattr(self, "_groups"):
            return self._groups
        groups = [(as_family(family), [int(j) for j in columns]) for family, columns in self.groups]
        indices = sorted(j for _, columns in groups for j in columns)
        if indices != list(range(len(indices))) or not all(columns for _, columns in groups):
            raise ParameterError(f"groups must contain each column (0, 1, ...) exactly once; got columns {indices}")
        return [(family, _as_slice(columns)) for family, columns in groups]

    def with_prior(self, prior: Any) -> Self:
        result = copy(self)
        result._groups = [(family.with_prior(prior), columns) for family, columns in self.families]
        return result

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Self:
        result = copy(self)
        result._groups = [
            (family.in_units(rows, mean[columns], variance[columns]), columns) for family, columns in self.families
        ]
        return result

    @property
    def by_column(self) -> bool:  # type: ignore[override]
        return all(family.by_column for family, _ in self.families)

    # valid values

    def survey(self, X: np.ndarray) -> Any:
        width = sum(len(column_indices(columns)) for _, columns in self.families)
        if X.shape[1] != width:
            raise ParameterError(f"groups have {width} columns, but X has {X.shape[1]}: assign each column to a group")
        return Groups(*(family.survey(X[:, columns]) for family, columns in self.families))

    def check(self, survey: Groups, names: list[str] | None = None) -> None:
        for (family, columns), part in zip(self.families, survey.groups, strict=True):
            family.check(part, [names[j] if names else f"column {j}" for j in column_indices(columns)])

    def learned(self, survey: Groups, has_missing: bool = False) -> Self:
        result = copy(self)
        pairs = zip(self.families, survey.groups, strict=True)
        result._groups = [(family.learned(part, has_missing), columns) for (family, columns), part in pairs]
        result.has_missing = has_missing
        return result

    def with_missing(self) -> Self:
        result = copy(self)
        result._groups = [(family.with_missing(), columns) for family, columns in self.families]
        result.has_missing = True
        return result

    def alike(self, other: Family) -> bool:
        return (
            isinstance(other, Grouped)
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


def column_indices(columns: Any) -> list[int]:
    return list(range(columns.start, columns.stop)) if isinstance(columns, slice) else columns


def _as_slice(columns: list[int]) -> Any:
    first = columns[0] if columns else 0
    return slice(first, first + len(columns)) if columns == list(range(first, first + len(columns))) else columns
