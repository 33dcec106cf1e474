"""Tests of `pairwise`: shapes, outputs, threads, memory and errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from coterie import machine
from coterie.distances import Distance, as_distance, pairwise, register
from coterie.distances import distance as registry
from coterie.distances.pairwise import STRIP, strips
from coterie.errors import InputError, ParameterError
from many_parts import many_strips

rng = np.random.default_rng(3)
X = rng.normal(size=(230, 6))


@pytest.fixture
def in_strips(monkeypatch):
    """Many strips, even for small tables."""
    many_strips(monkeypatch, 40 * 230)


class Ahead(Distance):
    """An asymmetric distance: the positive part of the difference of the first columns."""

    name = "ahead"
    symmetric = triangle = definite = False

    def between(self, A, B, out):
        out[:] = np.maximum(A[:, :1] - B[:, 0], 0)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_strips_and_threads_change_nothing(in_strips, n_jobs):
    np.testing.assert_allclose(pairwise(X, n_jobs=n_jobs), squareform(pdist(X)), rtol=1e-12)
    np.testing.assert_allclose(pairwise(X, condensed=True, n_jobs=n_jobs), pdist(X), rtol=1e-12)
    np.testing.assert_array_equal(pairwise(X, n_jobs=n_jobs), pairwise(X, n_jobs=1))
    np.testing.assert_array_equal(squareform(pairwise(X, condensed=True)), pairwise(X))


@pytest.mark.parametrize("metric", registry.names())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_order_in_memory_changes_nothing(metric, dtype):
    """Sums of NumPy depend on it, in the last digit."""
    for n, d in [(12, 8), (30, 17), (150, 40)]:
        rows = rng.random((n, 2 if metric == "haversine" else d)) * np.exp(3 * rng.normal(size=(n, 1)))
        rows = (rows % 1 if metric == "haversine" else rows).astype(dtype)
        expected = pairwise(rows, metric=metric)
        for other in (np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2], rows[::-1].copy()[::-1]):
            np.testing.assert_array_equal(pairwise(other, metric=metric), expected)


def test_both_directions_are_kept_where_they_differ(in_strips):
    D = pairwise(X, metric=Ahead())
    np.testing.assert_allclose(D - D.T, X[:, :1] - X[:, 0])
    with pytest.raises(ParameterError, match=r"condensed=True requires a symmetric metric"):
        pairwise(X, metric=Ahead(), condensed=True)


def test_strips_are_all_rows_once():
    for n, m in ((1, 1), (10, 3 * STRIP), (5000, 5000)):
        cuts = strips(n, m)
        assert [start for start, _ in cuts] == [0, *(stop for _, stop in cuts[:-1])]
        assert cuts[-1][1] == n


def test_out_is_filled_and_returned(tmp_path):
    out = np.empty((230, 230))
    assert pairwise(X, out=out) is out
    np.testing.assert_array_equal(out, pairwise(X))
    pairwise(X, out=tmp_path / "square.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "square.npy"), out)
    pairwise(X.astype(np.float32), out=str(tmp_path / "condensed.npy"), condensed=True)
    np.testing.assert_array_equal(np.load(tmp_path / "condensed.npy"), pairwise(X.astype(np.float32), condensed=True))


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"out": np.empty((2, 2))},
            r"out must be a C-ordered array of shape \(230, 230\) and type float64; got \(2, 2",
        ),
        ({"out": np.empty((230, 230), np.float32)}, "type float64; got .* of float32"),
        ({"out": "distances.csv"}, "out must be the path of an .npy file"),
        ({"out": 3}, "out must be"),
        ({"Y": X, "condensed": True}, "condensed=True requires Y=None"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(ParameterError, match=message):
        pairwise(X, **options)


def test_invalid_rows_are_rejected():
    with pytest.raises(InputError, match="X has 6 columns and Y has 5"):
        pairwise(X, X[:, :5])
    with pytest.raises(InputError, match=r"Y is sparse: .* pass Y.toarray\(\)"):
        pairwise(X, sparse.csr_array(X))


def test_results_too_large_for_memory_are_rejected_at_once(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 10_000)
    monkeypatch.setattr(machine, "SMALL_OBJECT", 0)
    with pytest.raises(InputError, match=r"distances would take 423 KB of memory, but only 10 KB are free: pass out="):
        pairwise(X)


def test_frames_are_rows():
    np.testing.assert_array_equal(pairwise(pd.DataFrame(X)), pairwise(X))


def test_a_registered_name_works_like_a_built_in_one(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    register("ahead", Ahead())
    register("first", lambda x, y: abs(x[0] - y[0]), triangle=True)
    np.testing.assert_array_equal(pairwise(X, metric="ahead"), pairwise(X, metric=Ahead()))
    np.testing.assert_allclose(pairwise(X, metric="first"), np.abs(X[:, :1] - X[:, 0]), rtol=1e-12)
    assert as_distance("first").triangle
    assert not as_distance("first").definite
    with pytest.raises(ParameterError, match="name='euclidean' is a built-in metric"):
        register("euclidean", Ahead())
    with pytest.raises(ParameterError, match="name must be a non-empty str"):
        register("", Ahead())
    with pytest.raises(ParameterError, match="a function of two rows; got 3"):
        register("three", 3)


def test_memory_is_counted():
    assert 0 < machine.free_memory() < 1 << 50
    machine.check_memory(1, "one byte", "nothing")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "minkowski"])
@pytest.mark.parametrize("n", [3, 80])
def test_distances_above_the_range_of_numbers_are_an_error(metric, dtype, n):
    X = np.zeros((n, 20), dtype)
    X[0], X[1] = np.finfo(dtype).max, -np.finfo(dtype).max
    with pytest.raises(InputError, match="divide"):
        pairwise(X, metric=metric, **({"p": 3} if metric == "minkowski" else {}))


def test_gower_rejects_a_column_whose_range_is_above_that_of_numbers():
    with pytest.raises(InputError, match="column 0 has values whose differences overflow"):
        pairwise(np.array([[1.5e308], [-1.5e308]]), metric="gower")
    assert pairwise(np.array([[3e38], [-3e38]], np.float32), metric="gower")[0, 1] == 1
