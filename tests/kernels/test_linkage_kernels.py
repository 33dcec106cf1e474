from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform

from coterie import machine
from coterie.kernels.cpu import centroid_linkage, kd_tree, neighbour_chain, neighbours, pairwise, spanning_tree, ward
from coterie.kernels.cpu import linkage as compiled
from coterie.kernels.plain import linkage as plain
from coterie.kernels.plain.linkage import AVERAGE, COMPLETE, WARD, Merges

DTYPES = (np.float32, np.float64)
KINDS = {"complete": (COMPLETE, False), "average": (AVERAGE, False), "weighted": (AVERAGE, True), "ward": (WARD, False)}


@numba.njit
def least_of(numbers, count, best, index):
    neighbours.lane_minima(numbers, 0, count, best, index)
    return neighbours.first_minimum(best, index)


@numba.njit
def search(tree, points, weight, group, a):
    waiting, costs = np.empty(kd_tree.MAX_DEPTH, np.int64), np.empty(kd_tree.MAX_DEPTH)
    return kd_tree.search(tree, points, weight, group, a, np.inf, waiting, costs)


@numba.njit
def chained(links, clusters, lengths):
    """The length of the chain of these clusters at these distances."""
    length = neighbour_chain.push(links, 0, clusters[0], np.inf)
    for i in range(1, len(clusters)):
        length = neighbour_chain.follow(links, length, clusters[i], lengths[i])
    return length


def nothing(done: int) -> None:
    pass


def naive(X: np.ndarray, weight: np.ndarray, method: str) -> np.ndarray:
    """Heights, by what the method means: every two clusters compared, at every step."""
    clusters = [([i], X[i], weight[i]) for i in range(len(X))]
    kept = {}  # distances of clusters that came about by merging, where they have no closed form

    def apart(a, b):
        (rows, center, w), (others, other, v) = a, b
        lengths, each = cdist(X[rows], X[others]), np.outer(weight[rows], weight[others])
        return {
            "single": lambda: lengths.min(),
            "complete": lambda: lengths.max(),
            "average": lambda: (lengths * each).sum() / each.sum(),
            "weighted": lambda: kept.get(frozenset([*rows, -1, *others]), lengths.min()),
            "centroid": lambda: np.linalg.norm(center - other),
            "median": lambda: np.linalg.norm(center - other),
            "ward": lambda: np.sqrt(2 * w * v / (w + v)) * np.linalg.norm(center - other),
        }[method]()

    heights = []
    while len(clusters) > 1:
        a, b = min(itertools.combinations(clusters, 2), key=lambda pair: apart(*pair))
        heights.append(apart(a, b))
        rest = [c for c in clusters if c is not a and c is not b]
        share = 0.5 if method == "median" else a[2] / (a[2] + b[2])
        both = (a[0] + b[0], share * a[1] + (1 - share) * b[1], a[2] + b[2])
        for c in rest:
            kept[frozenset([*both[0], -1, *c[0]])] = (apart(a, c) + apart(b, c)) / 2
        clusters = [*rest, both]
    return np.array(heights)


def by_matrix(kernel, X, weight, method):
    D = squareform(pdist(X)).astype(X.dtype)
    if method == "single":
        return kernel.prim(D).height
    if method in ("centroid", "median"):
        return np.sqrt(kernel.generic_linkage(D * D, weight, method == "median", nothing).height)
    if method == "ward":
        D = D * D * 2 * weight * weight[:, None] / (weight + weight[:, None])
    heights = kernel.nearest_neighbour_chain(D.astype(X.dtype), weight, *KINDS[method], nothing).height
    return np.sqrt(heights) if method == "ward" else heights


def by_points(X, weight, method):
    if method == "single":
        left, right = spanning_tree.prim(X, nothing)
        return np.linalg.norm(X[left] - X[right], axis=1)
    if method == "ward":
        return np.sqrt(ward.ward(X, weight, nothing).height)
    equal = method == "median"
    return np.sqrt(centroid_linkage.centroid_linkage(X, np.ones(len(X)) if equal else weight, equal, nothing).height)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["single", *KINDS, "centroid", "median"])
