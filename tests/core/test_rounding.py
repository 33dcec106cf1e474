"""Choices between results that are equal up to rounding."""

import numpy as np
import pytest

from coterie.core.rounding import first_lowest, is_lower


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_first_of_results_that_are_equal_up_to_rounding_is_kept(size):
    values = size * np.array([3.0, 1.0 + 1e-15, 1.0, 1.0 - 1e-15, 2.0])
    assert first_lowest(values.tolist(), float) == values[1]
    assert first_lowest((-values).tolist(), float) == -values[0]


def test_a_lower_objective_wins_from_any_sign_and_infinity():
    assert is_lower(1.0, np.inf)
    assert is_lower(-np.inf, 1.0)
    assert is_lower(-1.0, 0.0)
    assert not is_lower(np.inf, np.inf)
    assert not is_lower(0.0, 0.0)


def test_objectives_are_compared_only_between_equal_first_values():
    assert is_lower((0, 2.0), (1, 1.0))
    assert not is_lower((1, 1.0), (0, 2.0))
    assert is_lower((1, 1.0), (1, 2.0))
    assert not is_lower((1, 1.0 - 1e-15), (1, 1.0))
