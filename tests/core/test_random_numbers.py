"""Random numbers of rows: any section of rows has the numbers that it has among all rows."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.core import random_numbers
from coterie.core.random_numbers import by_row, uniform

DRAWS = {
    "uniform": lambda first, size: uniform(7, first, size),
    "exponential": lambda first, size: by_row(np.random.Generator.standard_exponential, 7, first, size),
    "labels": lambda first, size: by_row(lambda rng, n: rng.integers(5, size=n), 7, first, size),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(random_numbers, "BLOCK_ROWS", 64)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("first, size", [(0, 1), (0, 64), (63, 2), (64, 64), (100, 0), (100, 150), (299, 1)])
def test_a_section_has_the_numbers_of_the_whole_sequence(draw, first, size):
    np.testing.assert_array_equal(draw(first, size), draw(0, 300)[first : first + size])


def test_numbers_of_different_rows_and_seeds_differ():
    numbers = np.concatenate([uniform(seed, 0, 1000) for seed in range(3)])
    assert len(np.unique(numbers)) == 3000
    assert 0.45 < numbers.mean() < 0.55
