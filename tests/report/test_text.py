import json
from dataclasses import fields, replace

import numpy as np
import pytest

from coterie.preparation import SkippedColumn
from coterie.report import as_dict, as_text
from coterie.report.results import ClusterSummary, JobResult, Trait


@pytest.fixture
def result():
    return JobResult(
        source="customers.csv",
        method="kmeans",
        rows=12_000,
        rows_used=11_999,
        n_columns=5,
        columns=("orders", "basket"),
        categories=(),
        skipped=(SkippedColumn("city", "text"), SkippedColumn("id", "identifier")),
        scale="standard",
        missing="dropped 1 row",
        title="K-means",
        k=2,
        seed=7,
        options={"n_init": 10},
        scores={"inertia": 19_802.4},
        iterations=1,
        converged=True,
        seconds=0.126,
        total_seconds=2.5,
        clusters=(
            ClusterSummary(0, 10_591, 0.8827, {"orders": 1.5, "basket": 40.0}, ()),
            ClusterSummary(
                1,
                1_408,
                0.1173,
                {"orders": 9.0, "basket": 12.0},
                (Trait("orders", 2.04), Trait("basket", -1.1)),
            ),
        ),
        labels=np.zeros(12_000, dtype=int),
        notes=("skipped as text: city.",),
        output="labelled.csv",
        added=("cluster", "cluster_distance"),
    )


def test_the_text_has_the_data_the_fit_the_clusters_and_the_files(result):
    assert as_text(result).splitlines() == [
        "customers.csv  12,000 rows · 5 columns → using 2 numeric (skipped: city, id)",
        "scaling: standard · missing: dropped 1 row · seed 7",
        "K-means, k = 2 · inertia 19,802 · converged after 1 iteration · best of 10 restarts · 2.50 s · fit 0.13 s",
        "",
        "cluster    rows  share  stands out by",
        "      0  10,591  88.3%  no difference above 0.5 s.d.",
        "      1   1,408  11.7%  orders +2.0 s.d., basket −1.1 s.d.",
        "wrote labelled.csv (12,000 rows, + cluster, + cluster_distance; 1 row left without a cluster)",
    ]


def test_the_text_says_so_when_the_fit_did_not_converge(result):
    assert "not converged after 300 iterations" in as_text(replace(result, converged=False, iterations=300))


def test_without_an_output_file_no_file_is_mentioned(result):
    assert "wrote" not in as_text(replace(result, output=None))


def test_a_complete_table_mentions_no_row_without_a_cluster(result):
    assert "left without" not in as_text(replace(result, rows_used=12_000))


def test_a_long_list_of_skipped_columns_is_cut_short(result):
    many = tuple(SkippedColumn(f"column{j}", "text") for j in range(50))
    first = as_text(replace(result, skipped=many)).splitlines()[0]
    assert first.endswith("column7, …)")


def test_small_inertia_keeps_its_digits(result):
    assert "inertia 0.01235 ·" in as_text(replace(result, scores={"inertia": 0.012_345_6}))


def test_the_dictionary_survives_a_round_trip_through_json(result):
    plain = as_dict(result)
    assert json.loads(json.dumps(plain)) == plain


def test_the_dictionary_has_every_field_but_the_labels(result):
    assert set(as_dict(result)) == {field.name for field in fields(result)} - {"labels"}


def test_the_dictionary_keeps_reasons_and_deviations(result):
    plain = as_dict(result)
    assert plain["skipped"] == {"city": "text", "id": "identifier"}
    assert plain["clusters"][1]["stands_out_by"] == {"orders": 2.04, "basket": -1.1}
    assert plain["seed"] == 7
