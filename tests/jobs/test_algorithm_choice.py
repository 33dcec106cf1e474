"""`compare` without algorithms, and the recommended one."""

import json

import numpy as np
import polars as pl
import pytest

from coterie.cli import main
from coterie.datasets import make_blobs
from coterie.jobs import CompareJob, compare
from coterie.jobs.compare_job import default_algorithms, recommend
from coterie.report.results import Contestant


def run_of(method, silhouette=0.5, stability=0.9, davies_bouldin=0.8, calinski_harabasz=100.0, smallest=50):
    return Contestant(method, 3, 1.0, silhouette, davies_bouldin, calinski_harabasz, smallest, 0.1, True, stability)


def alike(n, value):
    return np.full((n, n), value) + (1 - value) * np.eye(n)


@pytest.mark.parametrize(
    ("n", "d", "one_unit", "expected"),
    [
        (150, 4, False, ("kmeans", "gmm", "ward", "kmedoids")),
        (10_000, 8, False, ("kmeans", "gmm", "ward")),
        (100_000, 8, False, ("kmeans", "gmm", "bisecting")),
        (2_000_000, 20, False, ("kmeans", "bisecting")),
        (3_000, 384, True, ("kmeans", "ward", "kmedoids", "spherical")),
    ],
)
def test_the_default_algorithms_suit_the_size_of_the_table(n, d, one_unit, expected):
    assert default_algorithms(n, d, is_one_unit=one_unit) == expected


def test_the_best_by_most_criteria_is_recommended_with_names_and_values():
    runs = [run_of("kmeans", 0.7, 0.95, 0.4, 900.0), run_of("ward", 0.3, 0.5, 1.2, 200.0)]
    result = recommend(runs, alike(2, 0.3), 150)
    assert (result.method, result.k, result.strength) == ("kmeans", 3, "clear")
    assert result.reason.startswith(
        "K-means is best by silhouette 0.70, stability under resampling 0.95, Davies–Bouldin"
    )


def test_equal_clusters_make_the_choice_irrelevant_and_near_ties_unclear():
    runs = [run_of("kmeans", 0.60), run_of("ward", 0.60)]
    same = recommend(runs, alike(2, 0.97), 150)
    assert same.strength == "clear"
    assert "so that the choice hardly matters" in same.reason
    tie = recommend(runs, alike(2, 0.4), 150)
    assert tie.strength == "none"
    assert "Ward's linkage is close" in tie.reason
    assert tie.heading.startswith("no clear algorithm; kmeans, K = 3 is slightly ahead")


def test_equal_clusters_recommend_the_first_whatever_the_rounding():
    runs = [run_of("kmeans", 0.6, calinski_harabasz=np.inf), run_of("kmedoids", 0.6 + 1e-12, calinski_harabasz=np.inf)]
    result = recommend(runs, alike(2, 1.0), 150)
    assert (result.method, result.strength) == ("kmeans", "clear")
    assert result.reason == "All algorithms find the same clusters, so that the choice hardly matters."


def test_a_few_outliers_and_overlap_speak_against_a_run():
    outliers = recommend([run_of("single", 0.9, smallest=1), run_of("kmeans", 0.5)], alike(2, 0.1), 1000)
    assert (outliers.method, outliers.strength) == ("kmeans", "weak")  # its silhouette is far from that of the other
    assert "Single linkage: the smallest cluster has less than 1 % of the rows." in outliers.reason
    overlap = recommend([run_of("kmeans", 0.2), run_of("ward", 0.1, 0.3, 2.0, 20.0)], alike(2, 0.1), 150)
    assert overlap.strength == "weak"
    assert "The clusters overlap (silhouette 0.20)" in overlap.reason


def test_clusters_that_are_not_stable_are_never_clear():
    runs = [run_of("kmeans", 0.4, 0.45), run_of("ward", 0.1, 0.1, 3.0, 20.0)]
    result = recommend(runs, alike(2, 0.95), 150)
    assert (result.method, result.strength) == ("kmeans", "weak")
    assert "not stable under resampling (0.45)" in result.reason


def test_values_that_are_not_defined_do_not_count():
    result = recommend([run_of("kmeans", None, None), run_of("ward", None, None, 0.9)], alike(2, 0.2), 150)
    assert result.method == "kmeans"
    assert "silhouette" not in result.reason
    assert recommend([run_of("kmeans")], alike(1, 1.0), 150) is None


def test_compare_without_algorithms_tells_which_and_why(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, _ = make_blobs(150, 3, centers=3, cluster_std=0.5, random_state=0)
    pl.DataFrame(X, schema=["a", "b", "c"]).write_csv("x.csv")
    assert main(["compare", "x.csv", "-k", "3", "--report", "r.html", "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert "algorithms for 150 rows: kmeans, gmm, ward, kmedoids (choose others with -a)." in captured.err
    assert result["recommendation"]["strength"] == "clear"
    assert all(run["stability"] > 0.9 for run in result["runs"])
    page = (tmp_path / "r.html").read_text()
    assert all(f'id="map{i}"' in page or f"map{i}" in page for i in range(4))
    assert "is recommended (clear)" in page


def test_compare_prints_the_recommendation(tmp_path):
    X, _ = make_blobs(90, 2, centers=3, cluster_std=0.4, random_state=0)
    result = compare(CompareJob(pl.DataFrame(X, schema=["a", "b"]), algorithms=("kmeans", "ward"), k=3))
    assert "✓ kmeans, K = 3 is recommended (clear): " in str(result)
