from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from coterie.core.stats import Stats, tree_sum


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
