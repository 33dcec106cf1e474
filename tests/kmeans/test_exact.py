"""Exact K-means: one column always, several columns for a few rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from coterie.errors import InputError, ParameterError
from coterie.kernels.cpu import kmeans_1d as compiled
from coterie.kernels.plain import kmeans_1d as plain
from coterie.kmeans import exact_kmeans
from reference.shared_data import published

KERNELS = pytest.mark.parametrize("kernels", [plain, compiled], ids=["plain", "compiled"])
SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def cost(X, labels, weight):
    """Cost of a partition; each mean is computed relative to a row, so that nothing cancels."""
    total = 0.0
    for j in np.unique(labels):
        rows, w = X[labels == j] - X[labels == j][0], weight[labels == j]
        total += (w[:, None] * (rows - np.average(rows, axis=0, weights=w)) ** 2).sum()
    return float(total)


def runs(m, starts):
    """Labels of runs that begin at `starts`."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=m))


def best_runs(values, weight, k):
    """Minimum cost of all partitions of the sorted values into `k` runs."""
    every = itertools.combinations(range(1, len(values)), k - 1)
    return min(cost(values[:, None], runs(len(values), (0, *inner)), weight) for inner in every)


def best_partition(X, weight, k):
    """Minimum cost of all partitions into at most `k` clusters, whatever their shape."""
    X = X - np.average(X, axis=0, weights=weight)
    labels = np.array([(0, *others) for others in itertools.product(range(k), repeat=len(X) - 1)])
    saved = np.zeros(len(labels))
    for j in range(k):
        w = (labels == j) * weight
        saved += ((w @ X) ** 2).sum(axis=1) / np.maximum(w.sum(axis=1), 1e-300)
    return float(weight @ (X**2).sum(axis=1) - saved.max())


