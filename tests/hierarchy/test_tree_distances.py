"""Cophenetic distances and the order of leaves. The references are SciPy and plain loops."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from scipy.cluster import hierarchy as scipy_tree
from scipy.spatial.distance import pdist, squareform

from coterie import machine
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import (
    cophenet,
    cophenetic_correlation,
    leaves_list,
    optimal_leaf_ordering,
)
from coterie.hierarchy.tree import as_tree
from coterie.kernels.cpu import dendrograms as compiled
from coterie.kernels.plain import dendrograms as plain
from hierarchy.trees import METHODS, chain, rows, tree
from many_parts import many_strips

# cophenetic distances


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 3, 40, 500])
def test_cophenetic_distances_are_those_of_scipy(method, n):
    Z = tree(n, method)
    found = cophenet(Z)
    np.testing.assert_array_equal(found, scipy_tree.cophenet(Z))
    single = cophenet(Z, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, found.astype(np.float32))


@pytest.mark.parametrize("n", [2, 3, 30])
def test_compiled_cophenetic_rows_are_the_plain_ones(n):
    for Z in (tree(n, "median", seed=n), tree(n, "average"), chain(n)):
        t = as_tree(Z)
        where = t.parent, t.siblings(), t.size, t.first, t.height
        for start, stop in ((0, n), (1, n), (n // 2, n // 2 + 1)):
            out = np.full((2, n * n), -1.0)
            for kernels, room in zip((plain, compiled), out, strict=True):
                kernels.cophenetic_rows(*where, start, stop, np.empty(n), room)
            np.testing.assert_array_equal(*out)


@pytest.mark.parametrize("n", [3, 50, 450])
def test_correlation_is_that_of_scipy_however_distances_come(n):
    X = rows(n)
    Y, Z = pdist(X), tree(n, "average")
    expected, distances = scipy_tree.cophenet(Z, Y)
    assert cophenetic_correlation(Z, X) == pytest.approx(expected, abs=1e-12)
    assert cophenetic_correlation(Z, X.astype(np.float32)) == pytest.approx(expected, abs=1e-5)
    assert cophenetic_correlation(Z, Y, "precomputed") == pytest.approx(expected, abs=1e-12)
    assert cophenetic_correlation(Z, squareform(Y), "precomputed") == pytest.approx(expected, abs=1e-12)
    found, same = cophenet(Z, Y)
    assert found == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(same, distances)


def test_correlation_with_another_metric():
    X, Z = rows(60), tree(60, "complete")
    expected = np.corrcoef(pdist(X, "minkowski", p=3), scipy_tree.cophenet(Z))[0, 1]
    assert cophenetic_correlation(Z, X, "minkowski", p=3) == pytest.approx(expected, abs=1e-12)


def test_distances_far_from_zero_keep_their_correlation():
    Z, Y = tree(40, "average"), 1e6 + pdist(rows(40))
    expected = np.corrcoef(pdist(rows(40)), scipy_tree.cophenet(Z))[0, 1]
    assert cophenetic_correlation(Z, Y, "precomputed") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads_change_nothing(n_jobs, monkeypatch):
    many_strips(monkeypatch, 3000 * 60)
    X, Z = rows(3000), tree(3000, "single")
    found, distances = cophenetic_correlation(Z, X, n_jobs=n_jobs), scipy_tree.cophenet(Z)
    assert found == cophenetic_correlation(Z, X, n_jobs=1)
    assert found == pytest.approx(np.corrcoef(pdist(X), distances)[0, 1], abs=1e-12)
    np.testing.assert_array_equal(cophenet(Z, n_jobs=n_jobs), distances)


def test_constant_distances_have_no_correlation():
    with pytest.raises(InputError, match="at least 3"):
        cophenetic_correlation(tree(2, "single"), rows(2))
    with pytest.raises(InputError, match="all distances are equal"):
        cophenetic_correlation([[0, 1, 1, 2], [2, 3, 2, 3]], np.full(3, 0.1), "precomputed")
    with pytest.raises(InputError, match="all heights of Z are equal"):
        cophenetic_correlation([[0, 1, 1, 2], [2, 3, 1, 3]], rows(3))
    with pytest.raises(InputError, match="X has 4 rows and the tree 3 leaves"):
        cophenetic_correlation(tree(3, "single"), rows(4))
    with pytest.raises(InputError, match="Y has 4 distances: the condensed distance matrix of 3 leaves has 3"):
        cophenet(tree(3, "single"), np.ones(4))
    with pytest.raises(InputError, match=re.escape("Y[1] is nan")):
        cophenet(tree(3, "single"), [1.0, np.nan, 2.0])
    with pytest.raises(ParameterError, match="dtype must be 'float64' or 'float32'; got 'int64'"):
        cophenet(tree(3, "single"), dtype=int)


def test_too_little_memory_is_an_error(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 1000)
    monkeypatch.setattr(machine, "SMALL_OBJECT", 0)
    with pytest.raises(InputError, match="cophenetic_correlation, which does not store the distances"):
        cophenet(tree(50, "average"))
    with pytest.raises(InputError, match="tables of an optimal leaf order"):
        optimal_leaf_ordering(tree(50, "average"), rows(50))


# the order of leaves


def line_length(Z, D):
    order = leaves_list(Z)
    return D[order[:-1], order[1:]].sum()


def every_flip(Z):
    for flips in itertools.product([False, True], repeat=len(Z)):
        flipped, flip = Z.copy(), np.array(flips)
        flipped[flip, :2] = flipped[flip, 1::-1]
        yield flipped


@pytest.mark.parametrize("method", ["average", "single", "median"])
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_no_other_order_of_leaves_is_shorter(method, n):
    for seed in range(4):
        X, Z = rows(n, seed), tree(n, method, seed)
        D = squareform(pdist(X))
        ordered = optimal_leaf_ordering(Z, X)
        np.testing.assert_array_equal(np.sort(ordered[:, :2]), np.sort(Z[:, :2]))
        assert line_length(ordered, D) == pytest.approx(min(line_length(flip, D) for flip in every_flip(Z)))


@pytest.mark.parametrize("method", ["average", "ward", "single"])
def test_the_path_is_no_longer_than_that_of_scipy(method):
    """Whose is not the shortest there is, for some trees."""
    X, Z = rows(400), tree(400, method)
    Y = pdist(X)
    expected = line_length(scipy_tree.optimal_leaf_ordering(Z, Y), squareform(Y))
    for ordered in (
        optimal_leaf_ordering(Z, X),
        optimal_leaf_ordering(Z, Y, "precomputed"),
        optimal_leaf_ordering(Z, X, n_jobs=1),
    ):
        assert line_length(ordered, squareform(Y)) <= expected * (1 + 1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "bounds", [(0, 3, 7, 9, 14), (0, 0, 1, 5, 12), (2, 8, 11, 11, 12), (0, 0, 1, 1, 2), (0, 5, 9, 10, 11)]
)
def test_compiled_paths_are_the_plain_ones(bounds, dtype):
    D = np.abs(rows(20) @ rows(20, 1).T).astype(dtype)
    a, _, b, _, _ = bounds
    M = np.stack([D, D]) * 2
    for table, kernels in zip(M, (plain, compiled), strict=True):
        for start, stop in ((a, (a + b) // 2), ((a + b) // 2, b)):
            kernels.path_lengths(D, *bounds, start, stop, table, np.empty((3, 2, 20), dtype))
    np.testing.assert_array_equal(*M)


@pytest.mark.parametrize("method", METHODS)
def test_distances_of_one_dimension_are_condensed(method):
    X, Z = rows(30), tree(30, method)
    np.testing.assert_array_equal(optimal_leaf_ordering(Z, pdist(X)), optimal_leaf_ordering(Z, X))
    assert cophenetic_correlation(Z, pdist(X)) == pytest.approx(cophenetic_correlation(Z, X))
