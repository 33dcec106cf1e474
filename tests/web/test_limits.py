"""A few far rows do not stretch a map; arrows point to them."""

import re

import numpy as np
import pytest

from coterie.web import ClusterMap, beyond_counts, inner_range, outward, page
from coterie.web.packing import STEPS, pack_values
from unpacking import unpack_values

rng = np.random.default_rng(0)
CLOUD = rng.normal(size=(200, 2))


def far(n=1, at=1e6):
    points = CLOUD.copy()
    points[:n, 0] = at
    return ClusterMap(("x", "y"), points, np.arange(200) % 2, ("a", "b"), rows=200)


@pytest.mark.parametrize(
    "values", [rng.normal(size=500), rng.exponential(size=500), rng.uniform(size=30), np.zeros(50)]
)
def test_ordinary_values_are_all_within_the_limits(values):
    assert inner_range(values) == (values.min(), values.max())


@pytest.mark.parametrize("n", [10, 50, 1000])
@pytest.mark.parametrize("far_value", [1e6, -1e6, 1e300])
def test_one_far_value_is_beyond_the_limits(n, far_value):
    values = np.append(np.linspace(0, 1, n - 1), far_value)
    assert inner_range(values) == (0.0, 1.0)


def test_a_far_value_that_the_sample_lacks_is_beyond_the_limits():
    sample = np.linspace(0, 1, 100)
    low, high = inner_range(sample, -1e6, 1.01)
    assert -0.5 < low < 0
    assert high == 1.01


def test_a_cluster_of_several_percent_is_never_beyond_the_limits():
    values = np.append(rng.normal(size=95), np.full(5, 1e6))
    assert inner_range(values) == (values.min(), 1e6)


def test_mostly_equal_values_keep_the_whole_range():
    assert inner_range(np.append(np.zeros(99), 5.0)) == (0.0, 5.0)


def test_rows_beyond_are_counted_for_each_pair_of_axes():
    points = np.array([[0.0, 9.0, 0.0], [9.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
    assert beyond_counts(points, np.full(3, -1.0), np.full(3, 1.0)).tolist() == [[1, 2, 1], [2, 2, 2], [1, 2, 0]]
    assert outward(points, -1, 1)[1].tolist() == [1, 1, 0]


def test_the_caption_counts_far_rows():
    assert far().description == "200 rows; 1 row beyond the border (arrow)"
    assert far(3).description == "200 rows; 3 rows beyond the border (arrows)"
    assert far(0).description == "200 rows"


def test_the_picture_shows_all_other_rows_and_arrows():
    html = str(far(2).picture())
    ticks = [float(text.replace("−", "-")) for text in re.findall(r'class="tick-text"[^>]*>([−\d.]+)<', html)]
    assert max(map(abs, ticks)) < 10
    assert len(re.findall(r'class="far"', html)) == 2  # a path for each colour


def test_numbers_of_far_clusters_are_at_the_border():
    points = CLOUD.copy()
    points[0] = 1e6
    labels = np.where(np.arange(200) == 0, 1, 0)
    drawn = ClusterMap(("x", "y"), points, labels, ("a", "b"), rows=200, centers=np.array([[0.0, 0], [1e6, 1e6]]))
    boxes = re.findall(r'class="number">.*?<rect x="([\d.]+)" y="([\d.]+)"', str(drawn.picture()))
    assert all(float(x) < 880 and float(y) < 520 for x, y in boxes)
    assert len(boxes) == 2


def test_the_first_and_last_steps_are_of_far_values_only():
    steps = unpack_values(pack_values([0.0, 1.0, -0.1, 1.1, 0.5], 0.0, 1.0), 0, STEPS)
    assert steps.tolist() == [1, STEPS - 1, 0, STEPS, round(STEPS / 2)]


def test_a_map_without_a_far_row_is_drawn_as_before():
    shown = far(0)
    assert "far" not in str(shown.picture())
    assert not np.any(shown.to_dict()["beyond"])


def test_arrows_follow_the_legend_in_a_browser(visit):
    shown = far(3)
    seen = visit(page("Far", shown.figure("m"), scripts=("report",), data={"m": shown.to_dict()}))
    seen.settle()
    assert seen.page.locator(".overlay .far").count() == 2
    assert "3 rows beyond the border (arrows)" in seen.page.locator(".told").inner_text()
    ticks = seen.page.locator(".overlay .tick-text").all_text_contents()
    assert max(abs(float(text.replace("−", "-"))) for text in ticks) < 10
    seen.page.locator(".chip").first.click()
    seen.settle()
    assert seen.page.locator(".overlay .far").count() == 1


def test_a_map_without_units_has_a_frame_in_place_of_axes(visit):
    shown = ClusterMap(("x", "y"), CLOUD, np.arange(200) % 2, ("a", "b"), rows=200, title="neighbour map")
    assert 'class="rim"' in str(shown.picture())
    assert "neighbour map; 200 rows" in str(shown.figure("m"))
    seen = visit(page("Map", shown.figure("m"), scripts=("report",), data={"m": shown.to_dict()}))
    seen.settle()
    assert seen.page.locator(".overlay .rim").count() == 1
    assert seen.page.locator(".overlay .tick-text").count() == 0
    assert seen.colours() > 3
