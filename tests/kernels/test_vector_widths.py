"""The same kernels compiled for narrower registers than this machine has."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from itertools import product

import pytest

HEAD = """
import numpy as np
from scipy import sparse
from coterie.kernels import cpu, plain
from coterie.kernels.cpu import dtw as warped, hard_assignment, low_precision, nan_kmeans, products
from coterie.kernels.plain import dtw as plain_warped, nan_kmeans as plain_nan_kmeans
from coterie.kernels.cpu import silhouette, spanning_tree, ward
from coterie.kernels.plain import silhouette as plain_silhouette
from coterie.kernels.cpu import linkage as merges
from coterie.kernels.plain import linkage as plain_merges
from coterie.kernels.cpu.vectors import REGISTER
assert REGISTER == {register}, REGISTER
rng, dtype = np.random.default_rng(0), np.{dtype}
def tables():
    for n, d, k, apart in ((300, 2, 5, 0), (130, 19, 40, 0), (900, 19, 40, 1000)):
        X = rng.normal(size=(n, d)).astype(dtype) + 100 + apart * rng.integers(0, 3, size=(n, 1)).astype(dtype)
        yield n, d, k, X, X[:k].copy(), np.full(n, -1, np.int32), np.full(n, -1, np.int32)
"""
CENTERS = """
for n, d, k, X, centers, labels, other in tables():
    lower = np.zeros(n, np.float32)
    for _ in range(2):
        got = cpu.lloyd(X, None, centers, centers, labels, lower)
    want = plain.lloyd(X, None, centers, centers, other, lower)
    assert np.array_equal(labels, other)
    np.testing.assert_allclose(got.sum_dx, want.sum_dx, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(got.cost, want.cost, rtol=1e-5)
    if dtype == np.float32:  # integer scores, by ordinary arithmetic
        labels[:] = -1
        buffer, low = cpu.thread_buffer(centers, X.dtype), low_precision.workspace(k, d)
        hard_assignment.nearest(cpu.read_only(X), cpu.read_only(centers), labels, buffer, low)
        assert np.array_equal(labels, other)
    near, far = np.full(n, np.inf, dtype), np.full(n, np.inf, dtype)
    np.testing.assert_allclose(
        cpu.potentials(X, None, 1.0, centers, near), plain.potentials(X, None, 1.0, centers, far), rtol=1e-5
    )
    rounds = cpu.plusplus_rounds(X, None, 8, 3, 1.0, None)
    rounds.start(X[0])
    rounds.run(np.random.default_rng(0).random((40, 2, 12)))
    chosen, others = np.append(0, rounds.rows(rounds.progress()[0])), np.full(n, np.inf, dtype)
    for center in X[chosen[:-1]]:
        cpu.potentials(X, None, 1.0, center[None], others)
    assert np.array_equal(rounds.closest, others)
"""
OTHERS = """
for n, d, k, X, centers, labels, other in tables():
    holes = X.copy()
    holes[rng.random(X.shape) < 0.3] = np.nan
    got, want = nan_kmeans.lloyd(holes, None, centers, labels), plain_nan_kmeans.lloyd(holes, None, centers, other)
    assert np.array_equal(labels, other) and np.array_equal(got.observed, want.observed)
    np.testing.assert_allclose(got.sum_dx, want.sum_dx, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(got.cost, want.cost, rtol=1e-5)
    for m in (2.0, 1.6):
        got, want = cpu.fuzzy(X, None, centers, m), plain.fuzzy(X, None, centers, m)
        np.testing.assert_allclose(got.weight, want.weight, rtol=1e-4)
        np.testing.assert_allclose(got.sum_dx, want.sum_dx, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(got.cost, want.cost, rtol=1e-5)
    sums = []
    for ops in (silhouette, plain_silhouette):
        counts = np.bincount(labels)
        given = ops.layout(X, np.ones(n), labels, counts)
        total = np.zeros((len(counts), ops.padded_size(counts, X.itemsize)))
        for block in ops.blocks(given):
            for clusters, rows, values in ops.sums(given, *block):
                total[clusters, rows] += values
        sums.append(total[:, given.position] / total.max())
    np.testing.assert_allclose(*sums, rtol=1e-4, atol=1e-6)
words = sparse.random_array((90, 30), density=0.2, rng=rng, format="csr").astype(dtype)
for k in (3, 20, 70):
    table, resp = rng.normal(size=(k, 30)), rng.random((90, k))
    np.testing.assert_allclose(products.products(words, table), words.toarray() @ table.T, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(products.weighted_sums(words, resp), resp.T @ words.toarray(), rtol=1e-6, atol=1e-6)
series = rng.normal(size=(40, 12)).astype(dtype).reshape(-1, 1)
start, length = np.arange(40) * 12, np.full(40, 12)
low, high = np.maximum(np.arange(12) - 3, 0), np.minimum(np.arange(12) + 4, 12)
tables = np.empty((2, 5, 40), dtype)
for ops, out in zip((warped, plain_warped), tables):
    ops.path_costs(series, start[:5], length[:5], series, start, length, low, high, False, np.empty(0, dtype), out)
assert np.array_equal(*tables)
X = rng.normal(size=(300, 3)).astype(dtype)
D = ((X[:, None] - X) ** 2).sum(axis=2)
ones, kind, quiet = np.ones(300), plain_merges.WARD, lambda done: None
want = plain_merges.nearest_neighbour_chain(D.copy(), ones, kind, False, quiet).height
got = merges.nearest_neighbour_chain(D.copy(), ones, kind, False, quiet).height
np.testing.assert_allclose(got, want, rtol=1e-3)
np.testing.assert_allclose(np.sort(ward.ward(X, ones, quiet).height), np.sort(want), rtol=1e-3)
left, right = spanning_tree.prim(X, quiet)
np.testing.assert_allclose(np.sort(D[left, right]), np.sort(plain_merges.prim(D).height), rtol=1e-4)
"""

SSE = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+fxsr,+cmov"
WIDTHS = {
    "avx2": ("haswell", SSE + ",+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+xsave", 32),
    "sse": ("nehalem", SSE, 16),
}


def narrow_registers(*quick):
    """Parametrise a test by width and type; all but the `quick` case, if there is one, are slow.

    Each case compiles kernels for its processor, unless they are in the cache: its keys contain the name and the
    features of a processor. The quick suite has one case, of Gaussian kernels.
    """
    cases = product(WIDTHS, ("float32", "float64"))
    marked = [pytest.param(*case, marks=() if case == quick else pytest.mark.slow) for case in cases]
    return pytest.mark.parametrize("width, dtype", marked)


def run(program, width, dtype):
    """Run a program in a process whose kernels are compiled for another processor."""
    cpu, features, register = WIDTHS[width]
    env = {name: value for name, value in os.environ.items() if name != "COTERIE_CPU_LEVEL"}
    env |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    code = program.format(register=register, dtype=dtype)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86 processors")
@narrow_registers()
def test_narrow_registers_give_the_same_centers(width, dtype):
    run(HEAD + CENTERS, width, dtype)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86 processors")
@narrow_registers()
def test_narrow_registers_give_the_same_results_of_other_kernels(width, dtype):
    run(HEAD + OTHERS, width, dtype)
