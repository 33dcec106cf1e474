"""Rows with holes: both kernel modules against loops, on random, tiny, degenerate and hostile rows."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.kernels import cpu, plain, select
from coterie.kernels.cpu import nan_kmeans as compiled
from coterie.kernels.plain import nan_kmeans as numpy_twin
from loop_over import loop_over

OPS = pytest.mark.parametrize("ops", [numpy_twin, compiled], ids=["plain", "cpu"])
SINGLE = loop_over("dtype", [np.float32, np.float64])

rng = np.random.default_rng(0)

# Sizes about the widths of vectors, tiles and panels; scales that overflow squares in float32; ties and duplicates.
ROWS = {
    "one row": rng.normal(size=(1, 3)),
    "one column": rng.normal(size=(200, 1)),
    "narrow": rng.normal(size=(97, 5)),
    "one vector": rng.normal(size=(49, 16)),
    "a vector and one": rng.normal(size=(48, 17)),
    "wide": rng.normal(size=(47, 131)),
    "several blocks": rng.normal(size=(1500, 7)),
    "far from the origin": rng.normal(size=(400, 6)) + 1e6,
    "huge": rng.normal(size=(300, 5)) * 1e25,
    "tiny": rng.normal(size=(300, 5)) * 1e-25,
    "columns of all sizes": rng.normal(size=(300, 5)) * 10.0 ** np.arange(-10, 15, 5),
    "an outlier": np.vstack([rng.normal(size=(300, 4)), np.full((1, 4), 1e25)]),
    "ties": rng.integers(0, 3, size=(400, 2)).astype(float),
    "duplicates": np.repeat(rng.normal(size=(5, 4)), 60, axis=0),
    "constant": np.ones((100, 3)),
}
CENTERS = [1, 2, 7, 8, 9, 40]
HOLES = {"none": 0.0, "some": 0.3, "all but one a row": 1.0}


def with_holes(X, share):
    """Each value is missing with this chance, but one of every row."""
    own = np.random.default_rng(7)
    gaps = own.random(X.shape) < share
    gaps[np.arange(len(X)), own.integers(X.shape[1], size=len(X))] = False
    return np.where(gaps, np.nan, X).astype(X.dtype)


def case(name, k, dtype, share):
    X = ROWS[name].astype(dtype)
    own = np.random.default_rng(k)
    centers = X[own.integers(len(X), size=k)].copy()
    if k > 2 and name not in ("ties", "duplicates", "constant"):
        centers[1:] += (np.ptp(X, axis=0) * 0.05 * own.normal(size=centers[1:].shape)).astype(dtype)
    return with_holes(X, share), centers


def squares(X, centers):
    """Over the columns observed, in their order, in float64."""
    total = np.zeros((len(X), len(centers)))
    for t in range(X.shape[1]):
        difference = X[:, t, None].astype(np.float64) - centers[None, :, t].astype(np.float64)
        total += np.where(np.isnan(difference), 0.0, difference) ** 2
    return total


def sums(X, w, centers):
    X, centers = X.astype(np.float64), centers.astype(np.float64)
    labels = squares(X, centers).argmin(axis=1)
    weight, sum_dx, cost = np.zeros(len(centers)), np.zeros(centers.shape), np.zeros(len(centers))
    seen = np.zeros(centers.shape)
    for i, j in enumerate(labels):
        weight[j] += w[i]
        for t in range(X.shape[1]):
            if X[i, t] == X[i, t]:
                sum_dx[j, t] += w[i] * (X[i, t] - centers[j, t])
                cost[j] += w[i] * (X[i, t] - centers[j, t]) ** 2
                seen[j, t] += w[i]
    return labels, weight, sum_dx, cost, seen


def assert_close(got, wanted, dtype):
    eps = 1e-12 if dtype == np.float64 else 2e-5
    np.testing.assert_allclose(got, wanted, rtol=eps, atol=eps * np.abs(wanted).max(initial=0))


def assert_labels_are_the_definition(ops, X, centers):
    wanted = squares(X, centers).argmin(axis=1)
    np.testing.assert_array_equal(ops.nearest(X, centers), wanted)
    labels = np.full(len(X), -1, np.int32)
    assert ops.lloyd(X, None, centers, labels).moved == len(X)
    np.testing.assert_array_equal(labels, wanted)
    assert ops.lloyd(X, None, centers, labels).moved == 0


@OPS
@SINGLE
@loop_over("share", HOLES.values())
@pytest.mark.parametrize("name", ROWS)
def test_every_label_is_the_nearest_center_over_the_columns_observed(ops, name, share, dtype):
    for k in CENTERS:
        assert_labels_are_the_definition(ops, *case(name, k, dtype, share))


@OPS
@SINGLE
@pytest.mark.parametrize("share", HOLES.values(), ids=HOLES)
def test_centers_that_differ_in_their_last_digits_are_told_apart(ops, share, dtype):
    own = np.random.default_rng(5)
    X = with_holes(own.normal(size=(2000, 17)).astype(dtype), share)
    digits = own.integers(-3, 4, size=(9, 17)) * np.finfo(dtype).eps
    assert_labels_are_the_definition(ops, X, (own.normal(size=17) * (1 + digits)).astype(dtype))


@OPS
@SINGLE
@loop_over("weighted", [False, True])
@loop_over("share", HOLES.values())
@pytest.mark.parametrize("name", ROWS)
def test_the_sums_are_those_of_the_values_observed(ops, name, share, weighted, dtype):
    X, centers = case(name, 9, dtype, share)
    w = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    labels = np.full(len(X), -1, np.int32)
    found = ops.lloyd(X, w, centers, labels)
    _, weight, sum_dx, cost, seen = sums(X, np.ones(len(X)) if w is None else w, centers)
    assert_close(found.weight, weight, np.float64)
    assert_close(found.cost, cost, dtype)
    assert_close(found.observed, seen, np.float64 if w is None else dtype)
    assert_close(found.sum_dx, sum_dx, dtype)
    np.testing.assert_array_equal(found.observed == 0, seen == 0)  # what nobody has is nothing, not almost nothing


@OPS
def test_a_row_so_far_out_that_its_square_overflows_is_added_all_the_same(ops):
    rows = np.random.default_rng(6).normal(size=(300, 4)).astype(np.float32)
    centers = rows[:9].copy()
    rows[200] = 1e25
    X, labels = with_holes(rows, 0.3), np.full(300, -1, np.int32)
    found = ops.lloyd(X, None, centers, labels)
    _, _, sum_dx, cost, seen = sums(X, np.ones(300), centers)
    np.testing.assert_allclose(found.sum_dx, sum_dx, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.cost, cost, rtol=1e-9)
    np.testing.assert_array_equal(found.observed, seen)
    assert found.moved == 300


@OPS
@SINGLE
@loop_over("share", HOLES.values())
@pytest.mark.parametrize("name", ROWS)
def test_distances_are_those_over_the_columns_observed(ops, name, share, dtype):
    X, centers = case(name, 9, dtype, share)
    wanted = squares(X, centers)
    found = ops.distances(X, centers)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.sqrt(wanted), rtol=1e-12 if dtype == np.float64 else 1e-6)
    labels = np.random.default_rng(3).integers(9, size=len(X)).astype(np.int32)
    np.testing.assert_allclose(ops.assigned_squares(X, centers, labels), wanted[np.arange(len(X)), labels], rtol=1e-12)


@OPS
@SINGLE
def test_holes_are_filled_with_the_values_of_their_columns_and_nothing_else_changes(ops, dtype):
    X, values = case("several blocks", 1, dtype, 0.3)[0], np.arange(7.0)
    found, gaps = ops.fill_missing(X, values), np.isnan(X)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found[~gaps], X[~gaps])
    np.testing.assert_array_equal(found[gaps], np.broadcast_to(values, X.shape)[gaps])
    assert gaps.any()
    np.testing.assert_array_equal(np.isnan(X), gaps)


@SINGLE
@pytest.mark.parametrize("name", ROWS)
def test_without_holes_labels_and_sums_are_those_of_kmeans(name, dtype):
    X, centers = case(name, 9, dtype, 0.0)
    ours, theirs = np.full(len(X), -1, np.int32), np.full(len(X), -1, np.int32)
    found = compiled.lloyd(X, None, centers, ours)
    wanted = cpu.lloyd(X, None, centers, centers, theirs, np.zeros(0, np.float32))
    np.testing.assert_array_equal(ours, theirs)
    assert_close(found.sum_dx, wanted.sum_dx, dtype)
    assert_close(found.cost, wanted.cost, dtype)
    np.testing.assert_array_equal(found.observed, np.repeat(wanted.weight[:, None], X.shape[1], axis=1))
    wanted = plain.lloyd(X, None, centers, centers, theirs, np.zeros(0, np.float32))
    assert_close(numpy_twin.lloyd(X, None, centers, ours).sum_dx, wanted.sum_dx, np.float64)


@OPS
@SINGLE
def test_a_row_of_which_nothing_was_observed_joins_the_first_cluster_and_adds_nothing(ops, dtype):
    X, centers = case("narrow", 8, dtype, 0.3)
    X[5] = np.nan
    w = np.ones(len(X))
    w[5] = 0
    labels = np.full(len(X), -1, np.int32)
    found = ops.lloyd(X, w, centers, labels)
    assert labels[5] == 0
    assert_close(found.sum_dx, sums(X, w, centers)[2], dtype)
    np.testing.assert_array_equal(ops.distances(X[5:6], centers), np.zeros((1, 8)))


@SINGLE
def test_bits_do_not_depend_on_what_else_a_thread_has_computed(dtype):
    X, centers = case("several blocks", 9, dtype, 0.3)
    first = compiled.lloyd(X, None, centers, np.full(len(X), -1, np.int32))
    other, more = case("wide", 40, dtype, 0.3)
    compiled.lloyd(other, None, more, np.full(len(other), -1, np.int32))
    again = compiled.lloyd(X, None, centers, np.full(len(X), -1, np.int32))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)


def test_partial_sums_of_many_rows_keep_their_digits():
    """Single precision counts to 16 million; rows beyond that many would be lost in a single sum."""
    n = 300_000
    X = with_holes(np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32) + 1000, 0.2)
    centers = np.array([[1000.0, 1000.0], [5000, 5000]], np.float32)
    found = compiled.lloyd(X, None, centers, np.full(n, -1, np.int32))
    moved = X.astype(np.float64) - 1000
    np.testing.assert_array_equal(found.observed[0], (~np.isnan(X)).sum(axis=0))
    np.testing.assert_allclose(found.cost[0], np.nansum(moved**2), rtol=1e-6)
    np.testing.assert_allclose(found.sum_dx[0], np.nansum(moved, axis=0), atol=1e-6 * np.nansum(np.abs(moved)))


@pytest.mark.usefixtures("compiled_kernels")
def test_small_work_costs_no_compilation():
    assert select("nan_kmeans", np.empty((100, 3)), 5) is numpy_twin
    assert select("nan_kmeans", np.empty((100_000, 3)), 5) is compiled
