"""Spherical K-means."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans, SphericalKMeans
from coterie.core import online
from coterie.core.protocols import Chunk
from coterie.errors import InputError, ParameterError
from coterie.kmeans.spherical_kmeans import Spherical, unit_rows
from many_parts import many_parts, weights_of_many_digits

SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
# NumPy kernels; compiled kernels; compiled kernels with bounds
SIZES = pytest.mark.parametrize("n, d, k", [(90, 3, 4), (4000, 8, 5), (3000, 30, 20)], ids=["small", "large", "bounds"])


def cones(n, d, k, seed=0, width=0.5):
    """`n` rows of very different lengths in `k` overlapping cones around the origin."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(k, d))[rng.integers(k, size=n)]
    return (middle + width * rng.normal(size=(n, d))) * rng.lognormal(sigma=2.0, size=(n, 1))


def apart():
    """Three well separated cones of 30 rows."""
    rng = np.random.default_rng(1)
    return (np.repeat(np.eye(3), 30, axis=0) + 0.05 * rng.normal(size=(90, 3))) * rng.lognormal(size=(90, 1))


def cosines(X, centers):
    X, centers = np.asarray(X, np.float64), np.asarray(centers, np.float64)
    return X @ centers.T / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(centers, axis=1)


def rounding(dtype):
    return 1e-9 if dtype == np.float64 else 1e-5


# what the attributes say


@SIZES
@SINGLE
@FORMS
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_attributes_belong_together(n, d, k, dtype, form, weighted):
    X = cones(n, d, k).astype(dtype)
    w = np.random.default_rng(2).random(n) if weighted else None
    model = SphericalKMeans(k, init=X[:k]).fit(form(X), sample_weight=w)
    cosine, eps = cosines(X, model.cluster_centers_), rounding(dtype)
    assert model.cluster_centers_.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1, rtol=eps)
    np.testing.assert_array_equal(model.labels_, model.predict(form(X)))
    np.testing.assert_allclose(cosine[np.arange(n), model.labels_], cosine.max(axis=1), atol=eps)
    weight = np.ones(n) if w is None else w
    assert model.inertia_ == pytest.approx(weight @ (1 - cosine.max(axis=1)), rel=10 * eps)
    assert model.score(form(X), sample_weight=w) == pytest.approx(-model.inertia_, rel=eps)
    found = model.transform(form(X))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, 1 - cosine, atol=eps)
    assert model.history_[-1] == model.inertia_
    assert len(model.history_) == model.n_iter_ + 1 > 2
    assert (np.diff(model.history_) <= eps * model.history_[0]).all()


@SIZES
def test_centers_are_the_directions_of_the_sums_of_their_rows(n, d, k):
    X = cones(n, d, k)
    w = np.random.default_rng(2).random(n)
    model = SphericalKMeans(k, init=X[:k], tol=0, max_iter=1000).fit(X, sample_weight=w)
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    sums = np.stack([w[model.labels_ == j] @ unit[model.labels_ == j] for j in range(k)])
    np.testing.assert_allclose(model.cluster_centers_, sums / np.linalg.norm(sums, axis=1)[:, None], atol=1e-12)


# laws


@FORMS
def test_it_is_kmeans_on_rows_of_unit_length_up_to_scale(form):
    X = apart()
    spherical = SphericalKMeans(3, init=X[[0, 30, 60]]).fit(form(X))
    plain = KMeans(3, init=unit_rows(X[[0, 30, 60]])).fit(unit_rows(X))
    np.testing.assert_array_equal(spherical.labels_, plain.labels_)
    np.testing.assert_allclose(spherical.cluster_centers_, unit_rows(plain.cluster_centers_), atol=1e-12)
    tight = np.linalg.norm(plain.cluster_centers_, axis=1)[plain.labels_]  # how much shorter a mean is than its rows
    assert 2 * spherical.inertia_ == pytest.approx(plain.inertia_ + ((1 - tight) ** 2).sum(), rel=1e-9)


@SINGLE
@FORMS
def test_the_lengths_of_the_rows_do_not_matter(dtype, form):
    X = cones(500, 5, 4)
    stretched = X * 2.0 ** np.random.default_rng(3).integers(-40, 40, size=(500, 1))
    start = X[:4]
    model = SphericalKMeans(4, init=start).fit(form(X.astype(dtype)))
    other = SphericalKMeans(4, init=1e3 * start).fit(form(stretched.astype(dtype)))
    np.testing.assert_array_equal(model.labels_, other.labels_)
    np.testing.assert_allclose(model.cluster_centers_, other.cluster_centers_, atol=rounding(dtype))


