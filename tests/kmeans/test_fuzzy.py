"""Fuzzy c-means: kernels against loops, limits of m, and reference results. General laws run over `zoo`."""

import pickle
from functools import partial

import naive
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import zoo
from coterie import FuzzyCMeans, KMeans
from coterie.core.protocols import Chunk
from coterie.errors import InputError, ParameterError
from coterie.kernels import cpu, plain
from coterie.kmeans.fuzzy_c_means import Fuzzy
from loop_over import loop_over
from many_parts import many_parts, weights_of_many_digits
from reference.shared_data import load, published

rng = np.random.default_rng(0)

ROWS = {
    "one row": rng.normal(size=(1, 3)),
    "one column": rng.normal(size=(200, 1)),
    "narrow": rng.normal(size=(97, 5)),
    "a vector and one": rng.normal(size=(48, 17)),
    "wide": rng.normal(size=(47, 131)),
    "several blocks": rng.normal(size=(1500, 7)),
    "far from the origin": rng.normal(size=(400, 6)) + 1e6,
    "huge": rng.normal(size=(300, 5)) * 1e25,
    "tiny": rng.normal(size=(300, 5)) * 1e-25,
    "an outlier": np.vstack([rng.normal(size=(300, 4)), np.full((1, 4), 1e12)]),
    "two tight groups far apart": np.repeat([[0.0, 0.0, 0.0], [1e3, 1e3, 1e3]], 150, axis=0)
    + rng.normal(size=(300, 3)) * 1e-3,
    "on centers": rng.integers(0, 3, size=(400, 2)).astype(float),
    "duplicates": np.repeat(rng.normal(size=(5, 4)), 60, axis=0),
    "constant": np.ones((100, 3)),
}
# Few, about a vector of, and many centers; the square, which has a path of its own, with the least and the most.
SHAPES = [(1, 2.0), (9, 1.1), (9, 8.0), (40, 2.0), (40, 1.1)]


def case(name, k, dtype):
    """Rows and centers: the first center a row, the others off the rows, unless it is about rows on centers."""
    X = np.ascontiguousarray(ROWS[name].astype(dtype))
    draw = np.random.default_rng(k)
    centers = X[draw.integers(len(X), size=k)].copy()
    if name not in ("on centers", "duplicates", "constant"):
        size = np.abs(X - X.mean(axis=0)).mean()
        centers[1:] += (size or 1.0) * draw.normal(size=centers[1:].shape)
    return X, np.ascontiguousarray(centers.astype(dtype))


def assert_sums(found, k, m, wanted, rtol):
    weight, sum_dx, cost = wanted
    scale = float(k) ** m
    np.testing.assert_allclose(found.weight / scale, weight, rtol=rtol, atol=rtol * weight.max())
    np.testing.assert_allclose(found.cost / scale * k, cost, rtol=rtol)
    reach = np.sqrt(cost) * np.sqrt(weight.max())  # no sum of differences is longer
    np.testing.assert_allclose(found.sum_dx / scale, sum_dx, rtol=rtol, atol=rtol * reach)


# the kernels


@loop_over("dtype", [np.float32, np.float64])
@loop_over("k, m", SHAPES)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
def test_sums_are_those_of_the_loops(ops, name, k, m, dtype):
    X, centers = case(name, k, dtype)
    for w in (None, rng.exponential(size=len(X)) * (rng.random(len(X)) > 0.2)):
        wanted = naive.fuzzy(X, np.ones(len(X)) if w is None else w, centers, m)
        assert_sums(ops.fuzzy(X, w, centers, m), k, m, wanted, 2e-5 if dtype == np.float32 else 1e-11)


