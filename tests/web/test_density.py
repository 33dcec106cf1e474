"""Densities: counts of rows, packed and as colours."""

import io
import re
from base64 import b64decode
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie import palette
from coterie.errors import ParameterError
from coterie.web import ClusterMap, Densities, Density, clustermap, density
from coterie.web.packing import pack_counts
from unpacking import unpack_counts
from web.conftest import blobs

Image = pytest.importorskip("PIL.Image")


def entries(grid):
    """Counts by (cluster, line, column) of all cells with rows."""
    up, across = np.divmod(grid.place, grid.shape[1])
    keys = zip(grid.cluster.tolist(), up.tolist(), across.tolist(), strict=True)
    return dict(zip(keys, grid.count.tolist(), strict=True))


def counted_one_by_one(points, codes, low, high, k, cells, i, j):
    """The counts of `Densities`, computed row by row."""
    place = lambda value, axis: min(  # noqa: E731
        cells - 1, max(0, int((value - low[axis]) / (high[axis] - low[axis]) * cells))
    )
    rows = zip(points, codes, strict=True)
    return Counter((k if code < 0 else int(code), place(row[j], j), place(row[i], i)) for row, code in rows)


def rows_of(n=900, k=4, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.integers(-1, k, n)


@pytest.mark.parametrize("waiting", [1, 100, 1 << 20])
@pytest.mark.parametrize("block", [1, 7, 900])
@pytest.mark.parametrize(
    "cells", [4, 64]
)  # so many that keys are counted as they come, and so few that they are sorted
def test_counts_do_not_depend_on_blocks_and_order(cells, block, waiting, monkeypatch):
    monkeypatch.setattr(density, "BUFFER", waiting)
    (points, codes), k = rows_of(), 4
    found = Densities(points.min(axis=0), points.max(axis=0), k, cells)
    starts = np.random.default_rng(1).permutation(np.arange(0, len(points), block))
    for start in starts:
        found.add(points[start : start + block], codes[start : start + block])
    assert (found.rows, found.n_noise) == (len(points), (codes < 0).sum())
    assert found.pairs == [(0, 1), (0, 2), (1, 2)]
    for i, j in found.pairs:
        meant = counted_one_by_one(points, codes, found.low, found.high, k, cells, i, j)
        assert entries(found.of(i, j)) == meant


def test_reading_counts_in_between_does_not_change_them():
    points, codes = rows_of()
    one, other = (Densities(points.min(axis=0), points.max(axis=0), 4, 16) for _ in range(2))
    for part in (slice(0, 300), slice(300, 900)):
        one.add(points[part], codes[part])
        one.of(0, 1)
        other.add(points[part], codes[part])
    assert entries(one.of(0, 1)) == entries(other.of(0, 1))


def test_rows_outside_are_counted_at_the_edge():
    found = Densities([0.0, 0.0], [1.0, 1.0], 1, cells=4)
    found.add([[-9.0, 0.5], [9.0, 9.0], [0.5, -1e300]], [0, 0, 0])
    assert found.of(0, 1).total.tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]


def test_no_rows_give_an_empty_image():
    grid = Densities([0.0, 0.0], [0.0, 5.0], 2, cells=4).of(0, 1)
    assert grid.total.sum() == 0
    assert (grid.owner == -1).all()
    assert not grid.pixels(palette.colours(2)).any()
    assert grid.packed() == ""


@pytest.mark.parametrize(
    "points, codes, match",
    [
        ([[np.nan, 0.0]], [0], "finite"),
        ([[0.0, 0.0, 0.0]], [0], r"\(1, 2\)"),
        ([[0.0, 0.0]], [2], "-1 .. 1"),
        ([[0.0, 0.0]], [-2], "-1 .. 1"),
    ],
)
def test_invalid_rows_are_errors(points, codes, match):
    with pytest.raises(ParameterError, match=match):
        Densities([0.0, 0.0], [1.0, 1.0], 2).add(points, codes)


@pytest.mark.parametrize("low, high", [([0.0], [1.0]), ([0.0, np.nan], [1.0, 1.0]), ([0.0, 0.0], [1.0, np.inf])])
def test_bounds_are_finite_and_of_two_axes_at_least(low, high):
    with pytest.raises(ParameterError, match="low and high"):
        Densities(low, high, 2)


