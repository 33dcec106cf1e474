from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.cluster import hierarchy as scipy_hierarchy
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from coterie import machine
from coterie.distances import Distance, as_distance, pairwise, register
from coterie.distances.pairwise import fill
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import condensed, linkage, linkage_from_rows, optimal_leaf_ordering
from many_parts import many_strips

METHODS = ("single", "complete", "average", "weighted", "centroid", "median", "ward")
LEAN = ("single", "centroid", "median", "ward")
RISING = ("single", "complete", "average", "weighted", "ward")


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def assert_same_tree(Z: np.ndarray, want: np.ndarray, rtol: float = 1e-10) -> None:
    np.testing.assert_array_equal(Z[:, [0, 1, 3]], want[:, [0, 1, 3]])
    np.testing.assert_allclose(Z[:, 2], want[:, 2], rtol=rtol, atol=rtol * want[:, 2].max())


def assert_is_tree(Z: np.ndarray, n: int, rises: bool = True) -> None:
    """A whole linkage matrix: SciPy's own checks, sizes, and heights that do not fall."""
    assert Z.shape == (n - 1, 4)
    assert Z.dtype == np.float64
    assert np.isfinite(Z).all()
    assert scipy_hierarchy.is_valid_linkage(Z)
    assert (Z[:, 0] < Z[:, 1]).all()
    assert Z[-1, 3] == n
    assert not rises or (np.diff(Z[:, 2]) >= 0).all()


SHAPES = [(2, 3), (3, 1), (40, 4), (700, 3), (1100, 12)]  # the last two by compiled kernels


@pytest.mark.parametrize("n, d", SHAPES)
@pytest.mark.parametrize("method", METHODS)
def test_the_tree_is_scipys(method, n, d):
    X = normal(n, d)
    assert_same_tree(linkage(X, method), scipy_hierarchy.linkage(X, method))