def test_weight_two_is_the_row_twice():
    X = cones(400, 5, 4)
    heavy = SphericalKMeans(4, init="farthest").fit(X, sample_weight=np.repeat([1.0, 2.0], 200))
    twice = SphericalKMeans(4, init="farthest").fit(np.r_[X, X[200:]])
    np.testing.assert_allclose(heavy.cluster_centers_, twice.cluster_centers_, atol=1e-12)
    assert heavy.inertia_ == pytest.approx(twice.inertia_, rel=1e-12)


def test_rows_of_weight_zero_count_for_nothing():
    X = cones(400, 5, 4)
    ignored = SphericalKMeans(4, init="farthest").fit(X, sample_weight=np.repeat([1.0, 0.0], 200))
    absent = SphericalKMeans(4, init="farthest").fit(X[:200])
    np.testing.assert_allclose(ignored.cluster_centers_, absent.cluster_centers_, atol=1e-12)


@FORMS
@SINGLE
def test_threads_change_nothing(form, dtype, monkeypatch):
    X = form(cones(2400, 30, 20).astype(dtype))
    many_parts(monkeypatch, X)
    w = weights_of_many_digits(X)
    alone = SphericalKMeans(20, random_state=0, n_jobs=1).fit(X, sample_weight=w)
    together = SphericalKMeans(20, random_state=0, n_jobs=3).fit(X, sample_weight=w)
    np.testing.assert_array_equal(together.cluster_centers_, alone.cluster_centers_)
    np.testing.assert_array_equal(together.labels_, alone.labels_)
    assert together.inertia_ == alone.inertia_


@SIZES
@SINGLE
def test_dense_and_sparse_rows_give_the_same(n, d, k, dtype):
    X = cones(n, d, k)
    X[np.random.default_rng(4).random(X.shape) < 0.5] = 0
    X = X[X.any(axis=1)].astype(dtype)
    dense = SphericalKMeans(k, init=X[:k]).fit(X)
    thin = SphericalKMeans(k, init=X[:k]).fit(sparse.csr_array(X))
    assert (dense.labels_ == thin.labels_).mean() > 0.999
    assert thin.inertia_ == pytest.approx(dense.inertia_, rel=1e-9 if dtype == np.float64 else 1e-4)


def test_sparse_rows_are_neither_changed_nor_made_dense():
    X = sparse.random_array((3000, 100_000), density=8e-5, rng=np.random.default_rng(5), format="csr")
    X = X[np.diff(X.indptr) > 0]  # as dense rows 2.4 GB
    before = X.copy()
    model = SphericalKMeans(2, init="forgy", n_init=1, tol=1e6, random_state=0).fit(X)
    assert model.cluster_centers_.shape == (2, 100_000)
    np.testing.assert_array_equal(X.data, before.data)


def test_dask_rows_give_the_same_lazily():
    da = pytest.importorskip("dask.array")
    X = cones(600, 4, 3)
    lazy = da.from_array(X, chunks=(150, -1))
    model = SphericalKMeans(3, init=X[:3]).fit(lazy)
    plain = SphericalKMeans(3, init=X[:3]).fit(X)
    assert hasattr(model.labels_, "dask")
    np.testing.assert_array_equal(model.labels_.compute(), plain.labels_)
    np.testing.assert_array_equal(model.predict(lazy).compute(), plain.labels_)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, atol=1e-12)


def test_statistics_carried_to_new_centers_are_those_of_the_same_rows_about_them():
    X = unit_rows(cones(300, 4, 3))
    model, chunk = Spherical(3), Chunk(X, None, 0)
    state, stats = online.step(model, online.State(X[:3].copy()), chunk)
    labels = model.assign(X[:3], chunk)
    about = np.stack([(X[labels == j] - state.params[j]).sum(axis=0) for j in range(3)])
    np.testing.assert_allclose(model.carry(X[:3], state.params, stats).sum_dx, about, atol=1e-9)


# edges


