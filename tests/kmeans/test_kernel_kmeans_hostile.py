"""Kernel K-means on extreme data, and its errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import KernelKMeans
from coterie.errors import InputError, ParameterError
from coterie.kmeans.kernel_functions import Polynomial, UserKernel
from kmeans.kernel_cases import NAMES, apart, blobs, gram, some_weights

# edges


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
def test_every_row_its_own_cluster(kernel):
    X = apart(each=4)
    model = KernelKMeans(12, kernel=kernel, random_state=0).fit(X)
    assert sorted(model.labels_) == list(range(12))
    assert model.inertia_ == pytest.approx(0, abs=1e-12 * np.abs(gram(kernel, X)).max())


@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
def test_fewer_distinct_rows_than_clusters_are_all_found_with_a_warning(approximation):
    X = np.repeat(np.eye(3), 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 of 5 clusters have rows: X has too few distinct rows"):
        model = KernelKMeans(5, approximation=approximation, random_state=0).fit(X)
    assert len(set(model.labels_)) == 3
    assert model.inertia_ == pytest.approx(0, abs=1e-12)
    assert np.isfinite(model.transform(X)).all()


def test_an_empty_cluster_is_moved_to_the_costliest_row():
    X = np.r_[np.zeros((5, 1)), np.full((5, 1), 1.0), [[50.0]]]
    start = np.r_[np.tile([0, 1], 5), 2]  # the first two means are equally far from all: the second loses its rows
    model = KernelKMeans(3, kernel="linear", init=start).fit(X)
    assert model.inertia_ == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("start", [[0, 1], [1, 0]])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_of_equally_near_means_the_first_counts(kernel, start):
    model = KernelKMeans(2, kernel=kernel, init=start).fit([[-1.1], [1.3]])
    assert model.labels_.tolist() == start
    middle = [[np.nextafter(0.1, -1)], [0.1], [np.nextafter(0.1, 1)]]  # where rounding decides, nothing does
    assert model.predict(middle).tolist() == [0, 0, 0]


def test_rows_of_zeros_have_no_direction_and_are_accepted():
    X = np.r_[apart(), np.zeros((2, 3))]
    for form in (np.asarray, sparse.csr_array):
        model = KernelKMeans(3, kernel="cosine", random_state=0).fit(form(X))
        assert np.isfinite(model.transform(form(X))).all()
        np.testing.assert_array_equal(model.predict(form(X)), model.labels_)


def test_dense_and_sparse_rows_can_take_turns():
    X = blobs(300)
    for first, then in ((np.asarray, sparse.csr_array), (sparse.csr_array, np.asarray)):
        for kernel in NAMES:
            model = KernelKMeans(3, kernel=kernel, random_state=0).fit(first(X))
            np.testing.assert_array_equal(model.predict(then(X)), model.labels_)


@pytest.mark.filterwarnings("ignore:only .* clusters have rows")
@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.data())
def test_whatever_the_table_what_comes_out_is_finite_and_belongs_together(data):
    n, d = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 3))
    k = data.draw(st.integers(1, n))
    pool = np.array(data.draw(st.lists(st.integers(-800, 800), min_size=d * n, max_size=d * n))).reshape(n, d)
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    dtype = data.draw(st.sampled_from([np.float64, np.float32, np.int16, np.bool_]))
    kernel = data.draw(st.sampled_from(NAMES))
    wide = kernel not in ("poly",) and dtype in (np.float64, np.float32)
    size = 10.0 ** data.draw(st.integers(-30, 30)) if wide else 1.0
    X = (pool[rows] * size).astype(dtype)
    w = data.draw(st.sampled_from([None, some_weights(n), 10.0 ** np.linspace(-12, 12, n)]))
    approximation = data.draw(st.sampled_from(["exact", "nystrom"]))
    init = data.draw(st.sampled_from(["k-means++", "forgy", "random_partition", "farthest"]))
    model = KernelKMeans(k, kernel=kernel, approximation=approximation, init=init, random_state=0)
    model.fit(X, sample_weight=w)
    assert np.isfinite(model.inertia_)
    assert np.isfinite(model.history_).all()
    assert np.isfinite(model.transform(X)).all()
    assert set(model.labels_) <= set(range(k))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    eps = np.finfo(np.float32 if X.dtype == np.float32 else np.float64).eps
    weight = n if w is None else w.sum()
    size = np.abs(gram(kernel, X - X.mean(axis=0, dtype=np.float64))).max() if kernel == "linear" else 1.0
    size = np.abs(gram(kernel, X)).max() if kernel == "poly" else size
    assert (np.diff(model.history_) <= 100 * eps * weight * size).all()


# Errors


def test_an_invalid_kernel_matrix_is_rejected():
    K = gram("rbf", blobs(600))
    with pytest.raises(InputError, match=r"a square kernel matrix X .*; its shape is \(600, 599\)"):
        KernelKMeans(2, kernel="precomputed").fit(K[:, :-1])
    K[580, 3] += 0.25
    with pytest.raises(
        InputError, match=r"symmetric X: X\[580, 3\] = .* differ by 0.25, the largest difference; use \(X \+ X.T\)"
    ):
        KernelKMeans(2, kernel="precomputed").fit(K)
    with pytest.raises(InputError, match="sparse"):
        KernelKMeans(2, kernel="precomputed").fit(sparse.csr_array(np.eye(9)))
    K[580, 3] = K[3, 580] = np.nan
    with pytest.raises(InputError, match="contains NaN"):
        KernelKMeans(2, kernel="precomputed").fit(K)


def test_distances_of_new_rows_need_their_own_products():
    X, new = blobs(100), blobs(10, seed=1)
    model = KernelKMeans(2, kernel="precomputed", random_state=0).fit(gram("linear", X))
    for verb in (model.transform, model.score):
        with pytest.raises(InputError, match=r"distances need k\(x, x\) of every row, .* or use predict"):
            verb(new @ X.T)
    assert len(model.predict(new @ X.T)) == 10


def test_a_kernel_that_returns_nan_or_infinity_is_rejected():
    X = blobs(50)
    for approximation in ("exact", "nystrom"):
        for kernel in (lambda X, Y: np.full((len(X), len(Y)), np.nan), lambda X, Y: np.full((len(X), len(Y)), np.inf)):
            with pytest.raises(InputError, match="the kernel returns NaN or infinity for rows of X"):
                KernelKMeans(2, kernel=kernel, approximation=approximation).fit(X)
    with pytest.raises(InputError, match="the kernel returns NaN or infinity"):
        KernelKMeans(2, kernel="poly", degree=9).fit((1e20 * X).astype(np.float32))
    with pytest.raises(InputError, match="overflows: lower gamma, or scale the columns"):
        KernelKMeans(2, gamma=1.0).fit((1e30 * X).astype(np.float32))


def test_a_kernel_of_the_wrong_shape_is_rejected():
    with pytest.raises(ParameterError, match=r"kernel must return an array of shape \(50, 50\).*; got \(50,\)"):
        KernelKMeans(2, kernel=lambda X, Y: (X * Y).sum(axis=1), approximation="exact").fit(blobs(50)[:50])


def test_a_kernel_of_ones_own_is_given_its_arguments():
    made = UserKernel(lambda X, Y, scale: scale * X @ Y.T, {"scale": 3.0})
    np.testing.assert_allclose(made.block(np.eye(2), np.eye(2)), 3 * np.eye(2))
    model = KernelKMeans(2, kernel=made.function, kernel_params={"scale": 3.0}, random_state=0).fit(apart(2))
    plain = KernelKMeans(2, kernel="linear", random_state=0).fit(apart(2))
    assert model.inertia_ == pytest.approx(3 * plain.inertia_)


def test_dask_rows_are_rejected_with_a_remedy():
    da = pytest.importorskip("dask.array")
    with pytest.raises(InputError, match=r"X is a Dask array, but KernelKMeans .* pass X.compute\(\)"):
        KernelKMeans(2).fit(da.from_array(blobs(100), chunks=(50, -1)))


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("n_clusters", 0, "n_clusters must be a whole number of at least 1; got 0"),
        ("n_clusters", 181, "n_clusters=181: use n_clusters <= 180"),
        ("kernel", "gaussian", "kernel must be 'linear' or 'rbf' or"),
        ("gamma", 0, "gamma must be None, 'scale', 'auto' or a finite number above 0; got 0"),
        ("gamma", "wide", "gamma must be 'scale' or 'auto'; got 'wide'"),
        ("degree", 0, "degree must be a whole number of at least 1; got 0"),
        ("coef0", "one", "coef0 must be a number; got 'one'"),
        ("kernel_params", {"a": 1}, "kernel_params requires a callable kernel"),
        ("approximation", "best", "approximation must be 'auto' or 'exact' or 'nystrom'; got 'best'"),
        ("n_landmarks", 1, "n_landmarks must be a whole number of at least 2; got 1"),
        ("init", "best", "init must be one of 'k-means"),
        ("init", np.zeros((2, 3)), r"a label of type int for each of the 180 rows; got an array of float64 of shape"),
        ("init", np.zeros(180, int), r"in each cluster from 0 to 1; it has \[0\]"),
        ("n_init", 0, "n_init must be 'auto' or a whole number"),
        ("max_iter", 0, "max_iter must be a whole number of at least 1; got 0"),
        ("tol", -1.0, "tol must be a finite number of at least 0"),
        ("engine", "gpu", "engine must be 'auto'"),
        ("random_state", "luck", "random_state must be None"),
        ("callback", 3, "callback must be None or a function"),
    ],
)
def test_invalid_options_are_rejected_with_the_valid_values(option, value, words):
    with pytest.raises(ValueError, match=words):
        KernelKMeans(**{"n_clusters": 2, option: value}).fit(apart())


def test_a_precomputed_kernel_has_no_landmarks():
    with pytest.raises(ParameterError, match="kernel='precomputed' has none: use approximation='exact'"):
        KernelKMeans(2, kernel="precomputed", approximation="nystrom").fit(np.eye(9))


def test_a_power_of_a_large_degree_is_not_a_loop():
    values = np.array([-0.5, 0.5, 1.0])
    np.testing.assert_allclose(Polynomial(1.0, 65, 0.0)._from_products(values.copy()), values**65)
    for degree in (10**30, 10**400):
        np.testing.assert_array_equal(Polynomial(1.0, degree, 0.0)._from_products(values.copy()), [0.0, 0.0, 1.0])
    with pytest.raises(InputError, match="the kernel returns NaN or infinity"):
        KernelKMeans(2, kernel="poly", gamma=2.0, degree=10**30).fit(blobs(50))
