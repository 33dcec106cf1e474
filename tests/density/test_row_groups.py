"""Groups of rows leave out far rows, and change no bit of a result."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from coterie import HDBSCAN
from coterie.datasets import make_blobs
from coterie.density import kd_rows, row_distances
from coterie.density.row_distances import RowDistances
from coterie.distances import as_distance

rng = np.random.default_rng(0)
WIDE = make_blobs(700, 24, centers=7, cluster_std=0.5, random_state=0)[0]
TABLES = {
    "far clusters": WIDE,
    "noise": rng.normal(size=(300, 20)),
    "curve": np.outer(np.linspace(0, 9, 400), rng.normal(size=18)) + 0.01 * rng.normal(size=(400, 18)),
    "an outlier": np.concatenate([WIDE[:200], np.full((1, 24), 1e7)]),
    "far from zero": WIDE[:300] + 1e5,
    "repeated": np.repeat(rng.normal(size=(40, 17)), 6, axis=0),
    "integers": rng.integers(0, 2, size=(300, 17)).astype(float),
    "equal": np.ones((200, 17)),
    "tiny": np.ldexp(WIDE[:200], -500),
}


@pytest.fixture
def _small_groups(monkeypatch):
    """Groups also for few rows."""
    monkeypatch.setattr(row_distances, "MATRIX_ROWS", 0)
    monkeypatch.setattr(kd_rows, "MAX_COLUMNS", 0)
    monkeypatch.setattr(sys.modules["coterie.distances.pairwise"], "STRIP", 1 << 14)
    monkeypatch.setattr(row_distances, "MIN_STRIP_ROWS", 1)
    monkeypatch.setattr(row_distances, "MIN_ROWS", 2)
    monkeypatch.setattr(row_distances, "GROUP_ROWS", 12)
    monkeypatch.setattr(row_distances, "SAMPLE", 100)


def grouped(X):
    distance = as_distance("euclidean").fitted(X)
    return row_distances.group_rows(RowDistances(distance, distance.prepare(X), 1))


@pytest.mark.usefixtures("_small_groups")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", TABLES)
def test_no_distance_is_below_its_bound(name, dtype):
    X = TABLES[name]
    if dtype is np.float32 and name == "tiny":
        X = np.ldexp(X, 440)
    distances, groups, order = grouped(X.astype(dtype))
    rows = np.arange(len(X))
    assert sorted(order) == rows.tolist()
    assert groups.start[-1] == len(X)
    assert (np.diff(groups.start) > 0).all()
    smallest = np.minimum.reduceat(distances.table(rows), groups.start[:-1], axis=1)
    assert (groups.bounds <= smallest).all()
    if name == "far clusters":
        assert (groups.bounds > 0.5 * smallest).mean() > 0.7  # and most bounds are useful


@pytest.mark.usefixtures("_small_groups")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", TABLES)
def test_groups_change_no_bit_of_the_tree(name, dtype, monkeypatch):
    X = TABLES[name]
    X = (np.ldexp(X, 440) if dtype is np.float32 and name == "tiny" else X).astype(dtype)
    w = np.random.default_rng(1).integers(1, 4, size=len(X)) / 2
    with_groups = [HDBSCAN(5).fit(X), HDBSCAN(5).fit(X, sample_weight=w)]
    monkeypatch.setattr(row_distances, "MIN_ROWS", 10**9)
    for model, other in zip(with_groups, [HDBSCAN(5).fit(X), HDBSCAN(5).fit(X, sample_weight=w)], strict=True):
        np.testing.assert_array_equal(model.single_linkage_tree_[:, 2], other.single_linkage_tree_[:, 2])
        np.testing.assert_array_equal(model.labels_, other.labels_)
        np.testing.assert_array_equal(model.probabilities_, other.probabilities_)


@pytest.mark.usefixtures("_small_groups")
def test_most_distances_between_far_clusters_are_not_computed(monkeypatch):
    sizes = []
    compute = RowDistances.table

    def table(self, rows, columns=None):
        result = compute(self, rows, columns)
        sizes.append(result.size)
        return result

    monkeypatch.setattr(RowDistances, "table", table)
    HDBSCAN(5).fit(WIDE)
    computed = sum(sizes)
    sizes.clear()
    monkeypatch.setattr(row_distances, "MIN_ROWS", 10**9)
    HDBSCAN(5).fit(WIDE)
    assert computed < 0.7 * sum(sizes)