def test_rows_that_cancel_out_leave_their_center_where_it_was():
    X = np.array([[1.0, 0.0], [-1.0, 0.0]])
    model = SphericalKMeans(1, init=[[0.0, 2.0]]).fit(X)
    assert model.cluster_centers_.tolist() == [[0.0, 1.0]]
    assert model.inertia_ == pytest.approx(2.0)


def test_fewer_directions_than_clusters_are_all_found_with_a_warning():
    X = np.outer(2.0 ** np.arange(9), [3.0, 4.0])
    with pytest.warns(ConvergenceWarning, match="only 1 of 2 clusters have rows: X has too few distinct directions"):
        model = SphericalKMeans(2, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(0, abs=1e-15)


@pytest.mark.filterwarnings("ignore:only .* of 3 clusters have rows")
@pytest.mark.parametrize("seed", range(5))
def test_a_fit_of_parallel_rows_ends_though_their_last_bits_differ(seed):
    X = np.outer(np.arange(1.0, 100.0), [1.0, 3.0, 7.0])
    model = SphericalKMeans(3, random_state=seed).fit(X)
    assert model.converged_
    assert model.inertia_ == pytest.approx(0, abs=1e-12)


@SINGLE
@FORMS
def test_very_long_and_very_short_rows_have_directions(dtype, form):
    size = 1e30 if dtype == np.float32 else 1e120
    X = np.array([[3.0, 4.0], [3 * size, 4 * size], [-3 / size, -4 / size], [-3.0, -4.0]], dtype)
    model = SphericalKMeans(2, random_state=0).fit(form(X))
    assert model.labels_.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    np.testing.assert_allclose(np.abs(model.cluster_centers_), [[0.6, 0.8]] * 2, rtol=1e-6)


@pytest.mark.parametrize("init", ["k-means++", "forgy", "random", "random_partition", "farthest"])
def test_every_start_finds_cones_that_are_far_apart(init):
    model = SphericalKMeans(3, init=init, n_init=10, random_state=0).fit(apart())
    assert len(np.unique(model.labels_.reshape(3, 30), axis=1).T) == 1
    assert len(set(model.labels_)) == 3


# Errors


@FORMS
@pytest.mark.parametrize("verb", ["fit", "predict", "transform", "score"])
def test_rows_of_zeros_are_rejected_with_their_number_and_the_remedy(form, verb):
    X = apart()
    model = SphericalKMeans(2, random_state=0).fit(X)
    X[[3, 7]] = 0
    with pytest.raises(InputError, match="2 rows of X are zero in every column and have no direction: remove them"):
        getattr(model, verb)(form(X))


def test_zeros_that_are_stored_are_zeros():
    X = sparse.csr_array(apart())
    X.data[:3] = 0
    with pytest.raises(InputError, match="1 rows of X are zero"):
        SphericalKMeans(2).fit(X)


def test_an_initial_center_of_zeros_is_rejected():
    for init in (np.zeros((2, 3)), lambda X, k, random_state: np.zeros((k, 3))):
        with pytest.raises(ParameterError, match="init has a center that is zero in every column"):
            SphericalKMeans(2, init=init).fit(apart())


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("n_clusters", 0, "n_clusters must be a whole number of at least 1; got 0"),
        ("n_clusters", 91, "n_clusters=91: use n_clusters <= 90"),
        ("init", "best", "init must be one of 'auto', 'k-means"),
        ("init", np.ones((3, 3)), r"init must be n_clusters=2 centers of 3 columns, shape \(2, 3\)"),
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
        SphericalKMeans(**{"n_clusters": 2, option: value}).fit(apart())


def test_random_clusters_whose_directions_cancel_start_at_a_row():
    """Two rows in one cluster, opposite to each other, have no mean direction; the user gave no center."""
    X = np.array([[1.0, 0.0], [-2.0, 0.0]])
    for seed in range(4):
        model = SphericalKMeans(1, init="random_partition", random_state=seed).fit(X)
        assert model.inertia_ == 2.0
        assert np.abs(model.cluster_centers_).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_unit_rows_do_not_depend_on_the_scale_of_a_row(form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 7))
    scaled = np.ldexp(X, rng.integers(-900, 900, size=(500, 1)))
    results = (unit_rows(form(rows)) for rows in (X, scaled))
    np.testing.assert_array_equal(*(result.toarray() if sparse.issparse(result) else result for result in results))
