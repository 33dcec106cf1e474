"""Sufficient statistics: what one chunk of rows has to say about the parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, Self, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Stats:
    """Base of all statistics; ``a + b`` describes the rows of ``a`` and of ``b`` together.

    A field is a float64 array, a number, or other Stats. But for rounding, `+` must not depend on the order of the
    rows. Statistics that are not sums (the farthest row, say) define `+` themselves.
    """

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(operator.add, self.leaves(), other.leaves()))

    def scaled(self, factor: float) -> Self:
        """The same rows, each weighing `factor` times as much."""
        return type(self)(*(x.scaled(factor) if isinstance(x, Stats) else x * factor for x in self.leaves()))

    def leaves(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]


def tree_sum(items: Iterable[T], add: Callable[[T, T], T] = operator.add, fan_in: int = 8) -> T:
    """Sum `items` in a tree whose shape depends only on how many there are.

    Every engine sums through this function, so all of them round alike; only O(fan_in log n) items are alive at once.
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
