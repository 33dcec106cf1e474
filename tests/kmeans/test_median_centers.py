"""Centers of K-medians: medians against sorting, geometric medians against an optimiser, kernels against NumPy."""

import numpy as np
import pytest
from scipy import optimize

from coterie import KMedians
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.kernels.cpu import medians as cpu
from coterie.kernels.plain import medians as plain
from coterie.kmeans import median_models as module
from coterie.kmeans.median_models import Manhattan
from kmeans.median_reference import TYPES, draws, lengths, weighted_median


def one_cluster(X, w=None, center=None, part_rows=None):
    """The medians of all rows, after one iteration."""
    model, source = Manhattan(1), MemorySource(X, w, chunk_rows=part_rows or len(X))
    centers = np.zeros((1, X.shape[1]), X.dtype) if center is None else np.asarray([center], X.dtype)
    stats, memos = Serial().scan(
        lambda chunk, memo: model.e_step(centers, chunk, memo), source, model.initial_memos(source)
    )
    return model.repair(model.m_step(centers, stats), stats, source, Serial(), memos)[0]


# medians

VALUES = {
    "one": [3.0],
    "two": [1.0, 2.0],
    "odd": [5.0, 1.0, 4.0],
    "even": [5.0, 1.0, 4.0, 2.0],
    "alike": [7.0] * 11,
    "two groups": [1.0] * 5 + [9.0] * 5,
    "ties": list(draws(1).integers(0, 4, size=101).astype(float)),
    "normal": list(draws(2).normal(size=1001)),
    "far from the origin": list(draws(3).normal(size=500) + 1e6),
    "of any size": list(np.ldexp(draws(4).choice([-1.0, 1.0], size=400), draws(5).integers(-120, 120, size=400))),
    "an outlier": [*draws(6).normal(size=50), 1e30],
    "about zero": [-0.0, 0.0, 0.0, -1e-30, 1e-30, 2.0],
    "neighbours": [1.0, float(np.nextafter(np.float32(1), np.float32(2))), 1.0, 1.5],
}


@TYPES
@pytest.mark.parametrize("part_rows", [7, 5000], ids=["counted", "sorted"])
@pytest.mark.parametrize("center", [0.0, 3.0, -1e8], ids=["", "near", "far"])
@pytest.mark.parametrize("name", VALUES)
def test_centers_are_medians(name, center, part_rows, dtype):
    X = np.array(VALUES[name], dtype)[:, None]
    found = one_cluster(X, center=[center], part_rows=part_rows)
    np.testing.assert_allclose(found, np.median(X.astype(np.float64), axis=0), rtol=np.finfo(dtype).eps)
    assert found.dtype == dtype


@TYPES
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("n, largest", [(16, 99), (17, 99), (300, 9)])
def test_sorted_and_counted_medians_are_the_same(n, largest, weighted, dtype, monkeypatch):
    """Also with ties, clusters without rows, and rows without weight."""
    X = draws(20).integers(0, largest, size=(n, 3)).astype(dtype) + draws(21).choice([0.0, 0.1], size=(n, 3))
    X, centers = X.astype(dtype), np.array([[1.0, 2, 3], [70, 60, 50], [1e6, 0, 0]], dtype)
    w = draws(22).integers(0, 3, size=n).astype(float) if weighted else None
    model, source = Manhattan(3), MemorySource(X, w)
    stats, memos = Serial().scan(
        lambda chunk, memo: model.e_step(centers, chunk, memo), source, model.initial_memos(source)
    )
    counted = module.medians(centers, stats, source, Serial(), memos)
    monkeypatch.setattr(module, "medians", None)
    chunk = source.parts()[0]()
    np.testing.assert_array_equal(module._sorted_medians(centers, chunk, memos[0])[0].values, counted)
    assert model.repair(centers, stats, source, Serial(), memos).shape == (3, 3)


