"""Trees equal SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster import hierarchy as scipy_hierarchy
from scipy.spatial.distance import pdist, squareform

from coterie import hierarchy
from fuzz import tables
from fuzz.call import attempt
from fuzz.finding import require, require_close, require_finite, require_same
from fuzz.law import Case, law

Array = np.ndarray[Any, Any]

METHODS = ("single", "complete", "average", "weighted", "ward", "centroid", "median")
MONOTONE = METHODS[:5]


def tree(case: Case, methods: tuple[str, ...] = METHODS) -> tuple[Array, Array, str]:
    """Rows without equal distances, and their tree."""
    X = tables.blobs(case.draw, case.draw.integer(2, 40), case.draw.integer(1, 4))
    method = case.draw.one_of(methods)
    case.note(f"method {method!r}, {X.shape}")
    return X, attempt(hierarchy.linkage, X, method), method


@law(["hierarchy.linkage"], weight=6)
def linkage_is_that_of_scipy(case: Case) -> None:
    X, Z, method = tree(case)
    expected = scipy_hierarchy.linkage(X, method)
    require_close(Z[:, 2], expected[:, 2], "heights", 1e-7, 1e-9)
    require_same(np.sort(Z[:, :2], axis=1), np.sort(expected[:, :2], axis=1), "merges")


@law(["hierarchy.linkage"], weight=6)
def linkage_of_any_table_is_a_tree(case: Case) -> None:
    """With ties and duplicates merges may differ; heights may not, but by rounding."""
    n, d = case.draw.integer(2, 60), case.draw.integer(1, 4)
    X = tables.hostile(case.draw, n, d)
    method = case.draw.one_of(METHODS)
    case.note(f"method {method!r}, {X.shape} of {X.dtype}, from {X.min():g} to {X.max():g}")
    Z = attempt(hierarchy.linkage, X, method, n_jobs=1)
    require_finite(Z, "Z")
    require(scipy_hierarchy.is_valid_linkage(Z.astype(float)), "Z is not a valid tree")
    require_same(attempt(hierarchy.linkage, X, method, n_jobs=3), Z, "n_jobs=3")
    if method in MONOTONE:
        require((np.diff(Z[:, 2]) >= 0).all(), "heights fall")


@law(["hierarchy.linkage"], weight=2)
def memory_modes_of_linkage_agree(case: Case) -> None:
    X = tables.benign(case.draw, case.draw.integer(2, 40), case.draw.integer(1, 4))
    method = case.draw.one_of(("single", "ward", "average", "complete"))
    heights = {}
    for memory in ("auto", "linear", "matrix"):
        try:
            heights[memory] = hierarchy.linkage(X, method, memory=memory)[:, 2]
        except ValueError:  # not every method has every mode
            continue
    for memory, each in heights.items():
        require_close(each, heights["auto"], f"memory={memory!r}, method={method!r}", 1e-7, 1e-9)


def inconsistency(Z: Any, depth: int) -> Any:
    """By definition. SciPy subtracts the square of the mean, and loses all digits where heights are nearly equal."""
    n = len(Z) + 1

    def heights(merge: int, levels: int) -> list[float]:
        below = [int(node) - n for node in Z[merge, :2] if node >= n and levels > 1]
        return [float(Z[merge, 2]), *(height for child in below for height in heights(child, levels - 1))]

    found = np.zeros((n - 1, 4))
    for merge in range(n - 1):
        near = np.array(heights(merge, depth))
        spread = near.std(ddof=1) if near.min() < near.max() else 0.0
        found[merge] = near.mean(), spread, len(near), (near[0] - near.mean()) / spread if spread > 0 else 0.0
    return found


@law(["hierarchy.fcluster", "hierarchy.cut_tree"])
def flat_clusters_are_those_of_scipy(case: Case) -> None:
    X, Z, _ = tree(case)
    k, limit = case.draw.integer(1, len(X)), float(np.quantile(Z[:, 2], case.draw.rng.random()))
    for criterion, t in (("maxclust", k), ("distance", limit)):
        expected = scipy_hierarchy.fcluster(Z, t, criterion)
        require_same(attempt(hierarchy.fcluster, Z, t, criterion), expected, f"fcluster({t}, {criterion!r})")
    require_same(attempt(hierarchy.cut_tree, Z, k)[:, 0], hierarchy.cut(Z, k), "cut_tree")


@law(["hierarchy.cut", "hierarchy.inconsistent", "hierarchy.leaves_list", "hierarchy.cophenet", "hierarchy.check_tree"],
     weight=2)  # fmt: skip
def what_is_read_from_trees_is_that_of_scipy(case: Case) -> None:
    X, Z, _ = tree(case, MONOTONE)
    n = len(X)
    require_same(hierarchy.check_tree(Z), Z, "check_tree")
    k = case.draw.integer(1, n)
    require(len(np.unique(attempt(hierarchy.cut, Z, n_clusters=k))) == k, f"cut into {k} clusters")
    height = float(np.quantile(Z[:, 2], case.draw.rng.random()))
    flat = scipy_hierarchy.fcluster(Z, height, "distance")
    require_same_partition(attempt(hierarchy.cut, Z, height=height), flat, "cut by height")
    depth = case.draw.integer(1, 4)
    found, expected = attempt(hierarchy.inconsistent, Z, depth), inconsistency(Z, depth)
    size = float(np.abs(Z[:, 2]).max())
    require_close(found[:, :3], expected[:, :3], "inconsistent", 1e-7, 1e-12 * size)
    sure = expected[:, 1] > 1e-6 * size  # of heights that differ by rounding the deviation has no digit
    require_close(found[sure, 3], expected[sure, 3], "inconsistency", 1e-7, 1e-9)
    require_same(np.sort(hierarchy.leaves_list(Z)), np.arange(n), "leaves")
    require_close(attempt(hierarchy.cophenet, Z), scipy_hierarchy.cophenet(Z), "cophenet", 1e-9)


@law(["hierarchy.optimal_leaf_ordering", "hierarchy.cophenetic_correlation"])
def comparisons_with_distances_are_those_of_scipy(case: Case) -> None:
    X, Z, _ = tree(case, MONOTONE)
    distances = pdist(X)
    if len(X) > 2:
        correlation, _ = scipy_hierarchy.cophenet(Z, distances)
        require_close(
            attempt(hierarchy.cophenetic_correlation, Z, X), correlation, "cophenetic_correlation", 1e-7, 1e-9
        )
    order = hierarchy.leaves_list(attempt(hierarchy.optimal_leaf_ordering, Z, X))
    best = scipy_hierarchy.leaves_list(scipy_hierarchy.optimal_leaf_ordering(Z, distances))
    square = squareform(distances)
    length, expected = (float(square[each[:-1], each[1:]].sum()) for each in (order, best))
    require(length <= expected * (1 + 1e-7) + 1e-9, f"leaf order of length {length}, that of SciPy {expected}")
    places = np.argsort(order)
    for k in range(1, len(X) + 1):
        for cluster in range(k):
            mine = places[hierarchy.cut(Z, n_clusters=k) == cluster]
            require(np.ptp(mine) == len(mine) - 1, f"cluster {cluster} of {k} is not together in the leaf order")


@law(["hierarchy.to_newick", "hierarchy.banner_coefficient"])
def trees_as_text_and_as_one_number(case: Case) -> None:
    X, Z, _ = tree(case, MONOTONE)
    names = [f"row {i}" if i % 2 else f"r'{i}(" for i in range(len(X))]
    text = attempt(hierarchy.to_newick, Z, names)
    require(text.count(",") == len(X) - 1 and text.endswith(";"), f"not {len(X)} leaves: {text[:80]}")
    require(0.0 <= attempt(hierarchy.banner_coefficient, Z) <= 1.0, "banner_coefficient is not between 0 and 1")


def require_same_partition(a: Array, b: Array, what: str) -> None:
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    require(len(pairs) == len(set(a.tolist())) == len(set(b.tolist())), f"{what}: another partition")
