"""Arrays are unchanged after packing and unpacking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from coterie.errors import ParameterError
from coterie.web import box_of, pack_labels, pack_points, pack_rgb, span
from coterie.web.packing import pack_values, unpack_labels, unpack_points, unpack_rgb
from unpacking import unpack_values

VALUES = st.floats(-1e9, 1e9)


@given(arrays(np.float64, st.tuples(st.integers(1, 20), st.just(2)), elements=VALUES))
def test_points_come_back_to_half_a_step_of_their_box(points):
    box = box_of(points)
    back = unpack_points(pack_points(points, box), box)
    steps = np.array([box[1] - box[0], box[3] - box[2]]) / 65535
    assert (np.abs(back - points) <= 0.51 * steps + 1e-12 * np.abs(points)).all()


@given(arrays(np.float64, st.integers(1, 20), elements=VALUES))
def test_a_span_has_a_margin_around_all_values(values):
    low, high = span(values)
    assert low < values.min() <= values.max() < high


def test_values_outside_are_clipped():
    assert unpack_values(pack_values([-5.0, 5.0], 0.0, 1.0), 0.0, 1.0).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("k, size", [(1, 1), (254, 1), (255, 2), (60_000, 2)])
def test_labels_take_a_byte_or_two(k, size):
    labels = np.array([0, k - 1, -1, 0, 0, -1])
    text = pack_labels(labels, k)
    assert len(text) == 8 * size
    assert unpack_labels(text, k).tolist() == labels.tolist()


def test_points_are_little_endian_pairs():
    assert pack_points([[0.0, 1.0]], (0.0, 1.0, 0.0, 1.0)) == "AAD//w=="
    assert pack_values([256 / 65535], 0.0, 1.0) == "AAE="


def test_colours_are_three_bytes_each():
    assert unpack_rgb(pack_rgb([[0.0, 0.2, 1.0]])).tolist() == [[0.0, 0.2, 1.0]]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: pack_points([[np.nan, 0]], (0, 1, 0, 1)),
        lambda: pack_values([1.0], 1.0, 1.0),
        lambda: pack_labels([3], 3),
        lambda: pack_labels([-2], 3),
        lambda: pack_labels([0], 70_000),
        lambda: pack_rgb([[np.inf, 0, 0]]),
        lambda: box_of(np.empty((0, 2))),
    ],
)
def test_invalid_arrays_are_errors(wrong):
    with pytest.raises(ParameterError):
        wrong()
