"""Trees against printed results: R's agnes, diana, hclust and cutree, SciPy's, and partitions of public tables."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pytest
from scipy.spatial.distance import squareform

from coterie import AgglomerativeClustering, DivisiveClustering
from coterie.distances import pairwise
from coterie.hierarchy import banner_coefficient, cophenet, cophenetic_correlation, cut, linkage
from reference.shared_data import FOLDER, load, published, read_index

R_NAMES = {"complete": "complete", "average": "average", "single": "single", "ward.D2": "ward", "ward.D": "ward"}


def clusters_of_merges(merge):
    """The members of every cluster, from R's merges: -i is row i, +j the cluster of merge j."""
    made = []
    for pair in merge:
        made.append(frozenset().union(*({-part - 1} if part < 0 else made[part - 1] for part in pair)))
    return set(made)


def clusters_of_tree(Z):
    made = {i: frozenset({i}) for i in range(len(Z) + 1)}
    for i, (a, b) in enumerate(Z[:, :2].astype(int)):
        made[len(Z) + 1 + i] = made[a] | made[b]
    return {made[i] for i in range(len(Z) + 1, len(made))}


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("name", ["agriculture", "ruspini.euclid"])
def test_agnes(name):
    printed = published(f"rcluster.agnes.{name}")
    Z = linkage(load(printed["dataset"]), "average")
    np.testing.assert_allclose(Z[:, 2], np.sort(printed["value"]["height_in_order"]), atol=6e-6)
    assert banner_coefficient(Z) == pytest.approx(printed["value"]["ac"], abs=6e-7)
    if name == "agriculture":  # the other has ties
        assert clusters_of_tree(Z) == clusters_of_merges(printed["value"]["merge"])


@pytest.mark.parametrize("name", ["agriculture", "ruspini.euclid", "ruspini.manh"])
def test_diana(name):
    printed = published(f"rcluster.diana.{name}")
    model = DivisiveClustering(metric=printed["params"]["metric"]).fit(load(printed["dataset"]))
    np.testing.assert_allclose(model.distances_, np.sort(printed["value"]["height_in_order"]), atol=6e-6)
    assert model.divisive_coefficient_ == pytest.approx(printed["value"]["dc"], abs=6e-7)
    assert clusters_of_tree(model.linkage_matrix_) == clusters_of_merges(printed["value"]["merge"])


def test_cophenetic_correlation_of_arrests():
    X = load("r/USArrests")
    Z, printed = linkage(X, "average"), published("rstats.usarrests.cophenetic")["value"]
    assert cophenetic_correlation(Z, X) == pytest.approx(printed, abs=6e-8)
    assert cophenet(Z, pairwise(X))[0] == pytest.approx(printed, abs=6e-8)


def test_heights_of_arrests():
    printed = published("rstats.usarrests.average_heights")["value"]
    heights = linkage(load("r/USArrests"), "average")[:, 2]
    np.testing.assert_allclose(heights, printed["heights_sorted"], rtol=5e-3)
    assert heights[-1] == pytest.approx(printed["root"], abs=6e-4)


def test_cuts_of_arrests():
    printed = np.array(list(published("rstats.usarrests.cutree_complete")["value"].values()))
    Z = linkage(load("r/USArrests"), "complete")
    for k in range(1, 6):
        np.testing.assert_array_equal(cut(Z, n_clusters=k) + 1, printed[:, k - 1])


def test_sneath_and_sokal():
    printed = published("rstats.sneath_sokal")["value"]
    Z = linkage(np.array(printed["d_lower_colwise"], dtype=float), "average", "precomputed")
    np.testing.assert_allclose(Z[:, 2], printed["height"])
    assert clusters_of_tree(Z) == clusters_of_merges(printed["merge"])
    assert cophenet(Z, np.array(printed["d_lower_colwise"]))[0] == pytest.approx(printed["coph_cor"], abs=6e-8)


@pytest.mark.parametrize("method", ["single", "average"])
def test_roads_of_scipy(method):
    printed = published(f"scipy.ytdist.{method}")["value"]
    D = squareform(np.array(printed["condensed"]))
    model = AgglomerativeClustering(linkage=method, metric="precomputed").fit(D)
    np.testing.assert_allclose(model.linkage_matrix_, printed["Z"], rtol=1e-8)


def test_ward_of_scipy():
    printed = published("scipy.X.ward")["value"]
    np.testing.assert_allclose(AgglomerativeClustering().fit(printed["X"]).linkage_matrix_, printed["Z"], rtol=1e-6)


def test_hclust_and_cutree():
    """Random dissimilarities, no metric; R's ward.D takes what it is given for squares."""
    read_index("published.json")
    with gzip.open(FOLDER / "refs" / "hclust_R_public.json.gz", "rt") as file:
        records = json.load(file)
    assert len(records) == published("julia.hclust.public")["value"]["records"]
    for record in records:
        D = np.zeros((record["n"], record["n"]))
        D[np.tril_indices(record["n"], -1)] = record["D"]
        squares = record["linkage"] == "ward.D"
        Z = linkage(np.sqrt(D + D.T) if squares else D + D.T, R_NAMES[record["linkage"]], "precomputed")
        Z[:, 2] **= 2 if squares else 1
        np.testing.assert_allclose(Z[:, 2], record["height"], rtol=2e-6)
        assert clusters_of_tree(Z) == clusters_of_merges(record["merge"])
        if record["cut_k"] is not None:
            labels = cut(Z, n_clusters=record["cut_k"])
        else:
            labels = cut(Z, height=record["cut_h"] * (1 + 1e-6))
        np.testing.assert_array_equal(labels + 1, record["cutree"])


LINKAGES = ["ward", "average", "complete", "weighted", "centroid", "median", "single"]
WITHOUT_TIES = ["chainlink_K2", "hepta_K7", "lsun_K3", "tetra_K4", "flame_K2", "zigzag_K3", "r15_K15"]
WITHOUT_TIES += ["ionosphere_K2", "sonar_K2", "wine_K3", "mk1_K3", "x1_K3", "x2_K3"]


def partitions(name):
    read_index("published.json")
    path = next((FOLDER / "refs" / "partitions").glob(f"*_{name}.csv.gz"))
    with gzip.open(path, "rt") as file:
        columns = list(zip(*csv.reader(file), strict=True))
    table, k = path.name.removesuffix(".csv.gz").rsplit("_K", 1)
    return load(table.replace("_", "/", 1)), int(k), {column[0]: column[1:] for column in columns}


@pytest.mark.parametrize("name", WITHOUT_TIES)
def test_partitions_by_fastcluster(name):
    X, k, printed = partitions(name)
    for method in LINKAGES:
        column = "single_linkage(Genie_G1.0)" if method == "single" else f"fastcluster_{method}"
        assert same_partition(AgglomerativeClustering(k, linkage=method).fit(X).labels_, printed[column])


@pytest.mark.parametrize("name", [*WITHOUT_TIES, "aggregation_K7", "jain_K2", "spiral_K3", "ecoli_K8", "a1_K20"])
def test_partitions_by_diana(name):
    X, k, printed = partitions(name)
    model = DivisiveClustering(k, compute_full_tree=False).fit(X)
    assert same_partition(model.labels_, printed["FCPS_Diana"])
