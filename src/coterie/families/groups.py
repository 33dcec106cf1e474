"""Which family has which columns, and what values they take."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.core.errors import ParameterError
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.families.family import Family


@stored("statistics.Groups")
@dataclass(frozen=True, init=False)
class Groups(Stats):
    """Statistics of one group after the other."""

    groups: tuple[Any, ...]

    def __init__(self, *groups: Any):
        object.__setattr__(self, "groups", groups)

    def leaves(self) -> list[Any]:
        return list(self.groups)


class Grouped(Family):
    """Families of groups of columns, up to what they make of the values."""

    groups: Any

    @property
    def families(self) -> list[tuple[Family, Any]]:
        """Families and their columns; neighbouring columns as a slice, so that they are not copied."""
        from coterie.families import as_family

        if hasattr(self, "_groups"):
            return self._groups
        found = [(as_family(family), [int(j) for j in columns]) for family, columns in self.groups]
        every = sorted(j for _, columns in found for j in columns)
        if every != list(range(len(every))) or not all(columns for _, columns in found):
            raise ParameterError(f"groups must have every column, from 0 on, in one group; they have columns {every}")
        return [(family, _as_slice(columns)) for family, columns in found]

    def with_prior(self, prior: Any) -> Self:
        found = copy(self)
        found._groups = [(family.with_prior(prior), columns) for family, columns in self.families]
        return found

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Self:
        found = copy(self)
        found._groups = [
            (family.in_units(rows, mean[columns], variance[columns]), columns) for family, columns in self.families
        ]
        return found

    @property
    def by_column(self) -> bool:  # type: ignore[override]
        return all(family.by_column for family, _ in self.families)

    # what values they take

    def survey(self, X: np.ndarray) -> Groups:
        width = sum(len(numbers(columns)) for _, columns in self.families)
        if X.shape[1] != width:
            raise ParameterError(f"groups have {width} columns, X has {X.shape[1]}: each column needs its group")
        return Groups(*(family.survey(X[:, columns]) for family, columns in self.families))

    def check(self, survey: Groups, names: list[str] | None = None) -> None:
        for (family, columns), found in zip(self.families, survey.groups, strict=True):
            family.check(found, [names[j] if names else f"column {j}" for j in numbers(columns)])

    def learned(self, survey: Groups, holes: bool = False) -> Self:
        found = copy(self)
        pairs = zip(self.families, survey.groups, strict=True)
        found._groups = [(family.learned(part, holes), columns) for (family, columns), part in pairs]
        found.holes = holes
        return found

    def allowing_holes(self) -> Self:
        found = copy(self)
        found._groups = [(family.allowing_holes(), columns) for family, columns in self.families]
        found.holes = True
        return found

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
        return self._changed(X, "translate")

    def restore(self, X: np.ndarray) -> np.ndarray:
        return self._changed(X, "restore")

    def _changed(self, X: np.ndarray, verb: str) -> np.ndarray:
        found = np.array(X)
        for family, columns in self.families:
            if family.translates:
                found[:, columns] = getattr(family, verb)(X[:, columns])
        return found


def numbers(columns: Any) -> list[int]:
    return list(range(columns.start, columns.stop)) if isinstance(columns, slice) else columns


def _as_slice(columns: list[int]) -> Any:
    first = columns[0] if columns else 0
    return slice(first, first + len(columns)) if columns == list(range(first, first + len(columns))) else columns