@loop_over("dtype", [np.float32, np.float64])
@loop_over("m", [1 + 1e-12, 1.1, 2.0, 30.0, 1e9])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
def test_memberships_are_those_of_the_loops_and_add_up_to_one(ops, name, m, dtype):
    X, centers = case(name, 9, dtype)
    u = ops.memberships(X, centers, m)
    assert u.dtype == dtype
    np.testing.assert_allclose(u.sum(axis=1), 1, rtol=1e-6 if dtype == np.float32 else 1e-12)
    with np.errstate(over="ignore"):
        wanted = naive.memberships(X, centers, m)
    np.testing.assert_allclose(u, wanted, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-9)


@loop_over("dtype", [np.float32, np.float64])
@loop_over("m", [1 + 1e-15, 1.01, 17.0, 1e300])
@pytest.mark.parametrize("name", ROWS)
def test_extreme_exponents_give_what_the_numpy_twin_gives(name, m, dtype):
    X, centers = case(name, 9, dtype)
    found, wanted = cpu.fuzzy(X, None, centers, m), plain.fuzzy(X, None, centers, m)
    for a, b in zip(found, wanted, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
@pytest.mark.parametrize("m", [1.5, 2.0])
def test_a_row_near_a_center_but_not_on_it_is_not_on_it(m, ops, dtype):
    """Squares of such differences vanish in float32 beside the outlier that sets the scale."""
    near = 1e-20 if dtype == np.float32 else 1e-120
    X = np.array([[near, 0.0], [3 * near, 0.0], [1.0, 1.0]], dtype)
    centers = np.array([[0.0, 0.0], [2 * near, 0.0], [1.0, 1.5]], dtype)
    wanted = naive.fuzzy(X[:2] / near, np.ones(2), centers[:2] / near, m)
    found = ops.fuzzy(X[:2], None, centers, m)
    np.testing.assert_allclose(found.weight[:2] / 3.0**m, wanted[0], rtol=1e-5)
    np.testing.assert_allclose(found.sum_dx[:2] / 3.0**m / near, wanted[1], rtol=1e-5)


# rows on centers


@pytest.mark.parametrize("m", [1.01, 1.5, 2.0, 5.0, 1e6])
def test_a_row_on_a_center_belongs_to_it_alone_on_several_equally(m):
    centers = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [4.0, 0.0]])
    model = FuzzyCMeans(4, fuzzifier=m, init=centers, max_iter=1, callback=lambda progress: True).fit(centers)
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    wanted = [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(model.memberships(centers), wanted)
    assert model.objective_ == 0


def test_as_many_clusters_as_rows_cost_nothing():
    X = np.arange(10.0).reshape(5, 2)
    model = FuzzyCMeans(5, init="farthest").fit(X)
    assert model.objective_ == 0
    assert model.converged_
    assert sorted(model.labels_.tolist()) == list(range(5))


def test_fewer_distinct_rows_than_clusters_leave_centers_that_coincide():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    model = FuzzyCMeans(3, random_state=0).fit(X)
    assert len(np.unique(model.cluster_centers_, axis=0)) == 2
    np.testing.assert_allclose(model.memberships(X).sum(axis=1), 1)


def test_one_cluster_is_the_weighted_mean():
    w = rng.exponential(size=len(zoo.SMALL))
    for m in (1.2, 2.0, 7.0):
        model = FuzzyCMeans(1, fuzzifier=m).fit(zoo.SMALL, sample_weight=w)
        np.testing.assert_allclose(model.cluster_centers_[0], np.average(zoo.SMALL, axis=0, weights=w))
        np.testing.assert_array_equal(model.memberships(zoo.SMALL), 1)
        assert model.objective_ == pytest.approx(w @ ((zoo.SMALL - model.cluster_centers_) ** 2).sum(axis=1))
        assert model.partition_coefficient(zoo.SMALL, normalized=True) == 1
        assert model.partition_entropy(zoo.SMALL, normalized=True) == 0


# the limits of m


@pytest.mark.parametrize("X", [zoo.SMALL, zoo.LARGE[:, :10].copy()], ids=["small", "large"])
def test_m_towards_one_tends_to_k_means_from_the_same_start(X):
    start = X[:6].copy()
    hard = KMeans(6, init=start, tol=0).fit(X)
    softer, model = (FuzzyCMeans(6, fuzzifier=m, init=start, tol=t).fit(X) for m, t in ((1.2, 1e-3), (1 + 1e-7, 0)))
    assert np.abs(softer.cluster_centers_ - hard.cluster_centers_).max() > 1e-3
    np.testing.assert_allclose(model.cluster_centers_, hard.cluster_centers_, atol=1e-9)
    np.testing.assert_array_equal(model.labels_, hard.labels_)
    assert model.objective_ == pytest.approx(hard.inertia_, rel=1e-6)


def test_one_and_a_hundredth_gives_numbers():
    for X in (zoo.SINGLE[:2000, :6].copy(), zoo.LARGE[:2000, :6].copy()):
        model = FuzzyCMeans(8, fuzzifier=1.01, random_state=0, tol=1e-2).fit(X)
        assert np.isfinite(model.cluster_centers_).all()
        assert np.isfinite(model.memberships(X)).all()
        assert model.objective_ <= model.history_[0]


def test_a_center_far_from_all_rows_is_moved():
    start = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1e6, 1e6, 1e6]])
    model = FuzzyCMeans(3, fuzzifier=1.01, init=start, max_iter=1000).fit(zoo.SMALL)
    assert np.abs(model.cluster_centers_).max() < 1e3
    assert np.all(np.diff(model.history_) <= 1e-12 * model.history_[:-1])


