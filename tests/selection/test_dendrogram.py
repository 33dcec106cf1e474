"""Jumps of heights in trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import cut, linkage
from coterie.selection import dendrogram_gap


def chain(heights):
    """A tree that adds one leaf at a time, at these heights."""
    n = len(heights) + 1
    return [[0 if i == 0 else n + i - 1, i + 1, height, i + 2] for i, height in enumerate(heights)]


@pytest.mark.parametrize("jump", ["relative", "absolute"])
def test_jumps_are_as_defined(jump):
    heights = [1.0, 2.0, 3.0, 9.0, 10.0]
    found = dendrogram_gap(chain(heights), jump=jump)
    for k, value in zip(found.ks, found.jumps, strict=True):
        low, high = heights[6 - k - 1], heights[6 - k]  # h_{n-K} and h_{n-K+1} of n = 6 leaves, counted from 1
        assert value == pytest.approx((high - low) / (high if jump == "relative" else 10.0))
    assert found.ks.tolist() == [2, 3, 4, 5]
    assert found.best == 3
    assert found.height == 6.0
    assert found.clarity == pytest.approx(found.jumps[1] - np.sort(found.jumps)[-2])


@pytest.mark.parametrize("method", ["ward", "average", "complete", "single", "centroid", "median"])
def test_clear_clusters_are_found_by_every_linkage(method):
    X, y = make_blobs(120, 2, centers=4, cluster_std=0.1, random_state=1)
    Z = linkage(X, method)
    found = dendrogram_gap(Z)
    assert found.best == 4
    assert found.clarity > 0.1
    labels = cut(Z, n_clusters=found.best)
    assert len(np.unique(np.stack([labels, y]), axis=1).T) == 4
    np.testing.assert_array_equal(cut(Z, height=found.height), labels)


def test_a_merge_counts_as_high_as_the_highest_below_it():
    falling = [[0, 1, 5.0, 2], [4, 2, 3.0, 3], [5, 3, 10.0, 4]]
    assert dendrogram_gap(falling).table() == dendrogram_gap(chain([5.0, 5.0, 10.0])).table()


def test_of_equal_jumps_the_fewest_clusters_win():
    found = dendrogram_gap(chain([1.0, 2.0, 4.0, 8.0]))
    assert found.best == 2
    assert found.clarity == 0


@pytest.mark.parametrize("heights", [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [1.0]])
def test_one_cluster_wins_only_where_there_is_no_jump(heights):
    found = dendrogram_gap(chain(heights))
    assert (found.best, found.clarity, found.height) == (1, 0.0, None)
    assert not found.jumps.any()


def test_equal_rows_make_a_jump_of_one():
    found = dendrogram_gap(chain([0.0, 0.0, 1.0, 1.5]))
    assert found.best == 3
    assert found.jumps.max() == 1


@given(st.lists(st.just(0.0) | st.floats(1e-6, 1e6), min_size=2, max_size=30), st.floats(1e-3, 1e3))
def test_units_do_not_matter_and_all_is_finite(heights, scale):
    heights = np.sort(heights)
    found, scaled = dendrogram_gap(chain(heights)), dendrogram_gap(chain(heights * scale))
    assert ((found.jumps >= 0) & (found.jumps <= 1)).all()
    np.testing.assert_allclose(found.jumps, scaled.jumps, atol=1e-9)
    assert found.best == 1 or found.best in found.ks


def test_k_max_bounds_what_is_looked_at():
    X, _ = make_blobs(200, 2, centers=6, cluster_std=0.1, random_state=2)
    Z = linkage(X)
    assert dendrogram_gap(Z).ks[-1] == 14
    assert dendrogram_gap(Z, 4).ks.tolist() == [2, 3, 4]
    assert dendrogram_gap(Z, 10_000).ks[-1] == 199


def test_it_prints():
    text = str(dendrogram_gap(chain([1.0, 2.0, 9.0])))
    assert text.splitlines()[0].split() == ["k", "low", "high", "jump"]
    assert text.endswith("largest jump at 2 clusters, clarity 0.278")


@pytest.mark.parametrize(
    "Z, options, error, message",
    [
        ([[0, 1, 1.0, 3]], {}, InputError, "has the size 3"),
        (np.zeros((3, 2)), {}, InputError, "shape \\(n - 1, 4\\)"),
        (chain([1.0, 2.0]), {"k_max": 1}, ParameterError, "k_max must be a whole number of at least 2"),
        (chain([1.0, 2.0]), {"jump": "high"}, ParameterError, "jump must be"),
    ],
)
def test_invalid_input_raises_an_error(Z, options, error, message):
    with pytest.raises(error, match=message):
        dendrogram_gap(Z, **options)
