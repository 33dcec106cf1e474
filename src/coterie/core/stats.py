"""Sufficient statistics of rows, and their sums."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, Self, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Stats:
    """Base class of all statistics; ``a + b`` are the statistics of the rows of ``a`` and of ``b`` together.

    A field is a float64 array, a number, or other Stats. Except for rounding, `+` must not depend on the order of the
    rows. Statistics that are not sums, such as the farthest row, override `+`.
    """

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(operator.add, self.leaves(), other.leaves()))

    def scaled(self, factor: float) -> Self:
        """The statistics of the same rows with their weights multiplied by `factor`."""
        return type(self)(*(x.scaled(factor) if isinstance(x, Stats) else x * factor for x in self.leaves()))

    def leaves(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True)
class WeightedSums(Stats):
    """Weights and weighted sums of rows, of all rows or by cluster."""

    weight: Any  # a number, (k,) or (k, d)
    sum_x: Any  # (d,) or (k, d)


@dataclass(frozen=True)
class FirstRow(Stats):
    """The first of the rows that a check has selected."""

    rows: Any  # number of rows
    index: Any  # of the first selected row; infinite if there is none

    @classmethod
    def of(cls, mask: Any) -> Self:
        """The first row selected by a mask (n,)."""
        return cls(len(mask), int(mask.argmax()) if mask.any() else math.inf)

    def __add__(self, other: Self) -> Self:
        return type(self)(self.rows + other.rows, min(self.index, self.rows + other.index))


def tree_sum(items: Iterable[T], add: Callable[[T, T], T] = operator.add, fan_in: int = 8) -> T:
    """Sum `items` in a tree whose shape depends only on their number.

    All engines use this function, so their results have the same rounding. Only O(fan_in log n) items are in memory.
    """
    levels: list[list[T]] = []
    for item in items:
        for level in range(len(levels) + 1):
            if level == len(levels):
                levels.append([])
            levels[level].append(item)
            if len(levels[level]) < fan_in:
                break
            item, levels[level] = reduce(add, levels[level]), []
    return reduce(add, [item for level in reversed(levels) for item in level])