def test_rows_that_spread_alike_in_all_directions_have_all_centers_at_their_mean_for_large_m():
    X = np.random.default_rng(1).normal(size=(2000, 6)) + 5
    w = np.random.default_rng(2).exponential(size=2000)
    for m in (5.0, 1e3, 1e12):
        model = FuzzyCMeans(4, fuzzifier=m, random_state=0, tol=1e-20, max_iter=2000).fit(X, sample_weight=w)
        if m > 100:
            np.testing.assert_allclose(model.memberships(X), 0.25, atol=0.01)
        assert np.ptp(model.cluster_centers_, axis=0).max() < 1e-3
        np.testing.assert_allclose(model.cluster_centers_[0], np.average(X, axis=0, weights=w), atol=1e-2)


# the estimator


def test_iris_to_six_digits():
    value, X = published("ppclust.fcm.iris")["value"], load("r/iris")
    model = FuzzyCMeans(3, fuzzifier=2, tol=1e-20, random_state=0).fit(X)
    order = np.argsort(-model.cluster_centers_[:, 0])
    assert model.objective_ == pytest.approx(value["objective"], abs=6e-6)
    np.testing.assert_allclose(model.cluster_centers_[order], value["centers"], atol=6e-7)
    u = model.memberships(X)[:, order]
    for row, wanted in value["memberships"].items():
        np.testing.assert_allclose(u[int(row) - 1], wanted, atol=6e-7)
    assert np.bincount(model.labels_)[order].tolist() == value["sizes"]
    assert model.partition_coefficient(X) == pytest.approx(value["partition_coefficient"], abs=6e-7)
    assert model.partition_coefficient(X, normalized=True) == pytest.approx(value["modified_pc"], abs=6e-7)
    assert model.partition_entropy(X) == pytest.approx(value["partition_entropy"], abs=6e-7)


@pytest.mark.parametrize("m", [1.5, 2.0, 3.0])
def test_scikit_fuzzy_ends_in_the_same_centers(m):
    reference = pytest.importorskip("skfuzzy")
    X, k = zoo.SMALL, 3
    start = X[[0, 400, 800]] + 0.01
    found = reference.cmeans(X.T, k, m, error=1e-12, maxiter=2000, init=naive.memberships(X, start, m).T)
    model = FuzzyCMeans(k, fuzzifier=m, init=start, tol=1e-24, max_iter=2000).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, found[0], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.memberships(X), found[1].T, atol=1e-6)
    assert model.objective_ == pytest.approx(found[4][-1], rel=1e-9)
    assert model.partition_coefficient(X) == pytest.approx(found[6], rel=1e-6)


