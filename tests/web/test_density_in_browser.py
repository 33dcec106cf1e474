"""The map of very many rows, in a browser."""

import io
from base64 import b64decode

import numpy as np
import pytest

from coterie.web import ClusterMap, Densities, clustermap, page

Image = pytest.importorskip("PIL.Image")

PAPER = 255  # the white that pictures lie on
CELLS = 320
BANDS = ((40, 120, 1), (120, 200, 30), (200, 280, 5))  # of the three clusters: from cell, to cell, rows in each cell
MIXED = (200, 280, 4)  # of the first cluster, again
LONE = (300, 290)  # the cell of a single row, of the first cluster


def banded(shown=400):
    """Three clusters as upright bands of equally many rows in each cell, up to three quarters of the height.

    In the last band there are rows of the first cluster, too.
    """
    low, high = 0.04 * CELLS / 1.08, CELLS - 0.04 * CELLS / 1.08  # so that the box is that of the cells
    found = Densities([low, low, 0.0], [high, high, 1.0], 3)
    across, up = np.meshgrid(np.arange(CELLS), np.arange(CELLS // 2))
    points, codes = [[LONE[0] + 0.5, LONE[1] + 0.5, 0.5]], [0]
    for code, (start, end, rows) in [*enumerate(BANDS), (0, MIXED)]:
        inside = (across >= start) & (across < end) & (up < 120)
        cells = np.stack([across[inside] + 0.5, 2 * up[inside] + 0.5, across[inside] / CELLS], axis=1)
        points.append(np.repeat(cells, rows, axis=0))
        codes.append(np.full(len(points[-1]), code))
    X, labels = np.vstack(points), np.concatenate([np.atleast_1d(part) for part in codes])
    found.add(X, labels)
    some = np.random.default_rng(0).permutation(len(X))[:shown]
    centers = np.array([X[labels == j].mean(axis=0) for j in range(3)])
    return ClusterMap(["x", "y", "z"], X[some], labels[some], ["a", "b", "c"], len(X), centers, densities=found)


@pytest.fixture(scope="module")
def dense():
    return banded()


def page_of(shown, scripts=("report",)):
    return page("Map", shown.figure("map"), scripts=scripts, data={"map": shown.to_dict()} if scripts else {})


def canvas(seen):
    """The pixels of the canvas."""
    seen.settle()
    file = b64decode(seen.page.locator("canvas").evaluate("canvas => canvas.toDataURL()").partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGBA")).astype(int)


def at(pixels, x, y):
    """The pixel of a cell of the whole, counted from the lower left."""
    height, width = pixels.shape[:2]
    return pixels[int((1 - (y + 0.5) / CELLS) * height), int((x + 0.5) / CELLS * width)]


def middles():
    return [((start + end) // 2, 60) for start, end, _ in BANDS]


def test_clusters_have_the_colours_and_opacities_of_python(visit, dense):
    pixels = canvas(visit(page_of(dense)))
    meant = dense.densities.of(0, 1).merged(2, 1).pixels(dense.colors).astype(int)
    for x, y in middles():
        assert np.abs(at(pixels, x, y) - at(meant, x, y)).max() <= 2
    assert at(pixels, 20, 60)[3] == at(pixels, 160, 300)[3] == 0  # beside and above the bands
    edges = [at(pixels, x, 60)[3] > 0 for x in (37, 43, 277, 283)]
    assert edges == [False, True, True, False]


def test_a_single_row_is_seen_at_any_width(visit, dense):
    for width in (1120, 400):
        pixels = canvas(visit(page_of(dense), width=width))
        height, wide = pixels.shape[:2]
        alone = pixels[: height // 8, wide * 7 // 8 :, 3]
        assert alone.max() > 80, width
        assert (alone > 40).sum() >= 4, width


def test_the_picture_without_scripts_looks_like_the_canvas(visit, dense):
    """The blended colours of both, at the center of each band."""
    found = []
    for scripts in (True, False):
        seen = visit(page_of(dense, ("report",) if scripts else ()), scripts=scripts)
        place = seen.page.locator("canvas" if scripts else "svg.still image")
        file = place.screenshot()
        pixels = np.asarray(Image.open(io.BytesIO(file)).convert("RGB")).astype(int)
        found.append([at(pixels, x, y + 30) for x, y in middles()])
    assert np.abs(np.array(found[0]) - found[1]).max() <= 3
    pixels = dense.densities.of(0, 1).merged(2, 1).pixels(dense.colors)[100, [80, 160, 240]]
    alpha = pixels[:, 3:] / 255
    assert np.abs(np.array(found[0]) - (pixels[:, :3] * alpha + PAPER * (1 - alpha))).max() <= 3


def test_a_hidden_cluster_is_gone_from_the_density(visit, dense):
    seen = visit(page_of(dense))
    before = seen.pixels()
    seen.page.locator(".chip").nth(1).click()
    pixels = canvas(seen)
    assert [at(pixels, x, y)[3] > 0 for x, y in middles()] == [True, False, True]
    assert seen.page.locator(".overlay .number").count() == 2
    seen.page.locator(".chip").nth(1).click()
    assert seen.pixels() == before
    for chip in seen.page.locator(".chip").all():
        chip.click()
    seen.settle()
    assert seen.colours() == 1


def test_opacity_is_relative_to_the_visible_clusters(visit, dense):
    """A cluster with one row per cell gets full opacity when larger ones are hidden."""
    seen = visit(page_of(dense))
    (x, y), *_ = middles()
    before = at(canvas(seen), x, y)[3]
    for j in (1, 2):
        seen.page.locator(".chip").nth(j).click()
    assert at(canvas(seen), x, y)[3] == before  # of one row: as faint as a cell can be
    seen.page.locator(".chip").nth(2).click()
    x, y = middles()[2]
    assert at(canvas(seen), x, y)[3] == 255  # its rows are now the most there are


def test_points_are_visible_after_zooming_in(visit, dense):
    seen = visit(page_of(dense))
    told = seen.page.locator(".told")
    before = seen.pixels()
    assert told.inner_text() == f"density of all {dense.rows:,} rows, stronger where there are more"
    seen.page.locator(".stage").focus()
    for _ in range(8):
        seen.page.keyboard.press("+")
    seen.settle()
    assert told.inner_text() == f"density of all {dense.rows:,} rows, 400 of them as points"
    alpha = canvas(seen)[..., 3]
    assert np.median(alpha) == pytest.approx(0.4 * 255, abs=1)  # cells step back
    assert 100 < (alpha > 180).sum() < 0.1 * alpha.size  # points do not
    seen.page.keyboard.press("ArrowLeft")
    moved = seen.pixels()
    seen.page.keyboard.press("ArrowRight")
    assert seen.pixels() != moved
    seen.page.keyboard.press("0")
    assert seen.pixels() == before
    assert "as points" not in told.inner_text()


def test_cells_keep_their_position_when_zoomed(visit, dense):
    """The edge of a band is at the position that the axis shows."""
    seen = visit(page_of(dense))
    box = seen.page.locator("canvas").bounding_box()
    edge, wheel, turns = BANDS[0][0] / CELLS * box["width"], 400, 4
    held = round(edge)
    seen.page.mouse.move(box["x"] + held, box["y"] + 0.8 * box["height"])
    for _ in range(turns):
        seen.page.mouse.wheel(0, -wheel)
        seen.settle()
    line = canvas(seen)[-int(box["height"] / 8), :, 3]
    assert np.argmax(line > 0) == pytest.approx(held + (edge - held) * 1.0015 ** (wheel * turns), abs=3)


def test_exchanged_axes_transpose_the_density(visit, dense):
    """After exchanging the axes, vertical bands are horizontal."""
    seen = visit(page_of(dense))
    upright = canvas(seen)
    seen.page.get_by_label("across").select_option("1")
    seen.page.get_by_label("up").select_option("0")
    lying = canvas(seen)
    for x, y in [*middles(), (20, 60), (160, 300), (60, 160)]:
        before, now = at(upright, x, y), at(lying, y, x)
        assert (now[3] > 0) == (before[3] > 0), (x, y)
        assert np.abs(now[:3] - before[:3]).max() <= 3, (x, y)  # not opacity: cells that would be too low are merged
    assert seen.page.locator(".told").inner_text().startswith("density of all")


def test_axes_without_a_density_say_that_they_show_a_sample(visit, monkeypatch):
    monkeypatch.setattr(clustermap, "OTHERS", ())
    shown = banded()
    seen = visit(page_of(shown))
    before = seen.pixels()
    for across, up in ((0, 2), (0, 0)):  # also an axis against itself
        seen.page.get_by_label("across").select_option(str(across))
        seen.page.get_by_label("up").select_option(str(up))
        seen.settle()
        assert seen.page.locator(".told").inner_text() == f"showing 400 of {shown.rows:,} rows"
        assert seen.colours() > 3
    seen.page.get_by_label("up").select_option("1")
    assert seen.pixels() == before


def test_in_the_dark_colours_are_brighter_in_both_pictures(visit, dense):
    brightness = "place => getComputedStyle(place).filter"
    for dark, meant in ((False, "none"), (True, "brightness(1.3)")):
        seen = visit(page_of(dense), dark=dark)
        for place in ("canvas", "svg.still image", ".chip .swatch >> nth=0"):
            assert seen.page.locator(place).evaluate(brightness) == meant