@TYPES
@pytest.mark.parametrize("part_rows", [7, 5000])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", ""])
@pytest.mark.parametrize("name", VALUES)
def test_centers_are_weighted_medians(name, whole, part_rows, dtype):
    x = np.array(VALUES[name], dtype)
    w = draws(7).integers(0, 4, size=len(x)) + 0.0 if whole else draws(8).exponential(size=len(x))
    w[0] = 1.0
    found = one_cluster(x[:, None], w, part_rows=part_rows)[0]
    assert found == pytest.approx(weighted_median(x.astype(np.float64), w), rel=1e-6 if dtype == np.float32 else 1e-12)


def test_where_half_falls_between_two_values_the_median_is_their_mean_also_but_for_rounding():
    X = np.array([[1.0], [2.0], [4.0], [8.0]])
    assert one_cluster(X) == 3.0
    assert one_cluster(X, np.array([1.0, 2.0, 1.0, 1.0])) == 2.0
    assert one_cluster(X, np.array([0.1, 0.2, 0.1, 0.2])) == 3.0  # the sums of these are not alike in float64


@pytest.mark.parametrize("bins", [(16, 4), (4, 4)], ids=["", "few bins"])
def test_large_clusters_have_exact_medians_in_a_few_passes(bins, monkeypatch):
    monkeypatch.setattr(module, "CELLS", 1 << 16 if bins[0] == 16 else 0)
    passes = []
    X = np.concatenate([draws(9).normal(size=(20_001, 4)), draws(10).standard_cauchy(size=(20_001, 2))], axis=1)

    class Counting(Serial):
        def scan(self, step, source, memos):
            passes.append(step)
            return Serial().scan(step, source, memos)

    model, source = Manhattan(1), MemorySource(X)
    stats, memos = Serial().scan(
        lambda chunk, memo: model.e_step(X[:1], chunk, memo), source, model.initial_memos(source)
    )
    found = model.repair(X[:1], stats, source, Counting(), memos)
    np.testing.assert_array_equal(found[0], np.median(X, axis=0))
    assert len(passes) <= (8 if bins[0] == 16 else 16)
    passes.clear()
    stats, memos = Serial().scan(lambda chunk, memo: model.e_step(found, chunk, memo), source, memos)
    np.testing.assert_array_equal(model.repair(found, stats, source, Counting(), memos), found)
    assert len(passes) == 1  # they are medians still


# geometric medians


def geometric(X, w, start):
    """Minimum sum of distances found by an optimiser, and its location."""

    def cost(c):
        return w @ np.sqrt(((X - c) ** 2).sum(axis=1))

    found = optimize.minimize(
        cost, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12, "maxfev": 9999}
    )
    return found.fun, found.x


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_a_center_is_the_geometric_median(seed, weighted):
    X = draws(seed).standard_cauchy(size=(60, 2))
    w = draws(seed + 50).exponential(size=60) if weighted else np.ones(60)
    model = KMedians(1, metric="l2", tol=0, max_iter=1000).fit(X, sample_weight=w)
    value, place = geometric(X, w, np.median(X, axis=0))
    assert model.objective_ <= value * (1 + 1e-9)
    np.testing.assert_allclose(model.cluster_centers_[0], place, atol=1e-4)


def test_a_row_that_outweighs_the_pull_of_the_others_is_the_median():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 4.0]])
    w = np.array([1.0, 1.0, 1.0, 1.0, 9.0])
    for start in (X[4], X[0], X.mean(axis=0)):
        model = KMedians(1, metric="l2", init=[start], tol=0).fit(X, sample_weight=w)
        np.testing.assert_allclose(model.cluster_centers_[0], X[4], atol=1e-6)
        assert model.converged_
    assert KMedians(1, metric="l2", init=X[4:]).fit(X, sample_weight=w).cluster_centers_.tolist() == X[4:].tolist()


@TYPES
def test_a_center_on_a_row_that_is_not_the_median_leaves_it(dtype):
    X = draws(11).normal(size=(40, 3)).astype(dtype)
    fits = [KMedians(1, metric="l2", init=[row], tol=0, max_iter=1000).fit(X) for row in (X[0], X[1], X.mean(axis=0))]
    for model in fits:
        assert np.all(np.diff(model.history_) <= 1e-6 * model.objective_)
        np.testing.assert_allclose(model.cluster_centers_, fits[-1].cluster_centers_, atol=2e-3)
        assert model.objective_ == pytest.approx(fits[-1].objective_, rel=1e-6)


