"""Properties of every distance, and comparisons with SciPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from sklearn.covariance import ledoit_wolf
from sklearn.metrics.pairwise import haversine_distances, nan_euclidean_distances

from coterie.distances import as_distance, pairwise
from coterie.errors import InputError, ParameterError
from coterie.kernels.cpu import pairwise as compiled
from coterie.kernels.plain import pairwise as numpy_twin

rng = np.random.default_rng(7)
W = np.array([0.5, 2.0, 0.0, 1.0, 3.0])


def halved(x, y):
    total = 0.0
    for i in range(len(x)):
        total += abs(x[i] - y[i])
    return total / 2


EVERY = {
    "euclidean": {},
    "euclidean weighted": {"w": W},
    "sqeuclidean": {},
    "manhattan": {},
    "manhattan weighted": {"w": W},
    "chebyshev": {},
    "chebyshev weighted": {"w": W},
    "minkowski": {"p": 3},
    "minkowski weighted": {"p": 1.5, "w": W},
    "mahalanobis": {},
    "cosine": {},
    "correlation": {},
    "hamming": {},
    "hamming weighted": {"w": W},
    "jaccard": {},
    "gower": {},
    "canberra": {},
    "canberra weighted": {"w": W},
    "braycurtis": {},
    "seuclidean": {},
    "nan_euclidean": {},
}
SCIPY = {"manhattan": "cityblock"}


def distance(name):
    return as_distance(name.split()[0], **EVERY[name])


def rows(name, n, dtype=np.float64):
    """Rows that suit the distance: few different values if it compares for equality."""
    X = rng.normal(size=(n, 5)) * [1, 2, 3, 4, 5] + 1
    few = name.split()[0] in ("hamming", "jaccard")
    return (np.maximum(np.round(X / 3), 0) if few else X).astype(dtype)


def table(name, X, Y=None, **options):
    return pairwise(X, Y, metric=distance(name), **options)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("n", [12, 150])
def test_flags_are_correct(name, n):
    X = rows(name, n)
    X[3] = X[5]
    found, D = distance(name), table(name, X)
    assert (D >= 0).all()
    assert (np.diag(D) == 0).all()
    assert D[3, 5] == 0
    if found.symmetric:
        np.testing.assert_array_equal(D, D.T)
    if found.triangle:
        detour = (D[:, :, None] + D[None]).min(axis=1)
        assert (detour * (1 + 1e-12) >= D).all()
    zero_weight = "w" in EVERY[name]
    if found.definite and not zero_weight:
        different = (X[:, None] != X[None]).any(axis=2)
        assert (D[different] > 0).all()


@pytest.mark.parametrize(
    "name, X",
    [
        ("sqeuclidean", [[0.0], [1.0], [2.0]]),
        ("cosine", [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]),
    ],
)
def test_distances_without_the_triangle_flag_violate_it(name, X):
    D = pairwise(X, metric=name)
    assert not as_distance(name).triangle
    assert D[0, 2] > D[0, 1] + D[1, 2]


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("gower", "jaccard", "nan_euclidean")])
@pytest.mark.parametrize("n, m", [(9, 6), (203, 131)])
def test_against_scipy(name, n, m):
    X, Y = rows(name, n), rows(name, m)
    kind = name.split()[0]
    params = dict(EVERY[name])
    if kind == "mahalanobis":
        params["VI"] = np.linalg.inv(np.cov(np.vstack([X, Y]).T))
    expected = cdist(X, Y, SCIPY.get(kind, kind), **params)
    np.testing.assert_allclose(table(name, X, Y), expected, rtol=1e-10, atol=1e-12)


def test_jaccard_compares_sets():
    X = rng.random((80, 9)) < 0.3
    np.testing.assert_allclose(pairwise(X, metric="jaccard"), cdist(X, X, "jaccard"), atol=1e-15)
    w = rng.random(X.shape[1])
    np.testing.assert_allclose(pairwise(X, metric="jaccard", w=w), cdist(X, X, "jaccard", w=w), atol=1e-12)
    assert pairwise(np.zeros((2, 3)), metric="jaccard")[0, 1] == 0


def test_minkowski_below_one_has_no_triangle_inequality():
    X = rng.normal(size=(20, 3))
    np.testing.assert_allclose(pairwise(X, metric="minkowski", p=0.5), cdist(X, X, "minkowski", p=0.5), rtol=1e-12)
    assert not as_distance("minkowski", p=0.5).triangle
    assert as_distance("minkowski", p=1).triangle


@pytest.mark.parametrize("name", EVERY)
def test_float32_stays_and_is_near(name):
    X = rows(name, 90)
    single = table(name, X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, table(name, X.astype(np.float32).astype(np.float64)), rtol=1e-4, atol=1e-5)
    if name != "gower":  # whose columns of a frame have kinds
        np.testing.assert_array_equal(table(name, pd.DataFrame(X.astype(np.float32))), single)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (7, 23, 3), (8, 24, 5), (9, 49, 33), (65, 48, 2), (130, 200, 17)])
@pytest.mark.parametrize("kind", range(4))
def test_vector_code_is_its_numpy_twin(kind, n, m, d, dtype):
    A, B = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    found, expected = np.full((n, m), np.nan, dtype), np.empty((n, m), dtype)
    compiled.differences(A, B, kind, 0.5, found)
    numpy_twin.differences(A.astype(np.float64), B.astype(np.float64), kind, 0.5, expected)
    np.testing.assert_allclose(found, expected, rtol=50 * np.finfo(dtype).eps * d)


@pytest.mark.parametrize("p", [1.0, 1.3, 4.0, 300.0])
def test_compiled_powers_are_their_numpy_twin(p):
    A, B = rng.normal(size=(30, 6)) * 1e3, rng.normal(size=(20, 6)) * 1e3
    B[0] = A[0]
    found, expected = np.empty((30, 20)), np.empty((30, 20))
    compiled.minkowski(A, B, p, found)
    numpy_twin.minkowski(A, B, p, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_compiled_matches_are_their_numpy_twins():
    A, B, w = rng.integers(3, size=(40, 6)) * 1.0, rng.integers(3, size=(30, 6)) * 1.0, rng.random(6)
    A[rng.random(A.shape) < 0.2] = np.nan
    found, expected = np.empty((40, 30)), np.empty((40, 30))
    for name, rest in (("mismatches", ()), ("gower", (2,))):
        getattr(compiled, name)(A, B, w, *rest, found)
        getattr(numpy_twin, name)(A, B, w, *rest, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_far_from_the_origin_keep_their_distances():
    X = rng.normal(size=(200, 40))
    np.testing.assert_allclose(pairwise(X + 2.0**20), pairwise(X), rtol=1e-7)


def test_nearly_parallel_rows_have_an_angle():
    angle = 1e-9
    D = pairwise([[1.0, 0.0], [np.cos(angle), np.sin(angle)]], metric="cosine")
    assert D[0, 1] == pytest.approx(angle**2 / 2, rel=1e-6)


def test_mahalanobis_by_a_given_or_shrunk_covariance():
    X = rng.normal(size=(12, 30))
    with pytest.raises(InputError, match=r"singular.*shrinkage='auto'"):
        pairwise(X, metric="mahalanobis")
    shrunk, _ = ledoit_wolf(X)
    expected = cdist(X, X, "mahalanobis", VI=np.linalg.inv(shrunk * 12 / 11))
    np.testing.assert_allclose(pairwise(X, metric="mahalanobis", shrinkage="auto"), expected, rtol=1e-6)
    cov = np.diag(np.arange(1.0, 31))
    expected = cdist(X, X, "seuclidean", V=np.arange(1.0, 31))
    np.testing.assert_allclose(pairwise(X, metric="mahalanobis", cov=cov), expected, rtol=1e-10)


MIXED = {"size": [1.0, 3.0, None, 5.0], "kind": ["a", "b", None, "a"], "flag": [True, True, False, True]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_gower_by_hand(frame):
    """Range 4; rows 0 and 1: (2/4 + 1 + 0) / 3; row 2 has only its flag."""
    D = pairwise(frame(MIXED), metric="gower")
    expected = [[0, 0.5, 1, 1 / 3], [0.5, 0, 1, 0.5], [1, 1, 0, 1], [1 / 3, 0.5, 1, 0]]
    np.testing.assert_allclose(D, expected, atol=1e-15)
    weighted = pairwise(frame(MIXED), metric="gower", w=[2, 1, 1])
    assert weighted[0, 1] == pytest.approx((2 * 0.5 + 1) / 4)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_gower_of_dates_durations_and_numbers_in_cells_are_differences(frame):
    """A day, and a year, of a range of a year; a value of dtype object is a number if all of its column are."""
    table = pd.DataFrame({
        "date": pd.to_datetime(["2023-01-01", "2023-01-02", "2024-01-01"]),
        "zone": pd.to_datetime(["2023-01-01", "2023-01-02", "2024-01-01"]).tz_localize("Asia/Tokyo"),
        "span": pd.to_timedelta([0, 1, 365], unit="D"),
        "size": [0.0, 1.0, 365.0],
    })  # fmt: skip
    np.testing.assert_allclose(pairwise(frame(table), metric="gower")[0], [0, 1 / 365, 1], rtol=1e-12)
    cells = pd.DataFrame({"size": pd.Series([0, 1.0, 365], dtype=object)})
    np.testing.assert_allclose(pairwise(cells, metric="gower")[0], [0, 1 / 365, 1])


def test_gower_of_missing_dates_and_durations():
    table = pd.DataFrame({
        "date": pd.to_datetime([None, "2023-01-02", "2024-01-02"]),
        "span": pd.to_timedelta([0, None, 4], unit="D"),
        "size": [0.0, 1, 2],
    })  # fmt: skip
    D = pairwise(table, metric="gower")
    np.testing.assert_allclose([D[0, 1], D[0, 2], D[1, 2]], [0.5, 1.0, 0.75])


NAMES = {
    "numbers": [0, 1],
    "tuples": pd.MultiIndex.from_product([["x"], ["a", "b"]]),
    "equal": ["a", "a"],
}


@pytest.mark.parametrize("names", ["numbers", "tuples"])
def test_gower_takes_any_names_of_columns(names):
    values = [[0.0, 0], [1, 4], [2, 2]]
    expected = pairwise(pd.DataFrame(values, columns=["a", "b"]), metric="gower")
    np.testing.assert_array_equal(pairwise(pd.DataFrame(values, columns=NAMES[names]), metric="gower"), expected)


@pytest.mark.parametrize(
    "table, message",
    [
        (pd.DataFrame([[1.0, 2]], columns=["a", "a"]), "more than one column called 'a'"),
        (pd.Series([1.0, 2]), r"X is a series, .* pass X\.to_frame"),
        (pd.DataFrame({"a": [[1], [2]], "b": [1, 2]}), r"column 'a' \(.*\) is neither numbers, dates nor categories"),
        (pd.DataFrame({"a": [1j, 2], "b": [1, 2]}), r"column 'a' \(.*\) is neither numbers, dates nor categories"),
    ],
)
def test_gower_names_what_it_does_not_take(table, message):
    with pytest.raises(InputError, match=message):
        pairwise(table, metric="gower")


def test_gower_of_new_rows_uses_the_ranges_of_both():
    X, Y = pd.DataFrame({"a": [0.0, 2.0], "b": ["x", "y"]}), pd.DataFrame({"a": [4.0], "b": ["z"]})
    np.testing.assert_allclose(pairwise(X, Y, metric="gower"), [[1.0], [0.75]])


def test_rows_that_share_no_column_have_no_gower_distance():
    with pytest.raises(InputError, match="no column in which both"):
        pairwise([[1.0, np.nan], [np.nan, 1.0]], metric="gower")


@pytest.mark.parametrize("n", [5, 300])
def test_a_user_defined_function_equals_the_built_in_distance(n):
    X = rng.normal(size=(n, 4))
    np.testing.assert_allclose(pairwise(X, metric=halved), pairwise(X, metric="manhattan") / 2, rtol=1e-12)
    assert pairwise(X.astype(np.float32), metric=halved).dtype == np.float32


@pytest.mark.parametrize(
    "X, metric, params, error, message",
    [
        ([[1.0, np.nan]], "euclidean", {}, InputError, "contains NaN"),
        ([[1.0, np.inf]], "euclidean", {}, InputError, "infinity"),
        ([[1.0, 2.0]], "euclid", {}, ParameterError, "metric must be one of 'euclidean'.*got 'euclid'"),
        ([[1.0, 2.0]], 3, {}, ParameterError, "metric must be one of"),
        ([[1.0, 2.0]], "minkowski", {"p": 0}, ParameterError, "p must be a number above 0"),
        ([[1.0, 2.0]], "minkowski", {"q": 2}, ParameterError, "metric='minkowski' has no parameter 'q': use p or w"),
        ([[1.0, 2.0]], halved, {"p": 2}, ParameterError, "p cannot be passed to the function"),
        ([[1.0, 2.0]], "euclidean", {"w": [1.0]}, ParameterError, "w must be one number for each of the 2 columns"),
        ([[1.0, 2.0]], "euclidean", {"w": [0.0, 0.0]}, ParameterError, "w must be finite and >= 0, and not 0"),
        ([[1.0, 2.0]], "mahalanobis", {"cov": [[1.0]]}, ParameterError, r"cov must be a symmetric \(2, 2\)"),
        ([[1.0, 2.0]], "mahalanobis", {}, InputError, "one row has no covariance"),
        ([[1.0, 2.0], [3.0, 5.0]], "mahalanobis", {"shrinkage": 2}, ParameterError, "shrinkage must be"),
        ([[1.0, 2.0], [0.0, 0.0]], "cosine", {}, InputError, "row 1 is zero in every column"),
        ([[1.0, 2.0], [3.0, 3.0]], "correlation", {}, InputError, "row 1 is the same in every column"),
        ([["a", "b"]], "gower", {}, InputError, "pass a data frame"),
        ([[1.0, 2.0]], "mahalanobis", {"cov": np.eye(2) * 1j}, ParameterError, "cov must be .* of real numbers"),
        ([[1.0, 2.0]], "euclidean", {"w": [1j, 1.0]}, ParameterError, "w must be numbers"),
        ([[np.nan, 1.0]], "gower", {}, InputError, "column 0 has no value in any row"),
    ],
)
def test_invalid_input_is_rejected(X, metric, params, error, message):
    with pytest.raises(error, match=message):
        pairwise(X, metric=metric, **params)


@pytest.mark.parametrize("name", [*EVERY, "dtw"])
def test_complex_numbers_are_rejected(name):
    with pytest.raises(InputError, match=r"(?i:complex)|not real numbers"):
        pairwise(rows(name, 9) + 1j, metric=distance(name) if name in EVERY else name)


def test_gower_of_a_frame_of_float32_columns_is_float32():
    frame = pd.DataFrame({"size": np.array([0, 1, 4], np.float32), "kind": ["x", "y", "y"]})
    D = pairwise(frame, metric="gower")
    assert D.dtype == np.float32
    np.testing.assert_array_equal(D[0], [0, 0.625, 1])
    assert pairwise(frame.assign(size=[0, 1, 4]), metric="gower").dtype == np.float64


def uncompilable(x, y):
    return sorted({str(v) for v in x}, key=lambda s: {"k": s}["k"])


def negative(x, y):
    return -1.0


def test_a_function_that_cannot_be_compiled_is_rejected():
    with pytest.raises(ParameterError, match=r"metric: uncompilable cannot be compiled .* metric='precomputed'"):
        pairwise([[1.0, 2.0]], metric=uncompilable)
    with pytest.raises(InputError, match=r"metric: negative returned -1.0"):
        pairwise([[1.0, 2.0], [2.0, 3.0]], metric=negative)


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev", "minkowski", "cosine", "correlation"])
@given(
    X=arrays(
        np.float64,
        st.tuples(st.integers(2, 6), st.integers(2, 5)),
        elements=st.floats(-1e100, 1e100, allow_subnormal=False),
    )
)
def test_distances_of_any_numbers_are_finite(name, X):
    try:
        D = pairwise(X, metric=name)
    except InputError:
        return
    assert np.isfinite(D).all()
    assert (D >= 0).all()


@pytest.mark.parametrize("n", [8, 150])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nan_euclidean_is_that_of_scikit_learn(n, dtype):
    X = rng.normal(size=(n, 6)).astype(dtype)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 0] = 1.0
    found = pairwise(X, metric="nan_euclidean")
    assert found.dtype == dtype
    expected = nan_euclidean_distances(X.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-9, atol=1e-6)


def test_nan_euclidean_of_rows_without_a_common_column_is_an_error():
    with pytest.raises(InputError, match="no column in which both have a value"):
        pairwise([[1.0, np.nan], [np.nan, 2.0]], metric="nan_euclidean")
    with pytest.raises(InputError, match="infinite"):
        pairwise([[1.0, np.inf], [np.nan, 2.0]], metric="nan_euclidean")


@pytest.mark.parametrize("n", [9, 300])
def test_haversine_is_that_of_scikit_learn(n):
    X = np.column_stack([rng.uniform(-np.pi / 2, np.pi / 2, n), rng.uniform(-np.pi, np.pi, n)])
    X[1] = -X[0, 0], X[0, 1] - np.pi  # the opposite side of the sphere
    np.testing.assert_allclose(pairwise(X, metric="haversine"), haversine_distances(X), rtol=1e-9, atol=1e-9)


def test_haversine_needs_radians_of_two_columns():
    with pytest.raises(InputError, match="radians"):
        pairwise([[52.5, 13.4], [48.1, 11.6]], metric="haversine")
    with pytest.raises(InputError, match="two columns"):
        pairwise(np.zeros((3, 3)), metric="haversine")


def test_equal_rows_have_standardised_distance_0():
    np.testing.assert_array_equal(pairwise(np.full((3, 2), -1e6), metric="seuclidean"), np.zeros((3, 3)))


def test_standardised_distances_do_not_depend_on_the_scale_of_subnormal_numbers():
    X = np.random.default_rng(0).normal(size=(5, 2))
    expected = pairwise(X, metric="seuclidean")
    np.testing.assert_allclose(pairwise(X * 1e-310, metric="seuclidean"), expected, rtol=1e-10)
    np.testing.assert_allclose(pairwise((X * 1e-42).astype("f4"), metric="seuclidean"), expected, rtol=0.01)


@pytest.mark.parametrize("n", [6, 200])
def test_the_variances_of_seuclidean_can_be_given(n):
    X, V = rng.normal(size=(n, 4)), np.array([1.0, 4.0, 9.0, 0.5])
    np.testing.assert_allclose(pairwise(X, metric="seuclidean", V=V), cdist(X, X, "seuclidean", V=V), rtol=1e-12)
    X[:, 1] = 7.0
    rest = X[:, [0, 2, 3]]
    np.testing.assert_allclose(pairwise(X, metric="seuclidean"), pairwise(rest, metric="seuclidean"), rtol=1e-12)
    with pytest.raises(ParameterError, match="V must be positive"):
        pairwise(X, metric="seuclidean", V=[1, 0, 1, 1])


def test_the_inverse_covariance_of_mahalanobis_can_be_given():
    X, A = rng.normal(size=(60, 4)), rng.normal(size=(4, 4))
    VI = A @ A.T
    np.testing.assert_allclose(
        pairwise(X, metric="mahalanobis", VI=VI), cdist(X, X, "mahalanobis", VI=VI), rtol=1e-9, atol=1e-9
    )
    VI = A[:, :2] @ A[:, :2].T
    with pytest.raises(ParameterError, match="VI has rank 2"):
        pairwise(X, metric="mahalanobis", VI=VI)
    expected = np.sqrt(np.maximum(cdist(X @ A[:, :2], X @ A[:, :2], "sqeuclidean"), 0))
    np.testing.assert_allclose(
        pairwise(X, metric="mahalanobis", VI=VI, pseudo_inverse=True), expected, rtol=1e-7, atol=1e-7
    )
    with pytest.raises(ParameterError, match="not both"):
        pairwise(X, metric="mahalanobis", VI=VI, cov=VI)


def test_braycurtis_of_opposite_rows_is_an_error():
    assert pairwise(np.zeros((2, 3)), metric="braycurtis")[0, 1] == 0
    with pytest.raises(InputError, match="braycurtis"):
        pairwise([[1.0, -2.0], [-1.0, 2.0]], metric="braycurtis")


@pytest.mark.parametrize("metric", ["canberra", "braycurtis"])
def test_relative_distances_do_not_depend_on_the_scale(metric):
    X = rng.normal(size=(70, 4)) ** 2
    expected = pairwise(X, metric=metric)
    for power in (-1000, 1020):
        np.testing.assert_allclose(pairwise(np.ldexp(X, power), metric=metric), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [5, 90])
def test_compiled_distances_with_missing_values_are_their_numpy_twin(n):
    A, B = rng.normal(size=(n, 2)), rng.normal(size=(n + 1, 2))
    A[0, 0], B[0, 1], B[1, 0] = np.nan, np.nan, np.nan
    found, expected = np.empty((n, n + 1)), np.empty((n, n + 1))
    compiled.nan_euclidean(A, B, found)
    numpy_twin.nan_euclidean(A, B, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def power_mean(x, y, p, scale=1.0):
    total = 0.0
    for i in range(len(x)):
        total += abs(x[i] - y[i]) ** p
    return scale * total ** (1 / p)


def test_a_function_can_have_parameters():
    X = rng.normal(size=(30, 3))
    found = pairwise(X, metric=power_mean, p=3.0, scale=2.0)
    np.testing.assert_allclose(found, 2 * pairwise(X, metric="minkowski", p=3.0), rtol=1e-10)
    np.testing.assert_allclose(pairwise(X, metric=power_mean, p=3.0), found / 2, rtol=1e-12)
    with pytest.raises(ParameterError, match="q cannot be passed to the function"):
        pairwise(X, metric=power_mean, q=3.0)
    with pytest.raises(ParameterError, match=r"missing a required argument: 'p'\): pass its parameters"):
        pairwise(X, metric=power_mean)
