"""Every kernel of rows takes none: sums are zero, answers are empty."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from coterie.kernels import cpu, plain
from coterie.kernels import sparse as csr
from coterie.kernels.cpu import medians as cpu_medians
from coterie.kernels.cpu import nan_kmeans as cpu_nan_kmeans
from coterie.kernels.cpu import posteriors as cpu_posteriors
from coterie.kernels.cpu import products as cpu_products
from coterie.kernels.plain import Gaussians
from coterie.kernels.plain import medians as plain_medians
from coterie.kernels.plain import nan_kmeans as plain_nan_kmeans
from coterie.kernels.plain import posteriors as plain_posteriors
from coterie.kernels.plain import products as plain_products
from loop_over import loop_over

SHAPES = [(1, 1), (3, 4), (9, 20)]  # centers, columns
WEIGHTS = [None, np.zeros(0)]
NO_LABELS, NO_BOUNDS = np.zeros(0, np.int32), np.zeros(0, np.float32)

both_types = loop_over("dtype", [np.float32, np.float64])
all_shapes = loop_over("k, d", SHAPES)
weights = loop_over("w", WEIGHTS)


def points(k, d, dtype):
    return np.random.default_rng(0).normal(size=(k, d)).astype(dtype)


def assert_nothing(*found):
    """Zeros, or arrays without entries."""
    for each in found:
        if isinstance(each, tuple):
            assert_nothing(*each)
        else:
            assert not np.any(each)


@both_types
@all_shapes
@weights
@pytest.mark.parametrize(
    "ops, kind", [(plain, np.zeros), (plain, sparse.csr_array), (cpu, np.zeros), (csr, sparse.csr_array)]
)
def test_kernels_of_centers_take_no_rows(ops, kind, w, k, d, dtype):
    X, centers = kind((0, d), dtype=dtype), points(k, d, dtype)
    assert_nothing(ops.lloyd(X, w, centers, centers, NO_LABELS, NO_BOUNDS))
    assert ops.nearest(X, centers).shape == ops.assigned_squares(X, centers, NO_LABELS).shape == (0,)
    assert ops.distances(X, centers).shape == (0, k)
    assert_nothing(ops.moments(X, w, centers[0].astype(np.float64)))
    assert_nothing(ops.potentials(X, w, 1.0, centers, np.zeros(0, dtype)))
    assert ops.draw(np.zeros(0, dtype), w, np.array([0.5]))[0] == 0
    assert ops.take(X, np.zeros(0, np.int64)).shape == (0, d)


@both_types
@all_shapes
@weights
@pytest.mark.parametrize("m", [1.01, 2.0, 60.0])
@pytest.mark.parametrize("ops", [plain, cpu])
def test_fuzzy_kernels_take_no_rows(ops, m, w, k, d, dtype):
    X, centers = np.zeros((0, d), dtype), points(k, d, dtype)
    assert_nothing(ops.fuzzy(X, w, centers, m))
    assert ops.memberships(X, centers, m).shape == (0, k)


@both_types
@all_shapes
@weights
@pytest.mark.parametrize("form", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("ops", [plain, cpu])
def test_gaussian_kernels_take_no_rows(ops, form, w, k, d, dtype):
    one = {"full": np.eye(d), "tied": np.eye(d), "diag": np.ones(d), "spherical": np.float64(1)}[form]
    factor = one if form == "tied" else np.stack([one] * k)
    g = Gaussians(form, np.zeros(k), points(k, d, np.float64), factor, np.zeros(d))
    X = np.zeros((0, d), dtype)
    for e_step, u in (("soft", None), ("hard", None), ("stochastic", np.zeros(0))):
        assert_nothing(ops.em(X, w, g, e_step, None, u))
        assert_nothing(ops.em(X, w, g, e_step, NO_LABELS, u))
    assert ops.log_joint(X, g).shape == (0, k)


@both_types
@all_shapes
@weights
@pytest.mark.parametrize("ops", [plain_medians, cpu_medians], ids=["plain", "cpu"])
def test_kernels_of_medians_take_no_rows(ops, w, k, d, dtype):
    X, centers = np.zeros((0, d), dtype), points(k, d, dtype)
    assert_nothing(ops.deviations(X, w, centers, NO_LABELS), ops.weiszfeld_sums(X, w, centers, NO_LABELS))
    assert ops.distances(X, centers).shape == (0, k)
    assert ops.assigned_distances(X, centers, NO_LABELS, "l1").shape == (0,)
    ends = np.full((k, d), np.inf)
    weight, least, most = ops.bin_counts(X, w, NO_LABELS, -ends, ends, np.zeros((k, d, 3)))
    assert_nothing(weight)
    assert (least > most).all()


@both_types
@all_shapes
@weights
@pytest.mark.parametrize("ops", [plain_nan_kmeans, cpu_nan_kmeans], ids=["plain", "cpu"])
def test_kernels_of_rows_with_missing_values_take_no_rows(ops, w, k, d, dtype):
    X, centers = np.zeros((0, d), dtype), points(k, d, dtype)
    assert_nothing(ops.lloyd(X, w, centers, NO_LABELS))
    assert ops.nearest(X, centers).shape == ops.assigned_squares(X, centers, NO_LABELS).shape == (0,)
    assert ops.distances(X, centers).shape == (0, k)
    assert ops.fill_missing(X, centers[0]).shape == (0, d)


@weights
@pytest.mark.parametrize("ops", [plain_posteriors, cpu_posteriors], ids=["plain", "cpu"])
def test_kernels_of_posteriors_take_no_rows(ops, w):
    for e_step, u in (("soft", None), ("hard", None), ("stochastic", np.zeros(0))):
        assert_nothing(ops.posteriors(np.zeros((0, 4)), np.zeros(4), w, e_step, None, u))


@pytest.mark.parametrize("ops", [plain_products, cpu_products], ids=["plain", "cpu"])
def test_kernels_of_products_take_no_rows(ops):
    X = sparse.csr_array((0, 5))
    assert ops.products(X, np.ones((3, 5))).shape == (0, 3)
    assert_nothing(ops.weighted_sums(X, np.zeros((0, 3))))