def column(kind, m, rng):
    values = {
        "normal": rng.normal(size=m),
        "far from the origin": rng.normal(size=m) + 1e9,
        "with outliers on both sides": np.r_[rng.normal(size=m - 2), -1e9, 1e9],
        "at three scales": np.r_[rng.normal(size=m // 2) * 1e-4, 1e5 + rng.normal(size=m - m // 2), -1e8],
        "evenly spaced": rng.permutation(m).astype(float),
        "with gaps": rng.normal(size=m) + 10.0 * rng.integers(4, size=m),
    }[kind]
    return np.unique(values)


COLUMNS = pytest.mark.parametrize(
    "kind",
    [
        "normal", "far from the origin", "with outliers on both sides", "at three scales", "evenly spaced",
        "with gaps",
    ],
)  # fmt: skip


# the kernels


@KERNELS
@COLUMNS
@pytest.mark.parametrize("weighted", [False, True])
def test_no_other_runs_are_better(kernels, kind, weighted):
    rng = np.random.default_rng(0)
    values = column(kind, 9, rng)
    weight = rng.exponential(size=len(values)) if weighted else np.ones(len(values))
    for k in range(1, len(values) + 1):
        starts = kernels.interval_starts(values, weight, k)
        assert starts[0] == 0
        assert len(starts) == k
        assert (np.diff(starts) > 0).all()
        found = cost(values[:, None], runs(len(values), starts), weight)
        assert found == pytest.approx(best_runs(values, weight, k), rel=1e-11)


@COLUMNS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m, k", [(300, 2), (300, 7), (400, 40), (150, 149), (1500, 5)])
def test_the_compiled_kernel_finds_what_the_plain_one_finds(kind, weighted, m, k):
    rng = np.random.default_rng(m)
    values = column(kind, m, rng)
    weight = rng.exponential(size=len(values)) if weighted else np.ones(len(values))
    known, found, in_halves = (
        cost(values[:, None], runs(len(values), starts), weight)
        for starts in (
            plain.interval_starts(values, weight, k),
            compiled.interval_starts(values, weight, k),
            compiled.interval_starts(values, weight, k, max_choices=2 * m),
        )
    )
    assert found == pytest.approx(known, rel=1e-10)
    assert in_halves == pytest.approx(known, rel=1e-10)


def test_many_values_are_cut_where_smooth_quantisation_says():
    """Of evenly spaced values the best runs are of equal length, to one value."""
    values = np.arange(100_000.0)
    lengths = np.diff(compiled.interval_starts(values, np.ones(len(values)), 7), append=len(values))
    assert set(lengths) <= {14285, 14286}


def test_runs_that_weigh_nothing_beside_the_others_do_no_harm():
    rng = np.random.default_rng(5)
    values = np.sort(rng.normal(size=200))
    weight = np.where(rng.random(200) < 0.5, 1e-40, 1.0)
    starts = compiled.interval_starts(values, weight, 6)
    known = cost(values[:, None], runs(200, plain.interval_starts(values, weight, 6)), weight)
    assert cost(values[:, None], runs(200, starts), weight) == pytest.approx(known, rel=1e-10)


# one column, as the estimator gives it


def check(model, X, weight=None):
    """Properties of every fitted model, and of an exact one."""
    w = np.ones(len(X)) if weight is None else np.asarray(weight)
    squares = (X.astype(np.float64)[:, None, :] - model.cluster_centers_.astype(np.float64)) ** 2
    squares = squares.sum(axis=2)
    np.testing.assert_array_equal(model.labels_, squares.argmin(axis=1))
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.labels_.dtype == np.int32
    assert model.inertia_ == pytest.approx(float(w @ squares.min(axis=1)), rel=1e-9, abs=1e-300)
    assert model.history_[-1] == model.inertia_
    assert len(model.history_) == model.n_iter_ + 1
    assert (np.diff(model.history_) <= 1e-9 * model.history_[0]).all()
    assert model.converged_
    assert model.cluster_centers_.dtype == (np.float32 if X.dtype == np.float32 else np.float64)


def test_the_published_optimum_of_fourteen_values():
    value = published("ckmeans.14")["value"]
    X = np.array(value["x"])[:, None]
    model = KMeans(value["k"]).fit(X)
    check(model, X)
    np.testing.assert_allclose(model.cluster_centers_[:, 0], value["centers"], rtol=1e-8)
    np.testing.assert_array_equal(model.labels_ + 1, value["cluster"])
    assert model.inertia_ == pytest.approx(sum(value["withinss"]), rel=1e-8)


@SINGLE
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_one_column_is_optimal_without_being_asked_to(dtype, weighted, shift):
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(9, 1)) * (1000 if dtype == np.float32 else 1) + shift).astype(dtype)
    X = np.r_[X, X[:3]]  # some rows twice
    weight = rng.random(12) if weighted else None
    values, which = np.unique(X, return_inverse=True)
    total = np.bincount(which.ravel(), weight)
    for k in range(1, len(values) + 1):
        model = KMeans(k).fit(X, sample_weight=weight)
        check(model, X, weight)
        assert (np.diff(model.cluster_centers_[:, 0]) > 0).all()
        known = best_runs(values.astype(np.float64), total.astype(np.float64), k)
        off = 0.0 if dtype == np.float64 else (np.finfo(dtype).eps * np.abs(X).max()) ** 2 * total.sum()
        assert model.inertia_ == pytest.approx(known, rel=1e-6, abs=off)
        assert model.inertia_ >= known * (1 - 1e-9)


@pytest.mark.parametrize("n", [200, 30_000])
def test_restarts_find_nothing_better(n):
    X = np.random.default_rng(n).normal(size=(n, 1)) ** 3
    model = KMeans(9).fit(X)
    check(model, X)
    restarts = KMeans(9, algorithm="lloyd", init="forgy", n_init=20, random_state=0).fit(X)
    assert model.inertia_ <= restarts.inertia_ * (1 + 1e-12)


@pytest.mark.parametrize("n", [300, 20_000])
def test_the_order_of_the_rows_changes_nothing(n):
    rng = np.random.default_rng(1)
    X, order = rng.normal(size=(n, 1)), rng.permutation(n)
    one, other = KMeans(6).fit(X), KMeans(6).fit(X[order])
    np.testing.assert_allclose(other.cluster_centers_, one.cluster_centers_, rtol=1e-12)
    np.testing.assert_array_equal(other.labels_, one.labels_[order])


def test_weight_two_is_the_value_twice_and_weight_zero_none():
    rng = np.random.default_rng(2)
    X, times = rng.normal(size=(300, 1)), rng.integers(0, 4, size=300)
    weighted = KMeans(5).fit(X, sample_weight=times)
    repeated = KMeans(5).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-12)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)


def test_values_that_tie_give_one_of_the_best():
    X = np.array([[0.0], [1.0], [2.0]])
    model = KMeans(2).fit(X)
    check(model, X)
    assert model.inertia_ == 0.5