@pytest.mark.parametrize("method", LEAN)
@pytest.mark.parametrize("n, d", SHAPES)
def test_the_tree_needs_no_matrix(method, n, d):
    X = normal(n, d)
    assert_same_tree(linkage(X, method, memory="linear"), linkage(X, method, memory="matrix"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [30, 500])
def test_rows_a_square_and_a_condensed_matrix_give_one_tree(method, n):
    X = normal(n, 3)
    apart = pdist(X)
    whole = squareform(apart)
    Z = linkage(whole, method, "precomputed")
    np.testing.assert_array_equal(linkage(apart, method, "precomputed"), Z)
    assert_same_tree(linkage(X, method), Z)
    np.testing.assert_array_equal(whole, squareform(apart))  # not overwritten


@pytest.mark.parametrize("method", ["complete", "average", "weighted"])
@pytest.mark.parametrize("n", [100, 600])
def test_ties_are_broken_as_scipy_breaks_them(method, n):
    X = np.random.default_rng(1).integers(0, 4, size=(n, 3)).astype(float)
    np.testing.assert_array_equal(linkage(X, method), scipy_hierarchy.linkage(X, method))


@pytest.mark.parametrize("memory", ["linear", "matrix"])
@pytest.mark.parametrize("n", [100, 600])
def test_single_linkage_is_the_minimum_spanning_tree(n, memory):
    X = np.random.default_rng(1).integers(0, 30, size=(n, 2)) + 0.0  # many ties
    X[: n // 2] += normal(n // 2, 2)
    edges = minimum_spanning_tree(squareform(pdist(X)) + 1.0).data - 1.0  # it takes 0 for no edge
    np.testing.assert_allclose(linkage(X, "single", memory=memory)[:, 2], np.sort(edges), atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [60, 500])
@pytest.mark.parametrize("kind", ["grid", "equal", "halves", "line", "spread"])
def test_degenerate_rows_make_a_valid_tree(kind, n, method):
    rng = np.random.default_rng(2)
    X = {
        "grid": rng.integers(0, 3, size=(n, 4)).astype(float),
        "equal": np.full((n, 2), 0.1),
        "halves": np.repeat(normal(n // 2, 3), 2, axis=0),
        "line": np.arange(n, dtype=float)[:, None] ** 2,
        "spread": 2.0 ** rng.integers(-40, 40, size=(n, 2)),
    }[kind]
    for dtype in (np.float64, np.float32):
        for memory in ("auto", "matrix"):
            assert_is_tree(linkage(X.astype(dtype), method, memory=memory), n, method in RISING)


@pytest.mark.parametrize("method", METHODS)
def test_equal_rows_merge_first_and_at_zero(method):
    X = np.repeat(normal(200, 3), 2, axis=0)
    Z = linkage(X, method)
    assert (Z[:200, 2] == 0).all()
    assert (Z[200:, 2] > 0).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [50, 700])
def test_float32_is_precise_wherever_the_rows_lie(method, n):
    X = (normal(n, 5) + 2**14).astype(np.float32)
    want = scipy_hierarchy.linkage(X.astype(np.float64), method)[:, 2]
    for memory in ("auto", "matrix"):
        np.testing.assert_allclose(linkage(X, method, memory=memory)[:, 2], want, rtol=1e-4, atol=3e-6 * want.max())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype, size", [(np.float64, 2.0**-560), (np.float32, 2.0**-90), (np.float32, 2.0**90)])
def test_squares_out_of_range_change_nothing(method, dtype, size):
    for n in (20, 600):
        X = normal(n, 4).astype(dtype)
        Z = linkage(X * dtype(size), method)
        np.testing.assert_allclose(Z[:, 2] / size, linkage(X, method)[:, 2], rtol=1e-9 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [20, 400])
@pytest.mark.parametrize("memory", ["auto", "matrix"])
def test_weight_two_is_the_row_twice(method, n, memory):
    X, weight = normal(n, 3), np.random.default_rng(3).integers(1, 4, size=n)
    Z = linkage(X, method, sample_weight=weight, memory=memory)
    twice = linkage(np.repeat(X, weight, axis=0), method, memory=memory)[:, 2]
    np.testing.assert_allclose(Z[:, 2], twice[weight.sum() - n :], rtol=1e-9, atol=1e-12)
    assert_is_tree(Z, n, method in RISING)


def test_the_scale_of_weights_changes_only_the_heights_of_ward():
    X, weight = normal(300, 3), np.random.default_rng(3).uniform(0.5, 4, size=300)
    for scale in (1e-30, 1e30):
        for method, factor in (("average", 1.0), ("centroid", 1.0), ("ward", np.sqrt(scale))):
            want = linkage(X, method, sample_weight=weight)[:, 2]
            got = linkage(X.astype(np.float32), method, sample_weight=weight * scale)[:, 2]
            np.testing.assert_allclose(got / factor, want, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_threads_change_nothing(method, monkeypatch):
    many_strips(monkeypatch, 1400 * 200)
    memory, rows = ("linear", normal(2500, 1)) if method == "single" else ("matrix", normal(700, 3))
    X = np.concatenate([rows, rows])  # ties
    one, three = (linkage(X, method, memory=memory, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("method", ["single", "ward"])
@pytest.mark.parametrize("rows", ["normal", "clusters", "ties", "one column"])
def test_a_tree_of_boxes_changes_the_speed_not_the_result(method, rows, monkeypatch):
    rng = np.random.default_rng(4)
    X = {
        "normal": rng.normal(size=(3000, 3)),
        "clusters": rng.normal(size=(3000, 2)) * 0.01 + rng.normal(size=(20, 2))[rng.integers(0, 20, 3000)],
        "ties": rng.integers(0, 12, size=(3000, 2)).astype(float),
        "one column": rng.normal(size=(3000, 1)),
    }[rows]
    want = linkage(X, method, memory="linear", n_jobs=1) if rows != "ties" else linkage(X, method, memory="matrix")
    monkeypatch.setattr(linkage_from_rows, "FEW_ROWS", 1)
    Z = linkage(X, method)
    assert_is_tree(Z, 3000)
    if rows != "ties" or method == "single":
        np.testing.assert_allclose(Z[:, 2], want[:, 2], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, d", [(40, 3), (301, 7)])
def test_distances_of_rows_are_the_same_from_both_ends(n, d, dtype):
    X, D = normal(n, d).astype(dtype), np.empty((n, n), dtype)
    fill(as_distance("euclidean"), X, X, D, None)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_allclose(D, squareform(pdist(X)), rtol=1e-4 if dtype == np.float32 else 1e-12)


OTHERS = ["manhattan", "chebyshev", "cosine", "correlation", "sqeuclidean", "hamming"]


@pytest.mark.parametrize("metric", OTHERS)
@pytest.mark.parametrize("method", ["single", "complete", "average"])
def test_any_distance_is_supported(metric, method):
    X = normal(120, 6)
    if method == "single":  # ties do no harm to its heights
        X = np.random.default_rng(5).integers(1, 9, size=(120, 6)).astype(float)
    names = {"manhattan": "cityblock"}
    want = scipy_hierarchy.linkage(pdist(X, names.get(metric, metric)), method)
    for memory in ("auto", "linear") if method == "single" else ("auto",):
        np.testing.assert_allclose(linkage(X, method, metric, memory=memory)[:, 2], want[:, 2], atol=1e-9)


def test_single_linkage_stores_one_row_of_distances_for_any_metric(monkeypatch):
    X = normal(400, 5)
    want = linkage(X, "single", "manhattan")
    monkeypatch.setattr(linkage_from_rows, "LARGE", 0)
    assert_same_tree(linkage(X, "single", "manhattan"), want)


def test_mahalanobis_distances_are_euclidean_ones_of_other_rows():
    X = normal(80, 3) * [1, 10, 100]
    inverse = np.linalg.inv(np.cov(X.T))
    want = scipy_hierarchy.linkage(pdist(X, "mahalanobis", VI=inverse), "ward")
    assert_same_tree(linkage(X, "ward", "mahalanobis"), want, rtol=1e-8)


def test_columns_can_have_weights():
    X = normal(80, 3)
    assert_same_tree(linkage(X, "ward", w=[1, 4, 0]), linkage(X * [1, 2, 0], "ward"))


def test_frames_are_rows():
    pandas = pytest.importorskip("pandas")
    X = normal(30, 3)
    np.testing.assert_array_equal(linkage(pandas.DataFrame(X)), linkage(X))
    whole = squareform(pdist(X))
    np.testing.assert_array_equal(
        linkage(pandas.DataFrame(whole), metric="precomputed"), linkage(whole, metric="precomputed")
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("memory", ["auto", "matrix"])
def test_the_callback_gets_the_progress_up_to_the_end(method, memory):
    heard = []
    linkage(normal(900, 2), method, memory=memory, callback=lambda state: heard.append((state.done, state.total)))
    assert heard[-1] == (899, 899)
    assert heard == sorted(heard)


def test_an_exception_in_the_callback_ends_the_computation():
    def stop(progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        linkage(normal(900, 2), callback=stop)


def test_a_callback_that_returns_true_interrupts():
    with pytest.raises(KeyboardInterrupt, match="callback returned True after"):
        linkage(normal(900, 2), "average", callback=lambda progress: True)


# the same call as in SciPy


def test_the_default_method_is_that_of_scipy():
    X = normal(40, 3)
    assert_same_tree(linkage(X), scipy_hierarchy.linkage(X))


@pytest.mark.parametrize("method", METHODS)
def test_one_dimension_is_a_condensed_distance_matrix(method):
    apart = pdist(normal(40, 3))
    expected = linkage(apart, method, "precomputed")
    for vector in (apart, apart.tolist(), pandas.Series(apart)):
        np.testing.assert_array_equal(linkage(vector, method), expected)
    np.testing.assert_array_equal(linkage(apart, method, "cityblock"), expected)  # SciPy ignores it, too
    assert_same_tree(expected, scipy_hierarchy.linkage(apart, method))


def test_a_vector_of_another_length_is_an_error():
    with pytest.raises(InputError, match="not the length of a condensed distance matrix"):
        linkage(np.ones(5))
    with pytest.raises(ParameterError, match="take no metric parameters"):
        linkage(np.ones(3), w=[1, 2])
    with pytest.raises(ParameterError, match="memory='linear' does not support precomputed"):
        linkage(np.ones(3), memory="linear")


def test_a_distance_matrix_as_rows_gives_a_warning():
    D = squareform(pdist(normal(20, 3)))
    with pytest.warns(scipy_hierarchy.ClusterWarning, match="pass metric='precomputed', or the condensed") as record:
        linkage(D, "average")
    assert record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        linkage(D, "average", "precomputed")
        linkage(normal(20, 20), "average")
        linkage(np.zeros((4, 4)), "average")


@pytest.mark.parametrize("method", ["single", "average", "ward"])
def test_optimal_ordering_is_that_of_the_function(method):
    X = normal(40, 3)
    expected = optimal_leaf_ordering(linkage(X, method), X)
    np.testing.assert_array_equal(linkage(X, method, "euclidean", True), expected)
    np.testing.assert_allclose(linkage(pdist(X), method, optimal_ordering=True), expected)
    assert (expected[:, 0] > expected[:, 1]).any()


SIZES = st.integers(2, 14)


@given(data=st.data(), n=SIZES, method=st.sampled_from(METHODS))
@settings(max_examples=150, deadline=None)
def test_any_distances_make_a_valid_tree(data, n, method):
    numbers = st.floats(0, 1e300, allow_subnormal=True) | st.sampled_from([0.0, 1.0, 2.0])
    apart = data.draw(hnp.arrays(np.float64, n * (n - 1) // 2, elements=numbers))
    Z = linkage(apart, method, "precomputed")
    assert_is_tree(Z, n, method in RISING)
    if method == "single":
        np.testing.assert_array_equal(Z[:, 2], scipy_hierarchy.linkage(apart, "single")[:, 2])


def test_invalid_distances_are_errors():
    whole = squareform(pdist(normal(6, 2)))
    lopsided = whole.copy()
    lopsided[4, 1] += 0.5
    with pytest.raises(InputError, match=r"not symmetric: X\[1, 4\] is .* X\[4, 1\]"):
        linkage(lopsided, "average", "precomputed")
    with pytest.raises(InputError, match="-1"):
        linkage(np.where(whole == whole[2, 3], -1.0, whole), "average", "precomputed")
    with pytest.raises(InputError, match=r"NaN|nan"):
        linkage(np.where(whole == whole[2, 3], np.nan, whole), "average", "precomputed")
    with pytest.raises(InputError, match="rows 0 and 2 is nan"):
        linkage([1.0, np.nan, 1.0], "average", "precomputed")
    with pytest.raises(InputError, match=r"\(6, 5\)"):
        linkage(whole[:, :5], "average", "precomputed")
    with pytest.raises(InputError, match="5 numbers"):
        linkage(np.ones(5), "average", "precomputed")
    with pytest.raises(InputError, match="nothing to merge"):
        linkage([[0.0]], "average", "precomputed")
    with pytest.raises(InputError, match="similarities"):
        linkage(np.ones((3, 3)), "average", "precomputed")


def test_rounding_does_not_make_a_matrix_asymmetric():
    whole = squareform(pdist(normal(300, 2)))
    nearly = whole + np.triu(np.full(whole.shape, 1e-12), 1)
    made = condensed.symmetric_matrix(nearly)
    np.testing.assert_array_equal(made, np.triu(nearly) + np.triu(nearly).T)
    assert_same_tree(linkage(nearly, "average", "precomputed"), linkage(whole, "average", "precomputed"), rtol=1e-9)


def test_invalid_options_are_errors_that_state_the_valid_ones():
    X = normal(10, 2)
    with pytest.raises(ParameterError, match=r"'single'.*'wrad'"):
        linkage(X, "wrad")
    with pytest.raises(ParameterError, match="metric='euclidean'"):
        linkage(X, "ward", "manhattan")
    with pytest.raises(ParameterError, match="memory must be"):
        linkage(X, memory="little")
    with pytest.raises(ParameterError, match="needs all distances"):
        linkage(X, "complete", memory="linear")
    with pytest.raises(ParameterError, match="n_jobs must be"):
        linkage(X, n_jobs=0)
    with pytest.raises(ParameterError, match="callback must be"):
        linkage(X, callback=3)
    with pytest.raises(InputError, match="nothing to merge"):
        linkage(X[:1])
    with pytest.raises(InputError, match="sample_weight is 0 for row 3"):
        linkage(X, sample_weight=np.arange(10) != 3)
    with pytest.raises(InputError):
        linkage(np.where(np.arange(20).reshape(10, 2) == 7, np.inf, X))


def test_asymmetric_distances_are_an_error():
    class Upwards(Distance):
        name = "upwards"
        symmetric = False

    register("upwards", Upwards())
    with pytest.raises(ParameterError, match="not symmetric"):
        linkage(normal(10, 2), "single", "upwards")


def test_a_matrix_that_does_not_fit_into_memory_is_an_error(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 1000)
    monkeypatch.setattr(machine, "SMALL_OBJECT", 0)
    with pytest.raises(InputError, match=r"the distances of 60 rows would take 28.8 KB.*float32"):
        linkage(normal(60, 2), "average")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [11, 60])
def test_weights_of_any_scale_merge_float32_rows_alike(method, n):
    """Clusters are merged in float32, whose range products of large weights leave long before that of float64."""
    X = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    w = np.arange(1.0, n + 1)
    plain = linkage(X, method, sample_weight=w, memory="matrix")
    for power in (-200, -80, -50, 50, 60, 100, 600):
        scaled = linkage(X, method, sample_weight=np.ldexp(w, power), memory="matrix")
        np.testing.assert_array_equal(scaled[:, [0, 1, 3]], plain[:, [0, 1, 3]])
        heights = np.ldexp(plain[:, 2], power // 2 if method == "ward" else 0)
        np.testing.assert_allclose(scaled[:, 2], heights, rtol=1e-6)


@pytest.mark.parametrize("dtype, power", [(np.float32, 127), (np.float64, 1023)])
@pytest.mark.parametrize("method", METHODS)
def test_distances_near_the_end_of_the_range_are_merged(method, dtype, power):
    D = np.abs(np.subtract.outer(*[np.array([0.0, 1, 3, 7, 12, 16]) / 32] * 2)).astype(dtype)
    w = np.arange(1.0, 7)
    plain = linkage(D, method, "precomputed", sample_weight=w)
    scaled = linkage(np.ldexp(D, power), method, "precomputed", sample_weight=w)
    np.testing.assert_array_equal(scaled[:, [0, 1, 3]], plain[:, [0, 1, 3]])
    np.testing.assert_allclose(scaled[:, 2], np.ldexp(plain[:, 2], power), rtol=1e-6)


@pytest.mark.parametrize("n", [9, 300], ids=["NumPy", "compiled"])
@pytest.mark.parametrize("memory", ["auto", "matrix"])
def test_rows_with_missing_values_are_merged_by_their_distances(n, memory):
    rng = np.random.default_rng(5)
    X = np.where(rng.random((n, 9)) < 0.1, np.nan, rng.normal(size=(n, 9)))
    D = pairwise(X, metric="nan_euclidean", condensed=True)
    for method in ("single", "complete", "average", "weighted"):
        Z = linkage(X, method, "nan_euclidean", memory=memory)
        np.testing.assert_allclose(Z, linkage(D, method), rtol=1e-12)
    for method in ("ward", "centroid", "median"):
        with pytest.raises(ParameterError, match="centers of clusters, which metric='nan_euclidean' does not define"):
            linkage(X, method, "nan_euclidean")
    with pytest.raises(ParameterError, match="memory='linear'"):
        linkage(X, "average", "nan_euclidean", memory="linear")
