"""K-medoids against printed results: R's cluster, the p-median problems of the OR-Library, a toy."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

from coterie import KMedoids
from reference.shared_data import FOLDER, load, published, read_index


@pytest.mark.parametrize("k", [3, 4])
def test_pam_of_ruspini(k):
    printed, X = published(f"rcluster.pam.ruspini.k{k}")["value"], load("r/ruspini")
    model = KMedoids(k, init="build").fit(X)
    assert model.history_[0] / len(X) == pytest.approx(printed["build"], abs=1e-5)
    assert model.inertia_ / len(X) == pytest.approx(printed["swap"], abs=1e-5)
    assert sorted(model.medoid_indices_ + 1) == printed["medoid_ids_1based"]


def test_pam_of_rows_with_holes():
    """R's rule: absolute differences over the columns both rows have, times all columns by those."""
    printed = published("rcluster.pam.small")["value"]
    X = np.array(printed["x"], dtype=float)
    apart = np.abs(X[:, None] - X)
    D = np.nansum(apart, axis=2) * X.shape[1] / (~np.isnan(apart)).sum(axis=2)
    two, one = (KMedoids(k, metric="precomputed", init="build").fit(D) for k in (2, 1))
    assert sorted(two.medoid_indices_ + 1) == printed["k2"]["medoids_1based"]
    assert two.inertia_ / 8 == printed["k2"]["objective"]
    assert one.medoid_indices_[0] + 1 == printed["k1"]["medoid"]
    assert one.inertia_ / 8 == printed["k1"]["objective"]


def test_a_toy():
    printed = published("rust.fasterpam.toy")["value"]
    D = np.zeros((5, 5))
    D[np.tril_indices(5, -1)] = printed["lower"]
    two, one = (KMedoids(k, metric="precomputed", init="build").fit(D + D.T) for k in (2, 1))
    assert two.inertia_ == printed["k2"]["loss"]
    assert one.inertia_ == printed["k1"]["loss"]
    assert two.labels_[0] == two.labels_[1] == two.labels_[2] != two.labels_[3] == two.labels_[4]


def road_distances(name):
    """All shortest paths; of an edge that is listed twice the last cost counts."""
    with gzip.open(FOLDER / "pmed" / f"{name}.txt.gz", "rt") as lines:
        n, _, p = map(int, next(lines).split())
        roads = np.full((n, n), np.inf)
        for line in lines:
            if line.strip():
                a, b, cost = map(int, line.split())
                roads[a - 1, b - 1] = roads[b - 1, a - 1] = cost
    return shortest_path(roads, directed=False), p


@pytest.mark.parametrize("name", ["pmed1", "pmed5", "pmed8", "pmed13", "pmed17", "pmed31"])
def test_p_median_problems_are_solved(name):
    """A local optimum of one start is within a few per cent of the optimum; the best of many starts is the optimum."""
    read_index("published.json")
    D, p = road_distances(name)
    best = published("pmed.public")["value"][name]
    one = KMedoids(p, metric="precomputed", random_state=0).fit(D)
    assert best <= one.inertia_ <= 1.06 * best
    many = KMedoids(p, metric="precomputed", init="random", n_init=100, random_state=0).fit(D)
    assert many.inertia_ == best