@pytest.mark.parametrize("kernel", [plain, compiled])
def test_merges_by_a_matrix_are_those_of_the_definition(kernel, method, dtype):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(24, 3)).astype(dtype), rng.uniform(0.5, 3, size=24)
    heights = by_matrix(kernel, X, weight, method)
    want = naive(X.astype(np.float64), weight, method)
    rises = method not in ("centroid", "median")
    np.testing.assert_allclose(np.sort(heights) if rises else heights, want, rtol=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["single", "ward", "centroid", "median"])
def test_merges_of_points_are_those_of_the_definition(method, dtype):
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(24, 3)).astype(dtype), rng.uniform(0.5, 3, size=24)
    heights = by_points(X, weight, method)
    want = naive(X.astype(np.float64), weight, method)
    rises = method not in ("centroid", "median")
    np.testing.assert_allclose(np.sort(heights) if rises else heights, want, rtol=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["single", *KINDS, "centroid", "median"])
@pytest.mark.parametrize("n", [2, 3, 65, 257, 900])  # less than a tile, and enough for columns to move together twice
def test_compiled_merges_are_those_of_numpy(method, n, dtype):
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(n, 4)).astype(dtype), rng.uniform(0.5, 3, size=n)
    got, want = by_matrix(compiled, X, weight, method), by_matrix(plain, X, weight, method)
    np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == np.float32 else 1e-9)


