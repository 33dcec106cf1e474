from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

from coterie.core.stats import Node, Stats, first_item, tree_nodes, tree_sum


@dataclass(frozen=True)
class Inner(Stats):
    total: Any


@dataclass(frozen=True)
class Outer(Stats):
    count: int
    inner: Inner


def test_statistics_add_field_by_field_and_inside_fields():
    both = Outer(1, Inner(np.array([1.0, 2.0]))) + Outer(2, Inner(np.array([10.0, 20.0])))
    assert both.count == 3
    np.testing.assert_array_equal(both.inner.total, [11, 22])


def test_scaling_reaches_inside_fields():
    half = Outer(4, Inner(np.array([2.0]))).scaled(0.5)
    assert half.count == 2
    assert half.inner.total == 1


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 64, 65, 1000])
def test_tree_sum_adds_every_item_once_in_order(n):
    assert tree_sum([i] for i in range(n)) == list(range(n))


def test_tree_sum_keeps_few_items_alive():
    alive = peak = 0

    class Item:
        def __init__(self):
            nonlocal alive, peak
            alive += 1
            peak = max(peak, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

        def __add__(self, other):
            return Item()

    tree_sum(Item() for _ in range(4096))
    assert peak < 60


def test_tree_sum_rounds_by_the_number_of_items_alone():
    values = np.arange(1000) * 0.1
    assert tree_sum(values) == tree_sum(iter(values))
    assert tree_sum(values) != sum(values)  # it is a tree: a plain sum rounds differently


@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 64, 65, 200, 600])
@pytest.mark.parametrize("kind", ["runs", "scattered", "alternating"])
def test_sums_of_workers_have_the_bits_of_the_whole_sum_whichever_items_they_hold(n, kind):
    rng = np.random.default_rng(n)
    values = rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, size=n)
    owner = {
        "runs": np.sort(rng.integers(3, size=n)),
        "scattered": rng.integers(3, size=n),
        "alternating": np.arange(n) % 2,
    }[kind]
    nodes = []
    for worker in rng.permutation(3):
        nodes += tree_nodes(Node(0, int(i), values[i]) for i in np.flatnonzero(owner == worker))
    total = reduce(add, [node.value for node in tree_nodes(sorted(nodes, key=first_item))])
    assert total == tree_sum(values)


@pytest.mark.parametrize("first", [0, 1, 5, 64, 100])
def test_a_run_of_items_is_few_nodes(first):
    nodes = tree_nodes(Node(0, i, 1) for i in range(first, first + 5000))
    assert sum(node.value for node in nodes) == 5000
    assert len(nodes) <= 2 * 7 * 5  # at most 7 at each end, on each of 5 levels


def test_nodes_with_a_gap_are_not_taken_for_a_complete_group():
    """Seven complete nodes of the second level, and one item of the eighth: eight nodes, but not all items."""
    items = [*range(24), 24, *range(32, 64)]
    nodes = tree_nodes(Node(0, i, 1) for i in items)
    assert all(node.value == 8**node.level for node in nodes)
