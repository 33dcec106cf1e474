"""Clusters that are known, because the rows were made of them, are found.

The centroid index counts clusters that are missed [1]_: every center points to the nearest one of the other solution,
and those that none points to are orphans. Index 0 is every cluster found, whatever its boundary.

.. [1] Fränti, Rezaei & Zhao (2014), Centroid index: cluster level similarity measure, Pattern Recognition 47.
"""

import numpy as np
import pytest

from coterie import KMeans
from reference.shared_data import FOLDER, load


def centroid_index(a, b):
    squares = ((a[:, None] - b) ** 2).sum(axis=-1)
    return max(len(b) - len(set(squares.argmin(axis=1))), len(a) - len(set(squares.argmin(axis=0))))


def made_of(table):
    """The rows, and the mean of every cluster they were drawn from."""
    X = load(table)
    y = np.loadtxt(FOLDER / f"{table}.labels.csv", dtype=int, delimiter=",", skiprows=1, usecols=0)
    return X, np.stack([X[y == j].mean(axis=0) for j in range(1, y.max() + 1)])


def missed(table, seed):
    X, centers = made_of(table)
    return centroid_index(KMeans(len(centers), search="fast", random_state=seed).fit(X).cluster_centers_, centers)


def test_the_index_counts_clusters_without_a_center():
    true = np.array([[0.0], [10.0], [20.0]])
    assert centroid_index(true, true[::-1] + 1.0) == 0
    two_in_one = np.array([[-0.5], [0.5], [15.1]])
    assert centroid_index(two_in_one, true) == centroid_index(true, two_in_one) == 1
    assert centroid_index(np.array([[-0.5], [0.0], [0.5]]), true) == 2


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["s1", "s2", "a1", "a3", "unbalance", "r15"])
def test_every_cluster_is_found(name, seed):
    assert missed(f"sipu/{name}", seed) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s1", "s2", "a1", "a3", "unbalance", "r15"])
def test_every_cluster_is_found_from_any_seed(name):
    assert [missed(f"sipu/{name}", seed) for seed in range(2, 20)] == [0] * 18


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_all_hundred_clusters_of_a_hundred_thousand_rows_are_found(seed):
    assert missed("sipu/birch1", seed) == 0