@pytest.mark.parametrize("m", [1.4, 2.0, 4.0])
@pytest.mark.parametrize("X", [zoo.SMALL, zoo.LARGE[:, :6].copy()], ids=["small", "large"])
def test_the_objective_is_that_of_centers_and_memberships(X, m):
    w = np.random.default_rng(0).exponential(size=len(X))
    model = FuzzyCMeans(4, fuzzifier=m, random_state=0, tol=1e-3).fit(X, sample_weight=w)
    cost = (w[:, None] * model.memberships(X) ** m * model.transform(X) ** 2).sum()
    assert model.objective_ == pytest.approx(cost, rel=1e-9)
    assert model.score(X, sample_weight=w) == pytest.approx(-cost, rel=1e-9)
    assert model.history_[-1] == model.objective_
    assert len(model.history_) == model.n_iter_ + 1
    assert np.all(np.diff(model.history_) <= 1e-12 * model.history_[:-1])


def test_the_centers_are_a_fixed_point():
    model = FuzzyCMeans(4, fuzzifier=1.7, random_state=0, tol=1e-22, max_iter=5000).fit(zoo.SMALL)
    z = model.memberships(zoo.SMALL) ** 1.7
    np.testing.assert_allclose(z.T @ zoo.SMALL / z.sum(axis=0)[:, None], model.cluster_centers_, rtol=1e-6, atol=1e-6)


def test_labels_are_the_largest_memberships_and_what_predict_says():
    for X in (zoo.SMALL, zoo.LARGE, zoo.SINGLE):
        model = FuzzyCMeans(5, fuzzifier=1.3, random_state=0, tol=1e-2).fit(X)
        u = model.memberships(X)
        np.testing.assert_array_equal(model.labels_, model.predict(X))
        np.testing.assert_array_equal(u[np.arange(len(X)), model.labels_], u.max(axis=1))
        np.testing.assert_array_equal(model.predict_proba(X), u)


def test_float32_stays_float32_and_is_near_float64():
    double = FuzzyCMeans(3, fuzzifier=1.5, init="farthest", tol=1e-7).fit(zoo.SMALL + 100)
    single = FuzzyCMeans(3, fuzzifier=1.5, init="farthest", tol=1e-7).fit((zoo.SMALL + 100).astype(np.float32))
    assert single.cluster_centers_.dtype == np.float32
    assert single.memberships(zoo.SMALL.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.cluster_centers_, double.cluster_centers_, rtol=1e-4)
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-5)


@pytest.mark.parametrize("m", [1.5, 2.0])
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(m):
    X, w = zoo.SMALL, np.random.default_rng(0).integers(0, 3, size=len(zoo.SMALL))
    options = {"n_clusters": 3, "fuzzifier": m, "init": X[:3] + 0.5, "tol": 1e-20, "max_iter": 1000}
    weighted = FuzzyCMeans(**options).fit(X, sample_weight=w)
    repeated = FuzzyCMeans(**options).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-8, atol=1e-8)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-10)
    for name in ("partition_coefficient", "partition_entropy", "score"):
        found = getattr(weighted, name)(X, sample_weight=w)
        assert found == pytest.approx(getattr(weighted, name)(np.repeat(X, w, axis=0)), rel=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1.3, 2.0])
def test_any_number_of_threads_gives_the_same_bits(m, dtype, monkeypatch):
    X = np.random.default_rng(0).normal(size=(2100, 8)).astype(dtype)
    many_parts(monkeypatch, X)
    w = weights_of_many_digits(X)
    models = (FuzzyCMeans(5, fuzzifier=m, random_state=0, n_jobs=n, max_iter=8, tol=1.0) for n in (1, 5))
    fits = [model.fit(X, sample_weight=w) for model in models]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.cluster_centers_, fits[0].cluster_centers_)
        np.testing.assert_array_equal(other.history_, fits[0].history_)
        np.testing.assert_array_equal(other.labels_, fits[0].labels_)


