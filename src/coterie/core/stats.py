"""Sufficient statistics of rows, and their sums."""

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

T = TypeVar("T")
FAN_IN = 8  # nodes that are added up to one node of the next level


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
        return [getattr(self, name) for name in self.__dataclass_fields__]  # `fields` would take longer than a sum

    def in_main_memory(self) -> Self:
        """The same statistics, without arrays on a device."""
        return type(self)(*map(_in_main_memory, self.leaves()))


def _in_main_memory(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_in_main_memory, value))
    if isinstance(value, Stats):
        return value.in_main_memory()
    return np.asarray(value) if hasattr(value, "tensor") else value


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


class Node(NamedTuple):
    """The sum of ``fan_in ** level`` consecutive items, which begin with number ``position * fan_in ** level``."""

    level: int
    position: int
    value: Any


def tree_sum(items: Iterable[T], add: Callable[[T, T], T] = operator.add, fan_in: int = FAN_IN) -> T:
    """Sum `items` in a tree whose shape depends only on their number.

    All engines use this function, so their results have the same rounding. Only O(fan_in log n) items are in memory.
    """
    nodes = tree_nodes((Node(0, i, item) for i, item in enumerate(items)), add, fan_in)
    total: T = reduce(add, [node.value for node in nodes])
    return total


def tree_nodes(
    nodes: Iterable[Node], add: Callable[[Any, Any], Any] = operator.add, fan_in: int = FAN_IN
) -> list[Node]:
    """Add up nodes, which are in the order of their items, to as few nodes of the same tree as possible.

    A worker does this for its items, whichever these are. The nodes of all workers together give `tree_sum`.
    """
    result: list[Node] = []
    for node in nodes:
        result.append(node)
        while _is_complete(result[-fan_in:], fan_in):
            group = result[-fan_in:]
            value = reduce(add, [member.value for member in group])
            result[-fan_in:] = [Node(group[0].level + 1, group[0].position // fan_in, value)]
    return result


def _is_complete(nodes: list[Node], fan_in: int) -> bool:
    """Whether the nodes are all children of one node."""
    first, last = nodes[0], nodes[-1]
    return (
        last.position % fan_in == fan_in - 1
        and last.position - first.position == fan_in - 1
        and len(nodes) == fan_in
        and all(node.level == last.level for node in nodes)
    )


def first_item(node: Node, fan_in: int = FAN_IN) -> int:
    """Number of the first item of a node."""
    return int(node.position * fan_in**node.level)
