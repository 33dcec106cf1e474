"""Figures without JavaScript: PNG files, ticks, planes, the map and the player."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie import palette
from coterie.errors import ParameterError
from coterie.web import ClusterMap, Plane, ellipses_of, tick_texts, ticks
from coterie.web.still import png, raster

Image = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize("shades", [2, 256, 257, 5000])
def test_pillow_reads_the_same_pixels(shades):
    """With a palette up to 256 colours, and without one for more."""
    words = np.random.default_rng(0).integers(0, 2**32, shades, dtype=np.uint32)
    pixels = np.resize(words, 100 * 60).view(np.uint8).reshape(100, 60, 4)
    read = Image.open(io.BytesIO(png(pixels)))
    assert read.mode == ("P" if shades <= 256 else "RGBA")
    np.testing.assert_array_equal(np.asarray(read.convert("RGBA")), pixels)


@pytest.mark.parametrize("pixels", [np.zeros((2, 2, 3), np.uint8), np.zeros((2, 2, 4)), np.zeros((0, 2, 4), np.uint8)])
def test_pixels_are_bytes(pixels):
    with pytest.raises(ParameterError, match="uint8"):
        png(pixels)


def test_the_image_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-5, 45, (2, 300))  # some outside
    rgb = palette.as_rgb(palette.colours(3))[rng.integers(0, 3, 300)]
    turned = rng.permutation(300)
    one, other = raster(x, y, rgb, 40, 40), raster(x[turned], y[turned], rgb[turned], 40, 40)
    np.testing.assert_array_equal(one, other)


def test_a_disc_is_drawn_at_its_point():
    picture = raster([10.5], [20.5], [[1.0, 0.0, 0.0]], 40, 30, radius=2.0)
    lines, columns = np.nonzero(picture[..., 3])
    assert (lines.mean(), columns.mean()) == (20, 10)
    assert picture[20, 10, :3].tolist() == [255, 0, 0]
    assert (picture[0, 0] == 0).all()


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12), st.integers(2, 9))
def test_ticks_are_few_rising_and_within(low, width, count):
    high = low + width
    if not high > low:
        return
    found = ticks(low, high, count)
    slack = 1e-6 * (high - low) + 1e-11 * max(abs(low), abs(high))
    assert len(found) <= 10 * count + 1
    assert all(low - slack <= value <= high + slack for value in found)
    assert found == sorted(found)


@pytest.mark.parametrize(
    "values, texts",
    [
        ([-0.5, 0.0, 0.5], ["−0.5", "0.0", "0.5"]),
        ([0.0, 0.25, 0.5], ["0.00", "0.25", "0.50"]),
        ([0.0, 500.0, 1000.0], ["0", "500", "1,000"]),
        ([0.0, 5e5, 1e6], ["0", "0.5M", "1.0M"]),
        ([0.0, 1e-7], ["0", "1e−07"]),
        ([3.0], ["3"]),
        ([], []),
    ],
)
def test_tick_labels_have_equal_decimals(values, texts):
    assert tick_texts(values) == texts


def test_ticks_of_empty_and_invalid_ranges():
    assert ticks(float("nan"), 1.0) == []
    assert ticks(2.0, 2.0) == [2.0]


def test_axis_names_do_not_overlap_tick_labels():
    plane = Plane(300, 200, (0.0, 10.0, 0.0, 1.0))
    assert f'y="{plane.bottom + 38:g}" text-anchor="middle">age<' in plane.x_axis("age")
    assert f'y="{plane.bottom + 19:g}" text-anchor="middle">10<' in plane.x_axis("age")
    assert plane.fitted(["1,000,000,000"]).left > 110


@given(st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0, 3.1))
def test_ellipses_match_the_covariance(a, b, angle):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    spread = turn @ np.diag([a * a, b * b]) @ turn.T
    (_, _, long, short, found) = ellipses_of(np.zeros((1, 2)), [spread], 1.0)[0]
    back = np.array([[np.cos(found), -np.sin(found)], [np.sin(found), np.cos(found)]])
    np.testing.assert_allclose(back @ np.diag([long**2, short**2]) @ back.T, spread, atol=1e-9)
    assert long >= short


def test_a_singular_covariance_is_a_line():
    assert ellipses_of([[1.0, 2.0]], [[[1.0, 1.0], [1.0, 1.0 - 1e-12]]], 2.0)[0][3] < 1e-5


@pytest.mark.parametrize("change", [{"points": np.full((3, 2), np.nan)}, {"axes": ["one"]}, {"labels": [0]}])
def test_a_map_is_of_finite_points_on_two_axes_at_least(change):
    given = {"axes": ["a", "b"], "points": np.zeros((3, 2)), "labels": np.zeros(3, int), "names": ["0"], "rows": 3}
    with pytest.raises(ParameterError, match="points must"):
        ClusterMap(**{**given, **change})


def test_the_description_of_a_map_counts_rows(cluster_map):
    assert cluster_map.description == "showing 400 of 2,000,000 rows"
    one = ClusterMap(["a", "b"], np.zeros((1, 2)), np.zeros(1, int), ["0"], rows=1)
    assert one.description == "1 row"
    assert 'class="legend"' not in one.figure("map")  # one cluster needs no colours explained
