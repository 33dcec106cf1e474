"""Every kernel module against loops, on random, tiny, degenerate and hostile rows."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pytest
from scipy import sparse

from coterie import kernels
from coterie.core.random_numbers import uniform
from coterie.kernels import cpu, for_centers, plain
from coterie.kernels import sparse as csr
from coterie.kernels.cpu import few_columns
from loop_over import loop_over

rng = np.random.default_rng(0)


def grid(n, d):
    return rng.integers(0, 3, size=(n, d)).astype(float)


# Sizes about the widths of vectors, tiles and panels; scales that overflow squares in float32; ties and duplicates.
ROWS = {
    "one row": rng.normal(size=(1, 3)),
    "one column": rng.normal(size=(200, 1)),
    "two columns": rng.normal(size=(500, 2)),
    "narrow": rng.normal(size=(97, 5)),
    "one vector": rng.normal(size=(49, 16)),
    "a vector and one": rng.normal(size=(48, 17)),
    "wide": rng.normal(size=(47, 131)),
    "several blocks": rng.normal(size=(1500, 7)),
    "far from the origin": rng.normal(size=(400, 6)) + 1e6,
    "huge": rng.normal(size=(300, 5)) * 1e25,
    "tiny": rng.normal(size=(300, 5)) * 1e-25,
    "an outlier": np.vstack([rng.normal(size=(300, 4)), np.full((1, 4), 1e12)]),
    "two tight groups far apart": np.repeat([[0.0, 0.0, 0.0], [1e3, 1e3, 1e3]], 150, axis=0)
    + rng.normal(size=(300, 3)) * 1e-3,
    "ties": grid(400, 2),
    "duplicates": np.repeat(rng.normal(size=(5, 4)), 60, axis=0),
    "constant": np.ones((100, 3)),
    "heavy tails": rng.standard_cauchy(size=(700, 6)),
    "a column in another unit": rng.normal(size=(500, 20)) * np.r_[1e4, np.ones(19)],
    "groups far apart": 300 * rng.normal(size=(10, 24))[rng.integers(10, size=1200)] + rng.normal(size=(1200, 24)),
    "half of the rows equal": np.where(rng.random((1000, 1)) < 0.5, 0.25, rng.normal(size=(1000, 18))),
    "a row beyond the digits of float64": np.vstack([rng.normal(size=(300, 18)), np.full((1, 18), 1e17)]),
}
CENTERS = [1, 2, 7, 8, 9, 40]


# Rows whose centers are rows: others would be far from them.
AT_ROWS = (
    "ties", "duplicates", "constant", "two tight groups far apart", "half of the rows equal",
    "a row beyond the digits of float64",
)  # fmt: skip


def case(name, k, dtype):
    X = ROWS[name].astype(dtype)
    centers = X[np.random.default_rng(k).integers(len(X), size=k)].copy()
    if k > 2 and name not in AT_ROWS:
        centers[1:] += np.ptp(X, axis=0).max() * 0.05 * rng.normal(size=centers[1:].shape)
    return np.ascontiguousarray(X), np.ascontiguousarray(centers.astype(dtype))


def run_lloyd(ops, X, w, centers):
    labels = np.full(X.shape[0], -1, np.int32)
    return labels, ops.lloyd(X, w, centers, centers, labels, np.zeros(0, np.float32))


@loop_over("dtype", [np.float32, np.float64])
@loop_over("k", CENTERS)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
def test_every_label_is_the_nearest_center_as_float64_finds_it(ops, name, k, dtype):
    X, centers = case(name, k, dtype)
    labels, _ = run_lloyd(ops, X, None, centers)
    wanted = naive.squares(X, centers).argmin(axis=1)
    np.testing.assert_array_equal(labels, wanted)
    np.testing.assert_array_equal(ops.nearest(X, centers), wanted)


@loop_over("dtype", [np.float32, np.float64])
@loop_over("k", [1, 8, 9, 40])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
def test_sums_are_those_of_the_loops(ops, name, k, dtype):
    X, centers = case(name, k, dtype)
    rtol = 2e-5 if dtype == np.float32 else 1e-11
    for w in (None, rng.exponential(size=len(X)) * (rng.random(len(X)) > 0.2)):
        _, found = run_lloyd(ops, X, w, centers)
        _, weight, sum_dx, cost = naive.lloyd(X, np.ones(len(X)) if w is None else w, centers)
        np.testing.assert_allclose(found.weight, weight, rtol=1e-12)
        np.testing.assert_allclose(found.cost, cost, rtol=rtol, atol=rtol * cost.max())
        reach = np.sqrt(np.maximum(cost * weight, 0)).max()  # no sum of differences is longer
        np.testing.assert_allclose(found.sum_dx, sum_dx, rtol=rtol, atol=rtol * reach)


@loop_over("n", [1, 47, 49, 385, 1000])
@loop_over("offset", [0.0, 50.0])
@loop_over("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", range(1, 9))
def test_the_sweep_of_few_columns_gives_the_labels_and_sums_of_the_definition(d, n, offset, dtype):
    X = (rng.normal(size=(n, d)) + offset).astype(dtype)
    for k in {1, 3, 96 // d}:
        centers = np.ascontiguousarray((rng.normal(size=(k, d)) + offset).astype(dtype))
        assert few_columns.applies(*centers.shape)
        labels, found = run_lloyd(cpu, X, None, centers)
        wanted_labels, weight, sum_dx, cost = naive.lloyd(X, np.ones(n), centers)
        np.testing.assert_array_equal(labels, wanted_labels)
        np.testing.assert_array_equal(cpu.nearest(X, centers), wanted_labels)
        np.testing.assert_array_equal(found.weight, weight)
        assert found.moved == n
        rtol = 1e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(found.cost, cost, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(found.sum_dx, sum_dx, rtol=rtol, atol=rtol * n)


def test_few_columns_far_from_the_origin_lose_no_digits():
    """Sums of integers about integer centers are exact, wherever the rows are."""
    X = rng.integers(-4, 5, size=(20000, 2)).astype(np.float32) + np.float32(2**20)
    centers = np.array([[-2, -2], [-2, 3], [3, -2], [3, 3]], np.float32) + np.float32(2**20)
    _, found = run_lloyd(cpu, X, None, centers)
    _, weight, sum_dx, cost = naive.lloyd(X, np.ones(len(X)), centers)
    for got, wanted in zip(found, (weight, sum_dx, cost), strict=False):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", ROWS)
def test_bounds_never_change_a_label(name):
    X, centers = case(name, 40, np.float32)
    labels, lower = np.full(len(X), -1, np.int32), np.zeros(len(X), np.float32)
    before = centers
    for _ in range(6):
        sums = cpu.lloyd(X, None, centers, before, labels, lower)
        np.testing.assert_array_equal(labels, naive.squares(X, centers).argmin(axis=1))
        step = sums.sum_dx / np.maximum(sums.weight, 1)[:, None]
        before, centers = centers, (centers + step).astype(np.float32)


def test_bounds_save_most_searches_once_the_centers_rest():
    from coterie.kernels.cpu.hard_assignment import buffer_size, lloyd

    centers = rng.normal(size=(32, 4)) * 50
    X = np.repeat(centers, 300, axis=0) + rng.normal(size=(9600, 4))
    labels, lower, unit = np.full(len(X), -1, np.int32), np.zeros(len(X), np.float32), np.ones(1)
    buffer = np.empty(buffer_size(32, 4, 8))
    rows, fixed = cpu.read_only(X), cpu.read_only(centers)  # as estimators pass them, so that nothing is compiled
    searched = [lloyd(rows, unit, fixed, fixed, labels, lower, buffer, None)[-1] for _ in range(3)]
    assert searched[0] == len(X)
    assert searched[1] < len(X)  # some blocks find that bounds pay, the others then start keeping them
    assert searched[2] < 0.05 * len(X)


def searched_block(X, centers):
    """The state of the compiled search after one block of rows."""
    from coterie.kernels.cpu.hard_assignment import buffer_size, prepare, search

    X, centers = cpu.read_only(X), cpu.read_only(centers)
    s = prepare(X, centers, False, np.empty(buffer_size(*centers.shape, X.itemsize), X.dtype))
    s.rows[: s.block] = np.arange(s.block)
    s.second_square[:] = -1
    search(X, centers, s, s.block, None)
    np.testing.assert_array_equal(s.index[: s.block], naive.squares(X[: s.block], centers).argmin(axis=1))
    return s


# Rows with a center that is far from the others, and the share of ambiguous rows that is left.
FAR_CENTERS = {
    "heavy tails": (rng.standard_cauchy(size=(3000, 24)), 0.01),
    "five rows far out": (rng.normal(size=(3000, 24)) * np.where(np.arange(3000) % 600, 1.0, 1e4)[:, None], 0.01),
    "a column in another unit": (rng.normal(size=(3000, 24)) * np.r_[1e3, np.ones(23)], 0.1),
}


@pytest.mark.parametrize("name", FAR_CENTERS)
def test_a_far_center_does_not_make_other_rows_ambiguous(name):
    rows, share = FAR_CENTERS[name]
    X = rows.astype(np.float32)
    centers = np.vstack([X[np.abs(X).sum(axis=1).argmax()], X[1:64]])
    s = searched_block(np.ascontiguousarray(np.roll(X, -100, axis=0)), centers)
    assert np.mean(s.second_square[: s.block] >= 0) <= share
    assert not s.differences.is_default[0]


def test_blocks_after_one_with_many_ambiguous_rows_are_compared_by_differences():
    X = (1e3 * rng.normal(size=(4, 24))[rng.integers(4, size=3000)] + rng.normal(size=(3000, 24))).astype(np.float32)
    assert searched_block(X, X[:64].copy()).differences.is_default[0]


@loop_over("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
def test_distances_and_assigned_squares(ops, name, dtype):
    X, centers = case(name, 7, dtype)
    wanted = naive.squares(X, centers)
    rtol = 1e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(ops.distances(X, centers), np.sqrt(wanted), rtol=rtol)
    assert ops.distances(X, centers).dtype == dtype
    labels = np.arange(len(X), dtype=np.int32) % 7
    np.testing.assert_allclose(ops.assigned_squares(X, centers, labels), wanted[np.arange(len(X)), labels], rtol=1e-12)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
def test_moments(ops, name):
    X, w = ROWS[name], rng.exponential(size=len(ROWS[name]))
    pivot = X[0].copy()
    weight, sum_x, sum_xx = ops.moments(X, w, pivot)
    assert weight == pytest.approx(w.sum())
    np.testing.assert_allclose(sum_x, w @ (X - pivot), rtol=1e-9, atol=1e-9 * (w @ np.abs(X - pivot)).max())
    np.testing.assert_allclose(sum_xx, w @ (X - pivot) ** 2, rtol=1e-9)


@pytest.mark.parametrize("power", [-1073, -1060, -1022, 1000])
def test_labels_of_plain_kernels_do_not_depend_on_the_scale(power):
    """Integers times these powers of two are exact; the inverse of the smallest power is infinite."""
    X = rng.integers(0, 9, size=(50, 3)).astype(float)
    centers = X[:5].copy()
    np.testing.assert_array_equal(
        plain.nearest(np.ldexp(X, power), np.ldexp(centers, power)), plain.nearest(X, centers)
    )


@loop_over("dtype", [np.float32, np.float64])
@loop_over("m", [1, 8, 9, 20])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
def test_potentials_of_candidates(ops, name, m, dtype):
    X, points = case(name, m, dtype)
    unit = 2.0 ** np.ceil(np.log2(max(np.abs(X.astype(float)).max(), 1e-30)))
    w = rng.exponential(size=len(X))
    closest = np.full(len(X), 0.5, dtype)
    found = ops.potentials(X, w, unit, points, closest)
    squares = naive.squares(X, points) / unit**2
    near = np.minimum(squares[:, 0], 0.5)
    rtol = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(closest, near, rtol=rtol, atol=1e-12 * rtol)
    np.testing.assert_allclose(found, w @ np.minimum(near[:, None], squares), rtol=rtol, atol=1e-12 * rtol)


@loop_over("dtype", [np.float32, np.float64])
@loop_over("k", [3, 20])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_centers_of_compiled_rounds_are_the_best_candidates(name, is_weighted, k, dtype):
    """From 8 rounds on, they use a copy of the rows."""
    X, points = case(name, 3, dtype)
    w, unit = (
        rng.exponential(size=len(X)) if is_weighted else None,
        float(2.0 ** np.ceil(np.log2(np.abs(X.astype(float)).max() + 1e-30))),
    )
    rounds = cpu.plusplus_rounds(X, w, k, 5, unit, None)
    rounds.add(points[0])
    rounds.start(points[1])
    centers = points[:2]
    for _ in range(k + 5):
        candidates = X[rounds.candidates[: rounds.state[1]]]
        before, _ = rounds.progress()
        rounds.run(rng.random((1, 2, 16)))
        count, is_done = rounds.progress()
        if is_done and count == before:  # no cost is left
            break
        squares = naive.squares(X, centers).min(axis=1) / unit**2
        rtol = 1e-4 if dtype == np.float32 else 1e-9
        np.testing.assert_allclose(rounds.closest, squares, rtol=rtol, atol=rtol * 1e-12)
        if len(candidates):
            assert count == before + 1
            costs = np.minimum(squares[:, None], naive.squares(X, candidates) / unit**2)
            totals = costs.sum(axis=0) if w is None else w @ costs
            chosen = int(np.flatnonzero((candidates == X[rounds.rows(count)[-1]]).all(axis=1))[0])
            assert totals[chosen] <= totals.min() * (1 + rtol)
            centers = np.concatenate([centers, candidates[chosen : chosen + 1]])
        if is_done:
            break
    assert is_done or count > k - 3  # a round without candidates samples again


@pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
@pytest.mark.parametrize("w", [None, rng.exponential(size=500) * (rng.random(500) < 0.7)], ids=["", "weighted"])
def test_arrival_times_are_exponential_numbers_of_the_rows(ops, w):
    closest = rng.exponential(size=500)
    closest[:100] = 0
    mass = closest if w is None else w * closest
    for expected in (3.0, 40.0, np.inf):
        total, rows, time = ops.arrivals(closest, w, 2**63 - 5, 77, expected)
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(mass > 0, -np.log(uniform(2**63 - 5, 77, 500)) / mass, np.inf)
        assert total == pytest.approx(mass.sum(), rel=1e-12)
        np.testing.assert_array_equal(rows, np.flatnonzero((times * mass.sum() < expected) & (mass > 0)))
        np.testing.assert_allclose(time, times[rows], rtol=1e-12)
    total, rows, _ = ops.arrivals(np.zeros(500), w, 1, 0, 5.0)
    assert total == 0
    assert len(rows) == 0


@pytest.mark.parametrize("ops", [plain, cpu, csr], ids=["plain", "cpu", "sparse"])
def test_rows_are_drawn_in_proportion_to_their_mass(ops):
    closest = rng.exponential(size=1000)
    w = (rng.random(1000) > 0.5).astype(float)
    mass = w * closest
    u = (np.arange(20000) + 0.5) / 20000
    total, rows = ops.draw(closest, w, u)
    assert total == pytest.approx(mass.sum())
    share = np.bincount(rows, minlength=1000) / 20000
    assert np.all(mass[rows] > 0)
    assert np.abs(share - mass / mass.sum()).max() <= 2 / 20000


@pytest.mark.parametrize("ops", [plain, cpu, csr], ids=["plain", "cpu", "sparse"])
def test_nothing_is_drawn_where_nothing_has_mass(ops):
    total, rows = ops.draw(np.zeros(300), None, np.array([0.0, 0.3, 0.999]))
    assert total == 0
    assert np.all(rows == -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 8, 40])
def test_sparse_rows_give_what_dense_rows_give(k, dtype):
    X = sparse.random_array((300, 50), density=0.1, rng=rng, format="csr", dtype=dtype)
    centers = np.ascontiguousarray(X[:k].toarray() + rng.normal(size=(k, 50)).astype(dtype) * 0.01)
    w = rng.exponential(size=300)
    labels, found = run_lloyd(csr, X, w, centers)
    wanted_labels, weight, sum_dx, cost = naive.lloyd(X, w, centers)
    np.testing.assert_array_equal(labels, wanted_labels)
    for got, wanted in zip(found, (weight, sum_dx, cost), strict=False):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(csr.nearest(X, centers), wanted_labels)
    np.testing.assert_allclose(csr.distances(X, centers), np.sqrt(naive.squares(X, centers)), rtol=1e-5)
    np.testing.assert_allclose(
        csr.assigned_squares(X, centers, labels), naive.squares(X, centers).min(axis=1), rtol=1e-9
    )
    pivot = rng.normal(size=50)
    for got, wanted in zip(csr.moments(X, w, pivot), plain.moments(X, w, pivot), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    for near in (np.full(300, np.inf), np.full(300, 0.1)):
        other = near.copy()
        np.testing.assert_allclose(
            csr.potentials(X, w, 2.0, centers, near), plain.potentials(X, w, 2.0, centers, other), rtol=1e-9
        )
        np.testing.assert_allclose(near, other, rtol=1e-9, atol=1e-15)


def test_a_sparse_row_on_its_center_is_at_distance_zero():
    X = sparse.random_array((50, 500), density=0.2, rng=rng, format="csr") * 1e3
    assert csr.assigned_squares(X, X.toarray(), np.arange(50, dtype=np.int32)).max() == 0


def test_read_only_and_memory_mapped_rows_are_read_in_place(tmp_path):
    X = rng.normal(size=(5000, 8))
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(cpu.nearest(mapped, X[:9]), cpu.nearest(X, X[:9]))


def test_all_kernel_modules_have_the_same_names():
    assert cpu.__all__ == plain.__all__
    assert set(plain.__all__) - set(csr.__all__) == {"em", "fuzzy", "log_joint", "memberships", "weighted_sums"}
    for module in (cpu, plain, csr):
        assert all(callable(getattr(module, name)) for name in module.__all__)


@pytest.mark.usefixtures("compiled_kernels")
def test_the_kernels_are_chosen_by_type_and_shape_alone():
    small, large = np.zeros((10, 3)), np.zeros((10000, 20))
    assert for_centers(small, 8) is plain
    assert for_centers(large, 8) is cpu
    assert for_centers(sparse.csr_array(large), 8) is csr
    assert for_centers(sparse.csr_array(small), 8) is plain


@pytest.mark.usefixtures("compiled_kernels")
def test_kernels_for_many_passes_are_compiled_in_this_thread_only():
    X = np.zeros((500, 8))
    with contextlib.suppress(ZeroDivisionError), kernels.selected_for(32, X, 5):
        assert for_centers(X, 5) is cpu
        assert kernels.select("medians", X, 5).__name__.endswith("cpu.medians")
        with ThreadPoolExecutor() as pool:
            assert pool.submit(for_centers, X, 5).result() is plain
        raise ZeroDivisionError
    assert for_centers(X, 5) is plain
    with kernels.selected_for(32, X[:100], 5):
        assert for_centers(X[:100], 24) is plain