def grid_of(points, codes, k, cells=16):
    found = Densities(np.min(points, axis=0), np.max(points, axis=0), k, cells)
    found.add(points, codes)
    return found.of(0, 1)


def test_merged_cells_have_the_rows_of_both():
    fine = grid_of(*rows_of(), 4)
    coarse = fine.merged(4, 2)
    assert coarse.shape == (4, 8)
    meant = Counter()
    for (cluster, line, column), count in entries(fine).items():
        meant[cluster, line // 4, column // 2] += count
    assert entries(coarse) == meant
    with pytest.raises(ParameterError, match="divide"):
        fine.merged(3, 1)


def test_the_owner_of_a_cell_has_most_of_its_rows():
    grid = grid_of(*rows_of(), 4, 8)
    for line, column in np.ndindex(grid.shape):
        own = {cluster: n for (cluster, a, b), n in entries(grid).items() if (a, b) == (line, column)}
        assert grid.total[line, column] == sum(own.values())
        first = min(own, key=lambda cluster: (-own[cluster], cluster), default=4)
        assert grid.owner[line, column] == (-1 if first == 4 else first)


@given(st.dictionaries(st.integers(0, 10**7), st.integers(1, 10**12), max_size=60))
def test_counts_come_back_from_text(counts):
    places = sorted(counts)
    back = unpack_counts(pack_counts(places, [counts[place] for place in places]))
    assert [part.tolist() for part in back] == [places, [counts[place] for place in places]]


@pytest.mark.parametrize("places, counts", [([1, 1], [1, 1]), ([2, 1], [1, 1]), ([-1], [1]), ([1], [0]), ([1, 2], [1])])
def test_counts_are_above_0_at_rising_places(places, counts):
    with pytest.raises(ParameterError, match="ascend"):
        pack_counts(places, counts)


def line_of(*cells):
    """The pixels of a line of cells with these counts of clusters 0 and 1."""
    cluster, place = np.nonzero(np.array(cells).T)
    grid = Density((1, len(cells)), 2, cluster, place, np.array(cells).T[cluster, place])
    return grid.pixels(["#0072b2", "#e69f00"])[0].astype(int)


def test_hue_says_which_cluster_and_opacity_how_many_rows():
    pixels = line_of((1, 0), (10, 0), (100, 0), (0, 100), (0, 0), (50, 50), (90, 10), (10, 90))
    alpha = pixels[:, 3]
    assert alpha[4] == 0
    assert 100 <= alpha[0] < alpha[1] < alpha[2] == alpha[3] == alpha[5] == 255  # one row is seen
    assert alpha[2] - alpha[1] == pytest.approx(alpha[1] - alpha[0], abs=1)  # ten times as many: as much stronger
    blue, orange = palette.as_rgb(["#0072b2", "#e69f00"]) * 255
    for j, colour in ((0, blue), (2, blue), (3, orange), (6, blue), (7, orange)):
        assert np.abs(pixels[j, :3] - colour).max() < 6, j
    assert np.abs(pixels[5, :3] - blue).max() > 40 < np.abs(pixels[5, :3] - orange).max()


def test_one_large_count_does_not_hide_the_others():
    some = [(count, 0) for count in (1, 5, 25) for _ in range(80)]
    usual, spiked = line_of(*some), line_of(*some[:-1], (50_000, 0))
    assert np.abs(usual[:-1, 3] - spiked[:-1, 3]).max() == 0


# The map


def dense_map(n=60_000, k=3, shown=500, **more):
    """Rows in two columns and a third; the last row is far from all others, and in no cluster."""
    X, codes, centers = blobs(n, k, 3)
    X[-1], codes[-1] = [60.0, -60.0, 0.0], -1
    found = Densities(X.min(axis=0), X.max(axis=0), k)
    found.add(X, codes)
    names = [str(j) for j in range(k)]
    return ClusterMap(["x", "y", "z"], X[:shown], codes[:shown], names, n, centers, densities=found, **more)


def picture_of(shown):
    """The pixels of the PNG in the SVG."""
    file = b64decode(re.search(r"data:image/png;base64,([^\"]+)", shown.picture())[1])
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGBA"))


def test_the_caption_of_a_density_says_that_all_rows_are_shown():
    shown = dense_map()
    assert shown.description == "density of all 60,000 rows, stronger where there are more"
    assert shown.description in shown.figure("map")
    assert 'preserveAspectRatio="none"' in shown.picture()


def test_a_single_row_far_away_is_seen_though_it_was_not_drawn():
    """In the axes, the figure, the data and the legend."""
    shown = dense_map()
    data, pixels = shown.to_dict(), picture_of(shown)
    assert data["axes"][0]["high"] > 60
    assert data["axes"][1]["low"] < -60
    assert data["noise"] == palette.NOISE
    height, width = pixels.shape[:2]
    corner = pixels[height // 2 :, width // 2 + width // 4 :]
    assert (corner[..., 3] > 0).sum() == 1
    grid = next(grid for grid in data["grids"] if grid["axes"] == [0, 1])
    places, counts = unpack_counts(grid["counts"])
    assert counts.sum() == shown.rows
    assert places[-1] // np.prod(grid["shape"]) == 3
    assert counts[-1] == 1


def test_exchanging_the_axes_transposes_the_map():
    one, other = picture_of(dense_map()), picture_of(dense_map(start=(1, 0)))
    np.testing.assert_array_equal(other[::-1].transpose(1, 0, 2)[::-1], one)


@pytest.mark.parametrize("step", clustermap.FIRST)
def test_densities_fit_into_the_size_limit(step, monkeypatch):
    """The first view gets coarser before it is left out; the caption says what is drawn."""
    meant = dense_map().densities.of(0, 1).merged(*step)
    room = len(meant.packed())
    monkeypatch.setattr(clustermap, "MAX_CHARACTERS", room)
    shown = dense_map()
    assert [(grid["axes"], grid["shape"]) for grid in shown.to_dict()["grids"]] == [([0, 1], list(meant.shape))]
    assert shown.description.startswith("density of all 60,000 rows")
    np.testing.assert_array_equal(picture_of(shown), meant.pixels(shown.colors))
    if step == clustermap.FIRST[-1]:
        monkeypatch.setattr(clustermap, "MAX_CHARACTERS", room - 1)
        shown = dense_map()
        assert (0, 1) not in [tuple(grid["axes"]) for grid in shown.to_dict()["grids"]]
        assert shown.description == "showing 500 of 60,000 rows"
        assert picture_of(shown).shape[0] > 400  # of points, not of cells


def test_other_axes_use_the_rest_of_the_size_limit(monkeypatch):
    """Two densities fit, and the third would fit alone."""
    sizes = [len(grid["counts"]) for grid in dense_map().to_dict()["grids"]]
    assert sizes[2] < sum(sizes[:2])
    monkeypatch.setattr(clustermap, "MAX_CHARACTERS", sum(sizes[:2]))
    assert [grid["axes"] for grid in dense_map().to_dict()["grids"]] == [[0, 1], [0, 2]]


def test_many_overlapping_clusters_fit_into_the_size_limit():
    n, k = 80_000, 60
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(size=(n, 4)), rng.integers(0, k, n)
    found = Densities(X.min(axis=0), X.max(axis=0), k)
    found.add(X, codes)
    shown = ClusterMap(list("abcd"), X[:9], codes[:9], [str(j) for j in range(k)], n, densities=found)
    assert sum(len(grid["counts"]) for grid in shown.to_dict()["grids"]) <= clustermap.MAX_CHARACTERS_MANY


def test_few_clusters_have_all_pairs_of_axes():
    data = dense_map().to_dict()
    assert [(grid["axes"], grid["shape"]) for grid in data["grids"]] == [
        ([0, 1], [160, 320]), ([0, 2], [160, 160]), ([1, 2], [160, 160]),
    ]  # fmt: skip


@pytest.mark.parametrize("change", [{"rows": 5}, {"names": ["0"]}, {"axes": ["x", "y"], "points": np.zeros((9, 2))}])
def test_densities_are_of_the_rows_and_clusters_of_the_map(change):
    shown = dense_map(shown=9)
    given = {"axes": shown.axes, "points": shown.points, "labels": np.zeros(9, int), "names": shown.names,
             "rows": shown.rows, "densities": shown.densities}  # fmt: skip
    with pytest.raises(ParameterError, match="densities must have"):
        ClusterMap(**{**given, **change})