@pytest.mark.parametrize("d", [1, 3])
def test_fewer_distinct_rows_than_clusters_leave_clusters_empty_with_a_warning(d):
    X = np.repeat([[0.0], [1.0], [9.0]], 10, axis=0) * np.ones(d)
    with pytest.warns(ConvergenceWarning, match="only 3 of 5 clusters have rows: X has too few distinct rows"):
        model = KMeans(5, algorithm="exact").fit(X)
    assert model.inertia_ == 0
    np.testing.assert_array_equal(model.cluster_centers_[model.labels_], X)


@pytest.mark.parametrize(
    "options", [{"init": np.arange(4.0)[:, None]}, {"init": lambda X, k, random_state: X[:k]}, {"algorithm": "lloyd"}]
)
def test_initial_centers_or_algorithm_lloyd_run_the_iterations(options):
    seen = []
    X = np.random.default_rng(0).normal(size=(100, 1))
    KMeans(4, n_init=1, random_state=0, callback=seen.append, **options).fit(X)
    assert len(seen) > 2


def test_sparse_columns_are_exact_only_on_request():
    X = np.random.default_rng(0).normal(size=(300, 1)) ** 3
    rows, seen = sparse.csr_array(X), []
    KMeans(7, init="forgy", n_init=1, random_state=0, callback=seen.append).fit(rows)
    assert len(seen) > 2
    asked = KMeans(7, algorithm="exact").fit(rows)
    assert asked.inertia_ == pytest.approx(KMeans(7).fit(X).inertia_, rel=1e-12)


def test_lazy_columns_are_not_pulled_into_memory_for_an_exact_solution():
    X = np.random.default_rng(0).normal(size=(300, 1)) ** 3
    rows, seen = pytest.importorskip("dask.array").from_array(X, chunks=(100, 1)), []
    KMeans(7, init="forgy", n_init=1, random_state=0, callback=seen.append).fit(rows)
    assert len(seen) > 2
    with pytest.raises(InputError, match=r"algorithm='exact' needs all rows in memory: pass X.compute\(\)"):
        KMeans(7, algorithm="exact").fit(rows)


few = settings(deadline=None, derandomize=True, max_examples=150)


@few
@given(data=st.data())
def test_columns_of_any_kind_are_optimal(data):
    pool = st.integers(-2000, 2000) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
    values = np.unique(data.draw(st.lists(pool, min_size=2, max_size=9)))
    values = values * 10.0 ** data.draw(st.integers(-100, 100)) + 0.0
    copies = data.draw(st.lists(st.integers(1, 3), min_size=len(values), max_size=len(values)))
    X = np.repeat(values, copies)[:, None]
    weight = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(X), max_size=len(X))))
    k = data.draw(st.integers(1, len(values)))
    order = np.array(data.draw(st.permutations(range(len(X)))))
    model = KMeans(k).fit(X[order], sample_weight=weight[order])
    check(model, X[order], weight[order])
    total = np.bincount(np.repeat(np.arange(len(values)), copies), weight)
    unit = np.abs(values).max() or 1.0
    known = best_runs(values / unit, total, k)
    assert model.inertia_ / unit / unit == pytest.approx(known, rel=1e-9, abs=1e-30)
    twin = cost(values[:, None] / unit, runs(len(values), compiled.interval_starts(values, total, k)), total)
    assert twin == pytest.approx(known, rel=1e-9, abs=1e-30)


# several columns


@SINGLE
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n, d, k", [(8, 2, 2), (8, 3, 3), (7, 2, 4), (9, 2, 2), (6, 2, 1), (6, 2, 6)])
def test_no_other_partition_of_a_few_rows_is_better(n, d, k, weighted, dtype):
    for seed in range(3):
        rng = np.random.default_rng([seed, n, k])
        X = rng.normal(size=(n, d)).astype(dtype)
        weight = rng.exponential(size=n) if weighted else None
        model = KMeans(k, algorithm="exact", random_state=0).fit(X, sample_weight=weight)
        check(model, X, weight)
        wide = np.ones(n) if weight is None else weight
        known = best_partition(X.astype(np.float64), wide, k)
        assert model.inertia_ == pytest.approx(known, rel=1e-6, abs=1e-9)


