"""Cuts of trees, leaves, Newick and coefficients. The references are SciPy and plain loops."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.cluster import hierarchy as scipy_tree
from scipy.spatial.distance import squareform

from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import (
    banner_coefficient,
    check_tree,
    cophenet,
    cut,
    cut_tree,
    fcluster,
    inconsistent,
    leaves_list,
    optimal_leaf_ordering,
    to_newick,
)
from hierarchy.trees import METHODS, chain, rows, same_partition, tree

# cuts


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 3, 60, 500])
def test_cuts_are_those_of_scipy(method, n):
    Z = tree(n, method)
    for height in np.quantile(Z[:, 2], [0, 0.1, 0.5, 0.9, 1]):
        assert same_partition(cut(Z, height=height), scipy_tree.fcluster(Z, height, "distance"))
    for depth, limit in itertools.product([1, 2, 4], [0.0, 0.71, 1.0, 1.15]):
        expected = scipy_tree.fcluster(Z, limit, "inconsistent", depth=depth)
        assert same_partition(cut(Z, inconsistency=limit, depth=depth), expected)
    for k in {1, 2, n // 2, n - 1, n} - {0}:
        expected = scipy_tree.fcluster(Z, k, "maxclust")
        if len(set(expected)) == k:  # SciPy makes fewer where heights fall
            assert same_partition(cut(Z, n_clusters=k), expected)


@pytest.mark.parametrize("method", METHODS)
def test_n_clusters_is_exact_and_the_clusters_are_nested(method):
    Z = scipy_tree.linkage(np.random.default_rng(0).integers(0, 3, size=(60, 3)), method)  # many ties
    before = cut(Z, n_clusters=60)
    for k in range(59, 0, -1):
        labels = cut(Z, n_clusters=k)
        assert len(set(labels)) == k
        assert len(set(zip(before, labels, strict=True))) == k + 1
        before = labels


def test_labels_are_numbered_by_first_appearance():
    labels = cut(tree(200, "average"), n_clusters=17)
    assert labels.dtype == np.int32
    assert list(dict.fromkeys(labels.tolist())) == list(range(17))


def test_a_low_merge_above_a_high_one_is_not_kept_alone():
    Z = [[0, 1, 5.0, 2], [2, 3, 4.0, 3]]
    assert cut(Z, height=4.5).tolist() == [0, 1, 2]
    assert cut(Z, n_clusters=2).tolist() == [0, 0, 1]
    Z = np.array([[0, 1, 5.0, 2], [2, 4, 4.0, 3], [3, 5, 4.5, 4]])
    assert cut(Z, height=4.6).tolist() == [0, 1, 2, 3]
    assert len(set(scipy_tree.fcluster(Z, 4.6, "distance"))) == 4


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "one of n_clusters, height and inconsistency; got none"),
        ({"n_clusters": 2, "height": 1.0}, "got n_clusters, height"),
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1"),
        ({"n_clusters": 11}, "n_clusters must be from 1 to 10"),
        ({"height": -1.0}, "height must be a finite number of at least 0"),
        ({"height": np.nan}, "height must be a finite number"),
        ({"inconsistency": 1.0, "depth": 0}, "depth must be a whole number of at least 1"),
    ],
)
def test_invalid_cuts_are_errors(options, message):
    with pytest.raises(ParameterError, match=message):
        cut(tree(10, "ward"), **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("depth", [1, 2, 3, 50])
def test_inconsistency_is_that_of_scipy(method, depth):
    Z = tree(80, method)
    np.testing.assert_allclose(inconsistent(Z, depth), scipy_tree.inconsistent(Z, depth), rtol=1e-6, atol=1e-7)


# SciPy's flat clusters


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 3, 40])
def test_fcluster_gives_the_labels_of_scipy(method, n):
    for X in (rows(n), np.round(rows(n))):  # the second has ties
        Z = scipy_tree.linkage(X, method)
        cases = [("inconsistent", 0.8), ("inconsistent", 1.1), ("distance", np.median(Z[:, 2]))]
        for criterion, t in cases + [("maxclust", k) for k in (1, 2, 5, n, n + 1)]:
            np.testing.assert_array_equal(fcluster(Z, t, criterion), scipy_tree.fcluster(Z, t, criterion))
        R, heights = scipy_tree.inconsistent(Z, 3), scipy_tree.maxdists(Z)
        np.testing.assert_array_equal(fcluster(Z, 0.9, depth=3), fcluster(Z, 0.9, R=R))
        for criterion, t in (("monocrit", heights[0]), ("maxclust_monocrit", 2.0)):
            expected = scipy_tree.fcluster(Z, t, criterion, monocrit=heights)
            np.testing.assert_array_equal(fcluster(Z, t, criterion, monocrit=heights), expected)


@pytest.mark.parametrize("method", ["single", "complete", "average", "ward"])
def test_cut_tree_is_that_of_scipy(method):
    Z = tree(30, method)
    for options in ({}, {"n_clusters": 4}, {"n_clusters": [5, 2]}, {"height": [Z[3, 2], Z[20, 2]]}):
        np.testing.assert_array_equal(cut_tree(Z, **options), scipy_tree.cut_tree(Z, **options))


def test_invalid_arguments_of_flat_clusters():
    Z = tree(10, "average")
    with pytest.raises(ParameterError, match="criterion must be 'inconsistent'"):
        fcluster(Z, 1, "height")
    with pytest.raises(InputError, match=r"monocrit must be an array of shape \(9,\)"):
        fcluster(Z, 1, "monocrit")
    with pytest.raises(InputError, match=r"R must be an array of shape \(9, 4\)"):
        fcluster(Z, 1, R=np.ones(9))
    with pytest.raises(ParameterError, match="one of n_clusters and height"):
        cut_tree(Z, n_clusters=2, height=1.0)


# leaves, text, coefficients


@pytest.mark.parametrize("method", METHODS)
def test_leaves_are_those_of_scipy(method):
    Z = tree(300, method)
    np.testing.assert_array_equal(leaves_list(Z), scipy_tree.leaves_list(Z))


def parsed(text):
    """Names and lengths of a Newick text as nested lists, by a reader of its own."""
    tokens = re.findall(r"'(?:[^']|'')*'|[(),;]|:[^(),;]+|[^(),:;']+", text)
    stack = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            stack[-2].append([stack.pop(), None])
        elif token.startswith(":"):
            stack[-1][-1][1] = float(token[1:])
        elif token not in (",", ";"):
            name = token[1:-1].replace("''", "'") if token.startswith("'") else token
            stack[-1].append([name, None])
    return stack[0][0]


def ways(node):
    """(name, length of the way up) of all leaves, and of all pairs of them."""
    name, length = node
    if isinstance(name, str):
        return {name: length or 0.0}, {}
    (one, among), (two, others) = (ways(child) for child in name)
    between = {frozenset((a, b)): one[a] + two[b] for a in one for b in two}
    return {leaf: way + (length or 0.0) for leaf, way in {**one, **two}.items()}, {**among, **others, **between}


@pytest.mark.parametrize("method", ["average", "centroid"])
def test_paths_along_newick_branches_are_cophenetic_distances(method):
    Z = tree(30, method)
    names = [f"leaf {i}'s (no; [{i}]: a_b)" for i in range(30)]
    _, found = ways(parsed(to_newick(Z, names)))
    D = squareform(scipy_tree.cophenet(Z))
    for i, j in itertools.combinations(range(30), 2):
        assert found[frozenset((names[i], names[j]))] == pytest.approx(D[i, j])


def test_newick_by_hand():
    Z = [[0, 1, 1.0, 2], [2, 3, 4.0, 3]]
    assert to_newick(Z, ["a", "it's", ""]) == "('':2.0,(a:0.5,'it''s':0.5):1.5);"
    assert to_newick(Z, lengths=False) == "(2,(0,1));"
    with pytest.raises(ParameterError, match="names has 2 entries, but the tree has 3 leaves"):
        to_newick(Z, ["a", "b"])


def test_coefficients_by_hand():
    assert banner_coefficient([[0, 1, 1.0, 2], [2, 3, 4.0, 3]]) == pytest.approx(1 - (1 / 4 + 1 / 4 + 1) / 3)
    with pytest.raises(InputError, match="no merge above height 0"):
        banner_coefficient([[0, 1, 0.0, 2]])


def test_deep_trees_need_no_recursion():
    n = 200_000
    Z = chain(n)
    np.testing.assert_array_equal(np.sort(leaves_list(Z)), np.arange(n))
    np.testing.assert_array_equal(cut(Z, n_clusters=3), np.maximum(np.arange(n) - (n - 3), 0))
    falling = Z.copy()
    falling[:, 2] = Z[::-1, 2]
    assert len(set(cut(falling, height=10.0))) == n
    assert inconsistent(Z)[-1, 2] == 2
    text = to_newick(Z, lengths=False)
    assert text.count("(") == text.count(")") == n - 1


def test_a_tree_of_one_leaf():
    Z = np.empty((0, 4))
    assert leaves_list(Z).tolist() == cut(Z, n_clusters=1).tolist() == cut(Z, height=1.0).tolist() == [0]
    assert to_newick(Z) == "0;"
    assert cophenet(Z).shape == (0,)
    assert inconsistent(Z).shape == optimal_leaf_ordering(Z, [[1.0]]).shape == (0, 4)


# invalid linkage matrices


@pytest.mark.parametrize(
    "Z, message",
    [
        ([[0, 1, 1.0]], "its shape is"),
        ([0, 1, 1.0, 2], "its shape is"),
        ("tree", "must be a linkage matrix: numbers"),
        ([[0, 1, np.nan, 2]], "all numbers must be finite"),
        ([[0, 1, -1.0, 2]], "has the height -1: heights must be at least 0"),
        ([[0, 0.5, 1.0, 2]], "integers of at least 0"),
        ([[-1, 1, 1.0, 2]], "integers of at least 0"),
        ([[0, 3, 1.0, 2], [1, 2, 2.0, 3]], "cluster 3, which does not exist yet: with 3 leaves it can be at most 2"),
        ([[0, 1, 1.0, 2], [0, 2, 2.0, 3]], "one of them was already merged before"),
        ([[0, 0, 1.0, 2]], "one of them was already merged before"),
        ([[0, 1, 1.0, 3]], "has the size 3, but its two clusters have 2 leaves"),
    ],
)
def test_an_invalid_linkage_matrix_is_an_error(Z, message):
    with pytest.raises(InputError, match=message):
        check_tree(Z)


@settings(max_examples=80, deadline=None)
@given(
    arrays.arrays(np.float64, (4, 4), elements=st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, -1, 0.5, np.nan, np.inf])),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(width=32)), max_size=3),
)
def test_any_numbers_are_a_tree_or_an_error(noise, changes):
    Z = tree(5, "average")
    for i, j, value in changes:
        Z[i, j] = value
    for given_tree in (noise, Z):
        try:
            check_tree(given_tree)
        except InputError:
            continue
        assert scipy_tree.is_valid_linkage(given_tree)
        assert sorted(leaves_list(given_tree)) == list(range(5))
        assert len(set(cut(given_tree, n_clusters=3))) == 3


def test_distances_by_hand_are_those_of_pairwise():
    X, Z = rows(20), tree(20, "average")
    np.testing.assert_array_equal(
        optimal_leaf_ordering(Z, X, "manhattan"),
        optimal_leaf_ordering(Z, pairwise(X, metric="manhattan"), "precomputed"),
    )


@pytest.mark.parametrize("height", [0.1, 1.1, 7e-300])
def test_equal_heights_have_no_inconsistency(height):
    """Their mean may differ from them by rounding, which is no deviation."""
    chain = [[0, 1, height, 2], [2, 4, height, 3], [3, 5, height, 4]]
    found = inconsistent(chain, 3)
    assert found[:, 1].tolist() == found[:, 3].tolist() == [0, 0, 0]
