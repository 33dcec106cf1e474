"""Indices against printed results: Rousseeuw's countries, packages of R and Julia, scikit-learn's guide."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import metrics
from reference.shared_data import FOLDER, load, published, read_index


def table(path):
    """Columns of a table of partitions, or of rows, by name."""
    read_index("published.json")
    names = (FOLDER / path).read_text(encoding="utf-8").splitlines()[0].replace('"', "").split(",")
    return dict(zip(names, np.loadtxt(FOLDER / path, delimiter=",", skiprows=1).T, strict=True))


def test_countries_of_rousseeuw():
    printed, named = published("rousseeuw.k2")["value"], table("dist/rousseeuw_countries.csv")
    D = np.stack(list(named.values()), axis=1)
    found = dict(zip(named, metrics.silhouette_samples(D, printed["labels"], metric="precomputed"), strict=True))
    assert found == pytest.approx(printed["s"], abs=0.0051)
    mean = metrics.silhouette_score(D, printed["labels"], metric="precomputed")
    assert mean == pytest.approx(printed["mean"], abs=0.0051)


def test_silhouettes_of_numbers_in_a_row():
    D = np.abs(np.arange(4.0)[:, None] - np.arange(4.0))
    for labels, want in published("julia.silhouette")["value"]["cases"]:
        np.testing.assert_allclose(metrics.silhouette_samples(D, labels, metric="precomputed"), want, atol=1e-12)


def test_quality_of_twelve_points():
    printed = published("julia.quality")["value"]
    X, labels = np.array(printed["points"], float), printed["labels"]
    assert metrics.calinski_harabasz_score(X, labels) == pytest.approx(printed["ch_standard_computed_here"], rel=1e-12)
    assert metrics.davies_bouldin_score(X, labels) == pytest.approx(printed["db"], rel=1e-12)
    assert metrics.dunn_score(X, labels) == pytest.approx(printed["dunn"], rel=1e-12)
    assert metrics.silhouette_score(X, labels) == pytest.approx(printed["silhouette"], rel=1e-12)


def test_a_toy_of_medoids():
    printed = published("rust.fasterpam.toy")["value"]
    D = np.zeros((5, 5))
    D[np.tril_indices(5, -1)] = printed["lower"]
    found = metrics.silhouette_score(D + D.T, printed["k2"]["labels"], metric="precomputed")
    assert found == pytest.approx(printed["k2"]["silhouette"], rel=1e-12)


def test_internal_indices_of_cluster_crit():
    printed = published("clustercrit.internal.public")["value"]
    X = np.stack(list(table("refs/clustercrit_400_4.csv").values()), axis=1)
    labels = table("refs/clustercrit_400_4.parts.csv")["part4"]
    assert metrics.inertia(X, labels) == pytest.approx(printed["Trace_W"], rel=1e-8)
    assert metrics.calinski_harabasz_score(X, labels) == pytest.approx(printed["Calinski_Harabasz"], rel=1e-8)
    assert metrics.silhouette_score(X, labels) == pytest.approx(printed["Silhouette"], rel=1e-8)
    assert metrics.dunn_score(X, labels) == pytest.approx(printed["Dunn"], rel=1e-8)
    half = metrics.dunn_score(X, labels, intracluster="average")  # there a pair counts once and is divided by n (n - 1)
    assert 2 * half == pytest.approx(printed["GDI12"], rel=1e-8)
    averages = metrics.dunn_score(X, labels, intercluster="average", intracluster="centroid")
    assert averages == pytest.approx(printed["GDI33"], rel=1e-8)


def test_pairs_of_cluster_crit():
    printed, partitions = published("clustercrit.external")["value"], table("refs/clustercrit_external100.csv")
    for name, index in (("Rand", metrics.rand_score), ("Folkes_Mallows", metrics.fowlkes_mallows_score)):
        result = printed[name]
        assert index(partitions[result["a"]], partitions[result["b"]]) == pytest.approx(result["value"], abs=1e-7)


def test_clusters_of_ruspini_by_fpc():
    printed, X = published("fpc.ruspini_scaled")["value"], load("r/ruspini")
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    labels = np.repeat(range(4), printed["cluster_sizes"])  # the rows lie in the order of their clusters
    assert metrics.inertia(X, labels) == pytest.approx(printed["within_ss"], abs=0.005)
    assert metrics.silhouette_score(X, labels) == pytest.approx(printed["avg_silwidth"], abs=5e-5)
    each = metrics.silhouette_score(X, labels, average=None)
    np.testing.assert_allclose(each, printed["clus_avg_sil"], atol=5.1e-5)
    assert metrics.calinski_harabasz_score(X, labels) == pytest.approx(printed["ch"], abs=0.05)
    assert metrics.dunn_score(X, labels) == pytest.approx(printed["dunn"], abs=5e-5)
    averages = metrics.dunn_score(X, labels, intercluster="average", intracluster="average")
    assert averages == pytest.approx(printed["dunn2"], abs=5e-4)


def test_silhouettes_of_medoids_of_ruspini():
    printed, X = published("rcluster.pam.ruspini.k4")["value"], load("r/ruspini")
    labels = np.linalg.norm(X[:, None] - np.array(printed["medoid_points"]), axis=2).argmin(axis=1)
    each = metrics.silhouette_score(X, labels, average=None)
    np.testing.assert_allclose(each, printed["avg_sil_per_cluster"], atol=5.1e-8)
    assert metrics.silhouette_score(X, labels) == pytest.approx(printed["avg_sil"], abs=5.1e-7)


def test_mutual_information_of_scikit_learn():
    printed = published("sklearn.mi")["value"]
    a, b = printed["a"], printed["b"]
    assert metrics.mutual_info_score(a, b) == pytest.approx(printed["mi"], abs=5.1e-6)
    assert metrics.adjusted_mutual_info_score(a, b) == pytest.approx(printed["ami"], abs=5.1e-6)


def test_labels_of_the_guide_of_scikit_learn():
    """Printed digits are cut off, or rounded."""
    printed, (a, b) = published("sklearn.doc.labels")["value"], ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2])
    h, c, v = metrics.homogeneity_completeness_v_measure(a, b)
    found = {
        "rand": metrics.rand_score(a, b), "ari": metrics.adjusted_rand_score(a, b), "homogeneity": h,
        "completeness": c, "v": v, "v_beta0.6": metrics.homogeneity_completeness_v_measure(a, b, beta=0.6)[2],
        "v_beta1.8": metrics.homogeneity_completeness_v_measure(a, b, beta=1.8)[2],
        "ami_average_method_max": metrics.adjusted_mutual_info_score(a, b, average_method="max"),
    }  # fmt: skip
    for name, value in found.items():
        digits = len(str(printed[name]).partition(".")[2])
        assert abs(value - printed[name]) < 10.0**-digits, name
    ami = metrics.adjusted_mutual_info_score(a, b)
    assert ami == pytest.approx(printed["ami_arithmetic_computed_here"], rel=1e-12)
