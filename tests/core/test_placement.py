"""Rows are balanced over the workers of a cluster, in runs of consecutive parts."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest

from coterie.core.placement import choose_workers


def rows_of(sizes, workers):
    total = Counter()
    for n, name in zip(sizes, workers, strict=True):
        total[name] += n
    return total


@pytest.mark.parametrize("n_parts", [2, 10, 16, 500, 5000])
@pytest.mark.parametrize("n_workers", [1, 2, 4, 7])
def test_each_worker_gets_one_run_of_nearly_as_many_rows(n_parts, n_workers):
    threads = {f"w{i}": 2 for i in range(n_workers)}
    sizes = [1000 + 37 * (i % 5) for i in range(n_parts)]
    workers = choose_workers(sizes, threads, [None] * n_parts)
    assert len(list(groupby(workers))) == len(set(workers)) == min(n_parts, n_workers)
    rows = rows_of(sizes, workers)
    even = sum(sizes) / n_workers
    assert max(rows.values()) <= even + max(1200, even / 8)


def test_a_worker_with_more_threads_gets_more_rows():
    rows = rows_of([10] * 100, choose_workers([10] * 100, {"small": 1, "large": 3}, [None] * 100))
    assert rows == {"small": 250, "large": 750}


def test_many_parts_are_divided_at_nodes_of_the_tree():
    workers = choose_workers([1] * 5000, dict.fromkeys("abcd", 1), [None] * 5000)
    starts = [i for i in range(1, 5000) if workers[i] != workers[i - 1]]
    assert all(start % 64 == 0 for start in starts)


def test_balanced_rows_stay_where_they_are():
    current = ["b"] * 5 + ["a"] * 5
    assert choose_workers([10] * 10, {"a": 1, "b": 1}, current) == current


@pytest.mark.parametrize(
    "current",
    [["a"] * 32, ["a", "b"] * 16, [None] + ["a"] * 31, ["gone"] * 16 + ["a"] * 16],
    ids=["all on one worker", "too many runs", "not computed yet", "of a worker that has ended"],
)
def test_other_rows_move(current):
    assert choose_workers([10] * 32, {"a": 1, "b": 1}, current) == ["a"] * 16 + ["b"] * 16