def test_dask_arrays_give_what_arrays_give():
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(zoo.LARGE, chunks=(1500, -1))
    model = FuzzyCMeans(4, fuzzifier=1.3, init=zoo.LARGE[:4], tol=1e-2)
    here, there = clone(model).fit(zoo.LARGE), clone(model).fit(lazy)
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9)
    np.testing.assert_allclose(there.memberships(lazy).compute(), here.memberships(zoo.LARGE), rtol=1e-9)
    assert there.partition_entropy(lazy) == pytest.approx(here.partition_entropy(zoo.LARGE), rel=1e-9)


def test_sparse_rows_are_rejected_with_the_remedy():
    with pytest.raises(InputError, match=r"FuzzyCMeans needs dense rows \(X.toarray\(\)"):
        FuzzyCMeans(4).fit(zoo.COUNTS)


def test_crisp_memberships_have_the_largest_coefficient_and_no_entropy():
    tight = np.repeat([[0.0, 0.0], [50.0, 0.0]], 20, axis=0) + 1e-6 * rng.normal(size=(40, 2))
    model = FuzzyCMeans(2, random_state=0).fit(tight)
    assert model.partition_coefficient(tight) == pytest.approx(1, abs=1e-9)
    assert model.partition_entropy(tight) == pytest.approx(0, abs=1e-9)
    between = [[25.0, y] for y in (-1e9, 1e9)]
    assert model.partition_coefficient(between) == pytest.approx(0.5)
    assert model.partition_coefficient(between, normalized=True) == pytest.approx(0, abs=1e-6)
    assert model.partition_entropy(between) == pytest.approx(np.log(2))
    assert model.partition_entropy(between, normalized=True) == pytest.approx(1)


def test_coefficient_and_entropy_do_not_depend_on_how_the_rows_are_cut():
    model, X = Fuzzy(5, m=1.4), zoo.LARGE
    whole = model.membership_sums(X[:5], Chunk(X, None, 0))
    parts = map(partial(model.membership_sums, X[:5]), (Chunk(X[:17], None, 0), Chunk(X[17:], None, 1)))
    for a, b in zip(whole.leaves(), (next(parts) + next(parts)).leaves(), strict=True):
        assert a == pytest.approx(b, rel=1e-12)


@pytest.mark.parametrize("m", [1, 1.0, 0.5, -2, np.inf, np.nan, "2", None, True])
def test_a_fuzzifier_that_is_not_a_number_above_one_is_rejected(m):
    with pytest.raises(ParameterError, match="fuzzifier must be a finite number above 1"):
        FuzzyCMeans(2, fuzzifier=m).fit(zoo.SMALL)


def test_an_m_of_any_kind_of_number_is_taken():
    wanted = FuzzyCMeans(2, init="farthest").fit(zoo.SMALL).cluster_centers_
    for m in (2, np.float32(2), np.int64(2)):
        np.testing.assert_array_equal(
            FuzzyCMeans(2, fuzzifier=m, init="farthest").fit(zoo.SMALL).cluster_centers_, wanted
        )


@pytest.mark.parametrize("answer", ["memberships", "predict_proba", "partition_coefficient", "partition_entropy"])
def test_nothing_is_answered_before_a_fit(answer):
    with pytest.raises(NotFittedError):
        getattr(FuzzyCMeans(2), answer)(zoo.SMALL)


def test_a_pickled_model_answers_the_same():
    model = FuzzyCMeans(3, fuzzifier=1.5, random_state=0).fit(zoo.SMALL)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.memberships(zoo.SMALL), model.memberships(zoo.SMALL))