def test_branch_and_bound_improves_on_a_bad_start():
    rng = np.random.default_rng(4)
    X, weight = rng.normal(size=(9, 2)), rng.exponential(size=9)
    for start in (np.arange(9) % 3, np.repeat([0, 1, 2], 3), np.zeros(9, int)):
        labels = exact_kmeans.branch_and_bound(X, weight, 3, start)
        assert cost(X, labels, weight) == pytest.approx(best_partition(X, weight, 3), rel=1e-9)


@pytest.mark.parametrize("n, d, k", [(40, 2, 4), (30, 5, 3), (90, 3, 3)])
def test_no_restart_gets_below_the_optimum(n, d, k):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d)) + 3.0 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    model = KMeans(k, algorithm="exact", random_state=0).fit(X)
    check(model, X)
    assert model.inertia_ <= KMeans(k, n_init=100, random_state=1).fit(X).inertia_ * (1 + 1e-9)


def test_far_from_the_origin_the_optimum_is_the_same():
    X = np.random.default_rng(6).normal(size=(20, 2)).round(3)
    near, far = (KMeans(4, algorithm="exact", random_state=0).fit(rows) for rows in (X, X + 2.0**20))
    np.testing.assert_allclose(far.inertia_, near.inertia_, rtol=1e-6)


def test_equal_rows_count_as_one_of_their_weight():
    X = np.random.default_rng(7).normal(size=(12, 2))
    times = np.arange(12) % 4 + 1
    many = KMeans(3, algorithm="exact", random_state=0).fit(np.repeat(X, 50 * times, axis=0))
    few_rows = KMeans(3, algorithm="exact", random_state=0).fit(X, sample_weight=50 * times)
    assert many.inertia_ == pytest.approx(few_rows.inertia_, rel=1e-9)
    np.testing.assert_array_equal(
        np.unique(many.cluster_centers_.round(9)), np.unique(few_rows.cluster_centers_.round(9))
    )


@pytest.mark.parametrize("n, k", [(300, 12), (200_000, 5)])
def test_a_problem_that_takes_too_long_is_rejected_with_the_estimate(n, k, monkeypatch):
    monkeypatch.setattr(exact_kmeans, "LIMIT", 1e7)
    X = np.random.default_rng(0).normal(size=(n, 4))
    message = rf"would take about \de\+\d+ steps for n={n} distinct rows and k={k} .*search='thorough'"
    with pytest.raises(ParameterError, match=message):
        KMeans(k, algorithm="exact", random_state=0).fit(X)


def test_a_memory_mapped_column_is_solved_like_one_in_memory(tmp_path):
    X = np.random.default_rng(3).normal(size=(50, 1))[::-1]
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=X.dtype, shape=X.shape)
    mapped[:] = X
    options = {"n_clusters": 4, "init": "random_partition", "max_iter": 1, "random_state": 0}
    expected, actual = KMeans(**options).fit(X), KMeans(**options).fit(mapped)
    np.testing.assert_array_equal(actual.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(actual.labels_, expected.labels_)


@pytest.mark.parametrize("n, d, k", [(20_000, 3, 2), (20_000, 8, 5), (5000, 3, 3)])
def test_many_rows_are_rejected_without_work_on_all_of_them(n, d, k, monkeypatch):
    sizes = []

    def recorded(X, *args):
        sizes.append(len(X))
        return interleaved(X, *args)

    interleaved = exact_kmeans.interleaved
    monkeypatch.setattr(exact_kmeans, "interleaved", recorded)
    X = np.random.default_rng(0).normal(size=(n, d))
    with pytest.raises(ParameterError, match=rf"would take about \de\+\d+ steps for n={n} distinct rows"):
        KMeans(k, algorithm="exact", random_state=0).fit(X)
    assert max(sizes, default=0) <= exact_kmeans.TRIAL


def test_many_rows_in_clear_clusters_are_solved():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=exact_kmeans.MANY + 100)
    X = rng.normal(size=(len(labels), 2)) + 1000.0 * labels[:, None]
    exact_fit = KMeans(3, algorithm="exact", random_state=0).fit(X)
    assert exact_fit.inertia_ == pytest.approx(cost(X, labels, np.ones(len(X))), rel=1e-9)


def test_the_estimate_counts_every_row_that_is_left():
    easy = np.full(30, 10.0)
    assert exact_kmeans.expected(easy, 1030) == pytest.approx(10.0 * 1030)
    assert np.isfinite(exact_kmeans.expected(4.0 ** np.arange(30), 20_000))
