"""Thresholds separate the values on both sides, and have few digits."""

import numpy as np
import pytest

from coterie.explanation.rule_search import shortest, thresholds
from coterie.explanation.rules import number_text


@pytest.mark.parametrize(
    "low, high, expected",
    [
        (3197.0, 3213.0, 3200.0),
        (4.0, 6.0, 5.0),
        (-1.5, 2.0, 0.0),
        (0.0, 0.3, 0.0),
        (0.1234, 0.1299, 0.125),
        (-0.1299, -0.1234, -0.125),
        (7.0, 8.0, 7.0),
        (1e-9, 2e-9, 1e-9),
        (99.5, 101.0, 100.0),
    ],
)
def test_the_number_with_the_fewest_digits_is_chosen(low, high, expected):
    assert shortest(low, high) == pytest.approx(expected, rel=0.05)
    assert low <= shortest(low, high) < high
    assert len(number_text(shortest(low, high))) <= len(number_text(expected))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_threshold_separates_neighbouring_numbers_of_any_size(dtype):
    rng = np.random.default_rng(0)
    for exponent in (-30, -3, 0, 3, 30):
        low = dtype(rng.normal() * 10.0**exponent)
        for high in (np.nextafter(low, dtype(np.inf)), dtype(low + abs(low) * dtype(0.1))):
            value = shortest(float(low), float(high), dtype)
            assert low <= dtype(value) < high
            assert low <= value < high


def test_extreme_numbers_have_thresholds():
    for low, high in ((1e308, 1.5e308), (5e-324, 1e-323), (-1.5e308, -1e308)):
        assert low <= shortest(low, high) < high


def test_a_text_converts_back_to_the_number():
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=50) * 10.0 ** rng.integers(-12, 12, 50)
    for value in [0.0, 3200.0, -0.25, 1e-7, 1e22, 123456.789, *drawn]:
        assert float(number_text(float(value)).replace(",", "")) == value


def test_every_cluster_has_thresholds_at_its_ends():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=20_000), rng.normal(size=30) * 0.001 + 0.5])
    codes = np.repeat([0, 1], [20_000, 30])
    cuts = thresholds(x, codes, 2, np.float64)
    inside = x[codes == 1]
    assert cuts[cuts <= inside.min()].max() > inside.min() - 0.01
    assert cuts[cuts >= inside.max()].min() < inside.max() + 0.01
    assert len(cuts) < 256


def test_few_whole_numbers_are_their_own_thresholds():
    x = np.array([4.0, 6.0, 8.0, 4.0, np.nan])
    assert thresholds(x, np.zeros(5, int), 1, np.float64).tolist() == [4.0, 6.0]