def tables(n: int, d: int, dtype: type) -> dict[str, np.ndarray]:
    """Rows whose clusters are first read early, late, and all before the first merge."""
    rng = np.random.default_rng(n + d)
    blobs = rng.normal(size=(n, d)) + 20 * np.sort(rng.integers(0, 4, n))[:, None]
    made = {"normal": rng.normal(size=(n, d)), "blobs": blobs, "ties": rng.integers(0, 3, (n, d))}
    made["one chain"] = np.column_stack([1.01 ** np.arange(n), *rng.normal(size=(d - 1, n)) * 1e-9])[::-1]
    return {name: np.ascontiguousarray(X, dtype) for name, X in made.items()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, d", [(2, 1), (65, 3), (257, 2), (1500, 5)])  # columns of the last move together four times
def test_distances_computed_when_they_are_needed_give_the_same_merges_to_the_bit(n, d, dtype):
    weight = np.random.default_rng(0).uniform(0.5, 3, size=n)
    for name, X in tables(n, d, dtype).items():
        for kind, equal in [KINDS["complete"], KINDS["average"], KINDS["weighted"]]:
            D, memory = np.empty((n, n), dtype), np.full((n, n), np.nan, dtype)
            pairwise.differences(X, X, 1, 1.0, D)
            want = compiled.nearest_neighbour_chain(D, weight, kind, equal, nothing)
            got = compiled.nearest_neighbour_chain_of_rows(X, memory, weight, kind, equal, nothing)
            assert all(map(np.array_equal, got, want)), (name, kind, equal)
            if n > 256:
                share = np.mean(~np.isnan(memory).all(axis=1))  # of the memory that was used
                assert share == 1 if name == "one chain" else share < 0.5, (name, kind, equal, share)


def test_rows_that_cannot_be_written_need_no_kernels_of_their_own():
    X = np.random.default_rng(8).normal(size=(40, 3))
    compiled.nearest_neighbour_chain_of_rows(X, np.empty((40, 40)), np.ones(40), AVERAGE, False, nothing)
    spanning_tree.prim(X, nothing)
    ward.ward(X, np.ones(40), nothing)
    assert not any(rows.mutable for (rows,) in neighbours.pack.signatures)


def test_merges_of_rows_are_those_of_numpy():
    for name, X in tables(90, 3, np.float64).items():
        heights = [
            kernel.nearest_neighbour_chain_of_rows(X, np.empty((90, 90)), np.ones(90), AVERAGE, False, nothing).height
            for kernel in (plain, compiled)
        ]
        np.testing.assert_allclose(*map(np.sort, heights), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_first_of_the_least_is_found(dtype, count):
    wide, lanes = neighbours.tile_width(np.dtype(dtype).itemsize), neighbours.lanes(np.dtype(dtype).itemsize)
    rng = np.random.default_rng(3)
    best, index = np.empty(lanes, dtype), np.empty(lanes, np.int32)
    for _ in range(50):
        numbers = rng.integers(0, 9, size=count * wide).astype(dtype)
        assert least_of(numbers, len(numbers), best, index) == (numbers.min(), numbers.argmin())


@pytest.mark.parametrize("n, d", [(5, 1), (9, 2), (700, 3), (1000, 1)])
def test_a_kd_tree_finds_the_nearest_point(n, d):
    rng = np.random.default_rng(4)
    points, weight, group = rng.normal(size=(n, d)), rng.uniform(0.5, 50, size=n), rng.integers(0, 3, size=n)
    points[: n // 2] = points[rng.integers(0, n, size=n // 2)]  # and equal ones
    tree = kd_tree.build(points, weight, np.arange(n))
    kd_tree.set_groups(tree, group)
    assert sorted(tree.member) == list(range(n))
    cost = cdist(points, points, "sqeuclidean") * 2 * weight * weight[:, None] / (weight + weight[:, None])
    cost[group[:, None] == group] = np.inf
    for a in range(0, n, max(1, n // 60)):
        found, least = search(tree, points, weight, group, a)
        if np.isinf(cost[a].min()):
            assert found == -1
        else:
            np.testing.assert_allclose([cost[a, found], least], cost[a].min(), rtol=1e-12)


def test_ward_in_a_kd_tree_merges_as_ward_does_also_where_chains_are_long():
    X = 1.2 ** np.arange(1, 400)[:, None]  # every row's nearest is the one before it: one chain through all
    for rows in (X, np.random.default_rng(5).normal(size=(800, 2))):
        weight = np.ones(len(rows))
        got, want = (f(rows, weight, nothing).height for f in (ward.ward_in_kd_tree, ward.ward))
        np.testing.assert_allclose(np.sort(got), np.sort(want), rtol=1e-9)


def test_boruvka_grows_prims_tree():
    rng = np.random.default_rng(6)
    for X in (rng.normal(size=(1500, 2)), rng.integers(0, 9, size=(1500, 2)).astype(float)):
        lengths = []
        for left, right in (
            spanning_tree.prim(X, nothing),
            spanning_tree.boruvka(X, lambda f, calls: machine.in_threads(f, calls, 2), nothing),
        ):
            merges = Merges(left, right, np.zeros(len(left)))
            assert compiled.linkage_matrix(merges, len(X))[-1, 3] == len(X)  # no circle: all are joined
            lengths.append(np.sort(((X[left] - X[right]) ** 2).sum(axis=1)))
        np.testing.assert_array_equal(*lengths)


def test_a_chain_that_meets_itself_ends_with_the_two_nearest():
    links = neighbour_chain.new_chain(5)
    length = chained(links, np.array([3, 1, 4, 0, 1]), np.array([np.inf, 9.0, 5.0, 4.0, 3.0]))
    assert links.cluster[:length].tolist() == [3, 1, 0]
    assert links.link[:length].tolist() == [np.inf, 9.0, 3.0]
    assert links.position.tolist() == [2, 1, -1, 0, -1]


def test_merges_are_numbered_alike():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(90, 2))
    left, right = spanning_tree.prim(X, nothing)
    merges = Merges(left, right, np.arange(89.0))
    np.testing.assert_array_equal(compiled.linkage_matrix(merges, 90), plain.linkage_matrix(merges, 90))
