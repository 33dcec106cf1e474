"""Sums of distances to clusters: compiled code beside its NumPy twin, and beside a loop."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import kernels
from coterie.kernels.cpu import silhouette as cpu
from coterie.kernels.plain import silhouette as plain


def all_sums(ops, X, w, codes):
    """In units of the first, for the kernels have units of their own."""
    counts = np.bincount(codes)
    given, sums = ops.layout(X, w, codes, counts), np.zeros((len(counts), ops.padded_size(counts, X.itemsize)))
    for block in ops.blocks(given):
        for clusters, rows, values in ops.sums(given, *block):
            sums[clusters, rows] += values
    sums = sums[:, given.position]
    return sums / sums.max()


def naive(X, w, codes):
    X = X.astype(np.float64)
    sums = np.zeros((codes.max() + 1, len(X)))
    for i, x in enumerate(X):
        sums[codes[i]] += w[i] * np.sqrt(((X - x) ** 2).sum(axis=1))
    return sums / sums.max()


def rows(n, d, k, dtype, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return rng.normal(size=(n, d)).astype(dtype), rng.random(n), codes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "n, d, k", [(2, 1, 2), (47, 1, 2), (49, 3, 2), (300, 7, 5), (2000, 2, 3), (1900, 33, 60), (700, 300, 2)]
)
def test_sums_are_those_of_a_loop(n, d, k, dtype):
    X, w, codes = rows(n, d, k, dtype)
    want = naive(X, w, codes)
    np.testing.assert_allclose(all_sums(plain, X, w, codes), want, rtol=1e-12)
    np.testing.assert_allclose(all_sums(cpu, X, w, codes), want, rtol=2e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent, shift", [(-90, 0.0), (90, 0.0), (0, 4096.0)])
def test_size_and_place_of_the_rows_do_not_matter(exponent, shift, dtype):
    """Squares of the rows as they are would overflow, or vanish, in float32; differences do not cancel."""
    X, w, codes = rows(500, 4, 3, dtype)
    X = np.round(X * 256) / dtype(256)
    want = all_sums(cpu, X, w, codes)
    np.testing.assert_array_equal(all_sums(cpu, np.ldexp(X, exponent) + dtype(shift), w, codes), want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_and_weights_of_any_size(dtype):
    X, w, codes = rows(400, 4, 3, dtype)
    counts = np.bincount(codes)
    given = cpu.layout(np.full_like(X, 1e30), w, codes, counts)
    assert all(not found.values.any() for block in cpu.blocks(given) for found in cpu.sums(given, *block))
    np.testing.assert_array_equal(all_sums(cpu, X, w * 2.0**200, codes), all_sums(cpu, X, w, codes))


def test_blocks_are_all_pairs_of_rows_once():
    X, w, codes = rows(9000, 1, 4, np.float32)
    given = cpu.layout(X, w, codes, np.bincount(codes))
    met = np.zeros((len(given.cluster), len(given.cluster)), int)
    for start, stop, other, end in cpu.blocks(given):
        met[start:stop, other:end] += 1
    assert len(cpu.blocks(given)) > 1
    assert (np.triu(met) == np.triu(np.ones_like(met))).all()


@pytest.mark.usefixtures("compiled_kernels")
def test_small_work_needs_no_compiler():
    assert kernels.select("silhouette", 100, 4) is plain
    assert kernels.select("silhouette", 1000, 4) is cpu