def test_the_corners_of_a_triangle_with_a_wide_angle_have_that_corner():
    X = np.array([[0.0, 0.0], [4.0, 0.5], [-4.0, 0.5]])  # more than 120 degrees at the first
    for start in (X[1], X.mean(axis=0)):
        model = KMedians(1, metric="l2", init=[start], tol=0).fit(X)
        np.testing.assert_array_equal(model.cluster_centers_[0], X[0])


def test_a_row_that_just_holds_the_pull_of_the_others_is_reached_though_steps_towards_it_tend_to_nothing():
    X = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, -2.0], [-1.0, 0.0], [1.0, 0.0], [0.0, 80.0]])
    for w in (None, np.ones(6)):
        model = KMedians(1, metric="l2", init=[[0.1, 0.3]]).fit(X, sample_weight=w)
        np.testing.assert_array_equal(model.cluster_centers_[0], X[0])
    heavier = KMedians(1, metric="l2", init=[[0.1, 0.3]]).fit(X, sample_weight=[0.0, 1, 1, 1, 1, 1])
    assert heavier.cluster_centers_[0, 1] > 0.1  # a row of weight zero holds nothing


@pytest.mark.parametrize("n", [2, 5, 8])
def test_rows_on_a_line_cost_what_their_median_costs(n):
    along = draws(n).normal(size=n)
    X = np.outer(along, [3.0, -4.0]) + np.array([100.0, 7.0])
    for start in (X[0], X.mean(axis=0)):
        model = KMedians(1, metric="l2", init=[start], tol=0, max_iter=3000).fit(X)
        best = 5 * np.abs(along - np.median(along)).sum()
        assert best * (1 - 1e-12) <= model.objective_ <= best * (1 + 1e-6)


# kernels


@TYPES
@pytest.mark.parametrize("n, d, k", [(1, 1, 1), (50, 3, 7), (400, 17, 9), (300, 5, 24)])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_compiled_kernels_say_what_their_numpy_twins_say(n, d, k, weighted, dtype):
    rng = draws(n)
    X = (rng.integers(-24, 25, size=(n, d)) / 8).astype(dtype)  # sums of such numbers are exact in any order
    centers, w = X[rng.integers(n, size=k)].copy(), rng.integers(0, 3, size=n) + 0.0 if weighted else None
    here, there = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    found, wanted = cpu.deviations(X, w, centers, here), plain.deviations(X, w, centers, there)
    np.testing.assert_array_equal(here, there)
    np.testing.assert_array_equal(here, lengths(X, centers, "l1").argmin(axis=1))
    low, high = np.full((k, d), -2.5), np.full((k, d), 3.0)
    low[0] = np.inf
    edges = np.sort(rng.integers(-3, 4, size=(k, d, 15)) + 0.0, axis=2)
    pairs = [
        (found, wanted),
        (cpu.bin_counts(X, w, here, low, high, edges), plain.bin_counts(X, w, here, low, high, edges)),
        (cpu.weiszfeld_sums(X, w, centers, here), plain.weiszfeld_sums(X, w, centers, here)),
        ((cpu.distances(X, centers),), (plain.distances(X, centers),)),
        *(
            ((cpu.assigned_distances(X, centers, here, m),), (plain.assigned_distances(X, centers, here, m),))
            for m in ("l1", "l2")
        ),
    ]
    for ours, theirs in pairs:
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(cpu.distances(X, centers), plain.distances(X, centers))


@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
@pytest.mark.parametrize("size", [1e-170, 1.0, 1e150])
def test_pulls_do_not_depend_on_the_size_of_the_values(ops, size):
    X = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]])
    found = ops.weiszfeld_sums(X * size, None, np.zeros((1, 2)), np.zeros(3, np.int32))
    np.testing.assert_allclose(found.direction, [[0.6 - 1.0, 0.8]], rtol=1e-12)
    np.testing.assert_allclose(found.inverse * size, [1.2], rtol=1e-12)
    np.testing.assert_allclose(found.cost / size, [6.0], rtol=1e-12)
    assert found.at_center == 1.0
