"""The map, in a browser."""

import io
from base64 import b64decode

import numpy as np
import pytest

from coterie.web import ClusterMap, page, span
from coterie.web.still import dot_radius, point_colours, raster

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def seen(visit, cluster_map):
    html = page("Map", cluster_map.figure("map"), scripts=("report",), data={"map": cluster_map.to_dict()})
    return visit(html)


def axes(seen):
    seen.settle()
    return seen.page.locator(".overlay .axis-text").all_text_contents()


def test_points_axes_ellipses_and_numbers_are_drawn(seen, cluster_map):
    assert seen.colours() > 3
    assert axes(seen) == list(cluster_map.axes[:2])
    assert seen.page.locator(".overlay .ellipse").count() == 3
    assert seen.page.locator(".overlay .number").count() == 3
    assert seen.page.evaluate("window.broken") is None
    assert "showing 400 of 2,000,000 rows" in seen.page.locator(".told").inner_text()
    assert not seen.page.locator("svg.still").is_visible()


def test_keys_move_and_magnify_and_zero_restores(seen):
    seen.page.locator(".stage").focus()
    before = seen.pixels()
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "+"):
        seen.page.keyboard.press(key)
        assert seen.pixels() != before, key
        seen.page.keyboard.press("0")
        assert seen.pixels() == before, key


def test_wheel_drag_and_double_click(seen):
    stage = seen.page.locator(".stage")
    box, before = stage.bounding_box(), seen.pixels()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    seen.page.mouse.move(x, y)
    seen.page.mouse.wheel(0, -300)
    closer = seen.pixels()
    seen.page.mouse.down()
    seen.page.mouse.move(x + 60, y + 30)
    seen.page.mouse.up()
    assert len({before, closer, seen.pixels()}) == 3
    stage.dblclick()
    assert seen.pixels() == before


def test_magnifying_keeps_what_is_under_the_pointer(seen):
    middles = """() => [...document.querySelectorAll(".overlay .number rect")].map(rect => {
        const { x, y, width, height } = rect.getBoundingClientRect();
        return [x + width / 2, y + height / 2];
    })"""
    seen.settle()
    before = seen.page.evaluate(middles)
    seen.page.mouse.move(*before[1])
    seen.page.mouse.wheel(0, -200)
    seen.settle()
    after = seen.page.evaluate(middles)
    assert before[1] == pytest.approx(min(after, key=lambda at: abs(at[0] - before[1][0])), abs=1)
    assert after != before


def test_the_wheel_scrolls_the_page_if_the_map_is_not_zoomed(seen):
    stage = seen.page.locator(".stage")
    seen.page.evaluate("document.body.style.minHeight = '4000px'")
    stage.hover()
    before = seen.pixels()
    seen.page.mouse.wheel(0, 200)
    seen.until("window.scrollY > 0")
    assert seen.pixels() == before


def test_a_cluster_is_hidden_and_shown_by_its_name(seen, cluster_map):
    chip, before = seen.page.locator(".chip").first, seen.pixels()
    assert chip.inner_text() == cluster_map.names[0]
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert seen.pixels() != before
    assert seen.page.locator(".overlay .number").count() == seen.page.locator(".overlay .ellipse").count() == 2
    seen.page.get_by_role("button", name="Show all clusters").click()
    assert seen.pixels() == before


def test_with_all_clusters_hidden_the_canvas_is_blank(seen):
    for chip in seen.page.locator(".chip").all():
        chip.click()
    seen.settle()
    assert seen.colours() == 1


def test_other_axes_show_other_points_and_names(seen, cluster_map):
    before = seen.pixels()
    seen.page.get_by_label("across").select_option("2")
    assert axes(seen) == ["income", cluster_map.axes[1]]
    assert seen.pixels() != before
    seen.page.get_by_label("across").select_option("0")
    assert seen.pixels() == before


def test_points_of_the_script_lie_and_look_like_those_of_python(seen, cluster_map):
    """Discs drawn by the script and by Python are nearly the same pixels."""
    seen.settle()
    file = b64decode(seen.page.locator("canvas").evaluate("canvas => canvas.toDataURL()").partition(",")[2])
    drawn = np.asarray(Image.open(io.BytesIO(file)).convert("RGBA")).astype(int)
    height, width = drawn.shape[:2]
    x, y = cluster_map.points[:, :2].T
    (x0, x1), (y0, y1) = span(x), span(y)
    across, down = (x - x0) / (x1 - x0) * width, (y1 - y) / (y1 - y0) * height
    rgb = point_colours(cluster_map.labels, cluster_map.colors)
    meant = raster(across, down, rgb, width, height, dot_radius(len(x), width * height)).astype(int)
    shown = np.where(drawn[..., 3:] > 0, drawn, 0)
    differs = np.abs(shown - meant).max(axis=2) > 24
    assert differs.sum() < 0.02 * (meant[..., 3] > 0).sum()


def test_ellipses_of_the_script_are_those_of_the_picture(seen):
    """Three points of each ellipse agree between script and Python, as shares of the plane."""
    outlines = """kind => [...document.querySelectorAll(`${kind} .ellipse`)].map(path => {
        const axis = [...path.closest(kind).querySelectorAll(".axis")].map(line => line.getBBox());
        const [wide, high] = [axis[0].width, axis[1].height];
        return [0, 0.2, 0.4].flatMap(share => {
            const { x, y } = path.getPointAtLength(share * path.getTotalLength());
            return [(x - axis[0].x) / wide, (y - axis[1].y) / high];
        });
    })"""
    seen.settle()
    live = seen.page.evaluate(outlines, ".overlay")
    seen.page.emulate_media(media="print")
    drawn = seen.page.evaluate(outlines, "svg.still")
    assert len(live) == len(drawn) == 3
    for one, other in zip(live, drawn, strict=True):
        assert one == pytest.approx(other, abs=0.01)


def test_a_small_screen_has_no_sideways_scrolling(visit, cluster_map):
    html = page("Map", cluster_map.figure("map"), scripts=("report",), data={"map": cluster_map.to_dict()})
    seen = visit(html, width=400, dark=True)
    seen.settle()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert seen.colours() > 3


def test_hundreds_of_clusters_are_found_by_name(visit):
    """Above 254 a label takes two bytes."""
    k = 300
    points = np.stack([np.arange(k) % 20, np.arange(k) // 20], axis=1).astype(float)
    shown = ClusterMap(["x", "y"], points, np.arange(k), [f"c{j}" for j in range(k)], rows=k, centers=points)
    seen = visit(page("Many", shown.figure("m"), scripts=("report",), data={"m": shown.to_dict()}))
    before = seen.pixels()
    seen.page.get_by_label("Find a cluster").fill("c299")
    chip = seen.page.locator(".chip:visible")
    assert chip.all_inner_texts() == ["c299"]
    chip.click()
    assert seen.pixels() != before
    assert seen.page.locator(".overlay .number").count() == 60


def test_one_cluster_has_no_legend(visit):
    one = ClusterMap(["x", "y"], np.eye(2), np.zeros(2, int), ["0"], rows=2)
    seen = visit(page("One", one.figure("m"), scripts=("report",), data={"m": one.to_dict()}))
    seen.settle()
    assert seen.colours() > 1
    assert seen.page.locator(".chip").count() == seen.page.locator("select").count() == 0
