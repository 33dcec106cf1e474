"""Threshold trees: the cut is the best of all, every center has its leaf, and other choices of cuts can be used."""

import numpy as np

from coterie.explanation.columns import ArrayColumns, Column
from coterie.explanation.cost_ratio import Cut, Rows, cheapest_cut, goes_left, grow, leaves, tree_of_clusters
from coterie.explanation.rule_search import binned

K = 4


def rows(seed: int, with_category: bool = False) -> Rows:
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(60, 3)), rng.integers(0, K, 60)
    codes[:K] = range(K)
    X += 2 * rng.normal(size=(K, 3))[codes]
    columns = [binned(column, codes, K) for column in ArrayColumns(X, list("abc")).sample(np.arange(60))]
    centers = np.array([X[codes == j].mean(axis=0) for j in range(K)])
    bins = np.stack([np.searchsorted(column.thresholds, centers[:, j]) for j, column in enumerate(columns)], axis=1)
    if with_category:
        kinds = np.where(rng.random(60) < 0.9, codes % 3, rng.integers(0, 3, 60))
        columns.append(binned(Column("kind", kinds, ("x", "y", "z")), codes, K))
        bins = np.column_stack([bins, np.arange(K) % 3])
    distances = ((X[:, None] - centers) ** 2).sum(axis=2)
    return Rows(columns, bins, distances, codes)


def every_cut(data: Rows):
    """Cost, column and bin of all cuts that separate centers, one by one."""
    for j, column in enumerate(data.columns):
        for b in range(column.bins):
            is_left = data.center_bins[:, j] == b if column.levels else data.center_bins[:, j] <= b
            if is_left.all() or not is_left.any():
                continue
            mask = goes_left(column, Cut(j, b, 0.0, is_left), np.arange(len(data.codes)))
            left, right = data.distances[mask][:, is_left], data.distances[~mask][:, ~is_left]
            yield left.min(axis=1).sum() + right.min(axis=1).sum(), j, b


def test_the_cheapest_cut_is_the_best_of_all():
    for seed in range(10):
        data = rows(seed, with_category=seed % 2 == 1)
        cut = cheapest_cut(data, np.arange(60), np.arange(K))
        best = min(every_cut(data))
        assert np.isclose(cut.cost, best[0])
        assert any(np.isclose(cost, best[0]) and (j, b) == (cut.column, cut.bin) for cost, j, b in every_cut(data))


def test_every_center_has_one_leaf():
    for seed in range(5):
        data = rows(seed)
        tree = grow(data)
        found = []

        def collect(node, found=found):
            if node.cut is None:
                found.append(node.cluster)
            else:
                collect(node.left)
                collect(node.right)

        collect(tree)
        assert sorted(found) == list(range(K))
        assert set(np.unique(leaves(data, tree))) <= set(range(K))


def test_clusters_that_are_apart_are_their_leaves():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(K), 25)
    X = rng.normal(size=(100, 2)) + np.array([[0, 0], [20, 0], [0, 20], [20, 20]])[codes]
    sample = ArrayColumns(X, ["a", "b"]).sample(np.arange(100))
    columns = [binned(column, codes, K) for column in sample]
    ratio, text = tree_of_clusters(sample, columns, codes, np.ones(100), list("wxyz"), points=X)
    assert np.isclose(ratio, 1.0)
    assert len(text.splitlines()) == 6
    assert all(f"cluster {name}" in text for name in "wxyz")


def test_centers_that_no_threshold_separates_share_a_leaf():
    data = rows(0)
    same = Rows(data.columns, np.zeros_like(data.center_bins), data.distances, data.codes)
    tree = grow(same)
    assert tree.cut is None
    assert len(np.unique(leaves(same, tree))) == 1
