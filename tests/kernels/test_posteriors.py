"""Posteriors and products: compiled code beside its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from coterie.kernels.cpu import posteriors as cpu
from coterie.kernels.cpu import products as cpu_products
from coterie.kernels.plain import posteriors as plain
from coterie.kernels.plain import products as plain_products


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("k", [1, 2, 7, 20, 65])
@pytest.mark.parametrize("n", [1, 37, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_shares_and_likelihoods_are_those_of_the_definition(n, k, weighted, rng):
    scores = rng.normal(size=(n, k)) * 20 - 1000
    offset = np.log(rng.dirichlet(np.ones(k)))
    w = rng.exponential(size=n) * (rng.random(n) < 0.8) if weighted else None
    expected, likelihood, bound = plain.posteriors(scores.copy(), offset, w)
    found = cpu.posteriors(scores.copy(), offset, w)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-14)
    assert found[1:] == pytest.approx((likelihood, bound), rel=1e-12)


@pytest.mark.parametrize("e_step", ["soft", "hard", "stochastic"])
@pytest.mark.parametrize("knowing", [False, True])
def test_every_e_step_and_what_is_known(e_step, knowing, rng):
    scores, offset, w = rng.normal(size=(3000, 6)), np.log(rng.dirichlet(np.ones(6))), rng.exponential(size=3000)
    known = rng.integers(-1, 6, 3000) if knowing else None
    u = rng.random(3000) if e_step == "stochastic" else None
    expected = plain.posteriors(scores.copy(), offset, w, e_step, known, u)
    found = cpu.posteriors(scores.copy(), offset, w, e_step, known, u)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-11, atol=1e-14)
    assert found[1:] == pytest.approx(expected[1:], rel=1e-11)


def test_a_component_without_weight_has_no_share(rng):
    with np.errstate(divide="ignore"):
        offset = np.log(np.array([0.5, 0.0, 0.5]))
    found, likelihood, _ = cpu.posteriors(rng.normal(size=(4000, 3)), offset, None)
    assert (found[:, 1] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    assert np.isfinite(likelihood)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize(
    "k", [1, 5, 16, 21, 26, 33, 43, 50, 64, 65, 150]
)  # every number of registers, and more of them
def test_products_of_sparse_rows_are_those_of_dense_ones(dtype, k, rng):
    X = sparse.random_array((500, 70), density=0.1, rng=rng, format="csr")
    X = (10 * X).astype(dtype)
    table, resp = rng.normal(size=(k, 70)), rng.random((500, k))
    dense = X.toarray().astype(np.float64)
    for kernels in (cpu_products, plain_products):
        np.testing.assert_allclose(kernels.products(X, table), dense @ table.T, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(kernels.weighted_sums(X, resp), resp.T @ dense, rtol=1e-11, atol=1e-11)


def test_long_indices_lead_to_the_same_products(rng):
    X = sparse.random_array((300, 40), density=0.2, rng=rng, format="csr")
    table, resp = rng.normal(size=(7, 40)), rng.random((300, 7))
    found = []
    for kind in (np.int32, np.int64):
        X.indices, X.indptr = X.indices.astype(kind), X.indptr.astype(kind)
        found.append((cpu_products.products(X, table), cpu_products.weighted_sums(X, resp)))
    for short, long in zip(*found, strict=True):
        np.testing.assert_array_equal(short, long)


def test_rows_and_columns_without_values_count_for_nothing(rng):
    X = sparse.csr_array((4, 5), dtype=np.float64)
    assert (cpu_products.products(X, rng.normal(size=(3, 5))) == 0).all()
    assert (cpu_products.weighted_sums(X, rng.random((4, 3))) == 0).all()
