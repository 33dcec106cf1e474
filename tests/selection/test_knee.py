"""Knees of curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.errors import InputError, ParameterError
from coterie.selection import kneedle, second_derivative
from reference.shared_data import published

SHAPES = ["concave_increasing", "concave_decreasing", "convex_increasing", "convex_decreasing"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("told", [True, False])
def test_the_four_shapes_of_kneed(shape, told):
    printed = published("kneed.simple")["value"][shape]
    curve, direction = shape.split("_")
    found = kneedle(range(10), printed["y"], **({"curve": curve, "direction": direction} if told else {}))
    assert found.x == printed["knee"]
    assert (found.curve, found.direction) == (curve, direction)


def test_the_figure_of_the_paper():
    x = np.linspace(0, 1, 10)
    assert kneedle(x, -1 / (x + 0.1) + 5).x == pytest.approx(published("kneed.figure2")["value"]["knee"], rel=0.05)


def test_sensitivity_decides_between_two_peaks():
    printed = published("kneed.flat_maxima")["value"]
    assert kneedle(range(18), printed["y"], sensitivity=0).x == printed["S0"]
    assert kneedle(range(18), printed["y"], sensitivity=1).x == printed["S1"]


def test_the_last_knee_online():
    y = [0, 50, 58, 60, 61, 90, 97, 99, 100, 100.5]
    first, last = (kneedle(range(10), y, curve="concave", sensitivity=0.5, online=online) for online in (False, True))
    assert first.knees == last.knees
    assert len(first.knees) == 2
    assert (first.x, last.x) == first.knees


@pytest.mark.parametrize("y", [[1, 2, 3, 4, 5], [5, 5, 5, 5, 5], [9, 7, 5, 3, 1]])
def test_a_straight_line_has_no_knee(y):
    assert kneedle(range(5), y).x is None
    assert second_derivative(range(5), y) is None


@pytest.mark.parametrize("corner", [2, 3, 7])
def test_a_corner_is_found(corner):
    """Two straight lines that meet: the point farthest from the line between the ends, and the only bend."""
    x = np.arange(1, 11)
    y = np.where(x <= corner, 100 - 10 * x, 100 - 10 * corner - (x - corner))
    assert kneedle(x, y).x == corner
    assert second_derivative(x, y) == corner


@pytest.mark.parametrize("shape", SHAPES)
def test_mirror_images_have_mirror_knees(shape):
    y = np.array(published("kneed.simple")["value"][shape]["y"])
    knee = kneedle(range(10), y).x
    assert kneedle(range(10), -y).x == knee
    assert kneedle(range(10), y[::-1]).x == 9 - knee


@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(1, 6))
def test_units_and_origin_do_not_matter(scale, origin, stretch, corner):
    x = np.arange(10.0)
    y = np.where(x <= corner, -10 * x, -10 * corner - (x - corner))
    assert kneedle(x * stretch, y * scale + origin).x == pytest.approx(corner * stretch)


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=20))
def test_any_curve_has_a_knee_of_its_own_or_none(y):
    found = kneedle(range(len(y)), y)
    assert found.x is None or found.x in range(1, len(y) - 1)
    assert np.isfinite(found.difference).all()
    bend = second_derivative(range(len(y)), y)
    assert bend is None or bend in range(1, len(y) - 1)


@pytest.mark.parametrize(
    "x, y, options, error, message",
    [
        ([1, 2], [1, 2], {}, InputError, "at least 3 numbers each"),
        ([1, 2, 3], [1, 2], {}, InputError, r"shapes \(3,\), \(2,\)"),
        ([1, 3, 2], [1, 2, 3], {}, InputError, r"x\[2\] = 2 follows 3, but x must ascend"),
        ([1, 2, 3], [1, np.nan, 3], {}, InputError, "finite"),
        ([1, 2, 3], ["a", "b", "c"], {}, InputError, "not numbers"),
        ([1, 2, 3], [1, 2, 3], {"curve": "bent"}, ParameterError, "curve must be"),
        ([1, 2, 3], [1, 2, 3], {"direction": "up"}, ParameterError, "direction must be"),
        ([1, 2, 3], [1, 2, 3], {"sensitivity": -1}, ParameterError, "sensitivity must be"),
    ],
)
def test_invalid_curves_raise_an_error(x, y, options, error, message):
    with pytest.raises(error, match=message):
        kneedle(x, y, **options)


def test_the_text_is_one_sentence():
    assert (
        repr(kneedle(range(1, 9), [1000, 400, 120, 100, 85, 72, 61, 52])) == "knee at 3 of the decreasing convex curve"
    )
    assert str(kneedle([1, 2, 3], [1, 2, 3])).startswith("no knee in the increasing")
