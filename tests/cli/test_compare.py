"""`coterie compare`."""

import json

import numpy as np
import polars as pl
import pytest

from coterie.cli import main
from coterie.datasets import make_blobs
from coterie.metrics import adjusted_rand_score


@pytest.fixture
def blobs(folder):
    X, y = make_blobs(120, 2, centers=3, cluster_std=2.0, random_state=4)
    pl.DataFrame(X, schema=["a", "b"]).write_csv(folder / "x.csv")
    return y


def test_scores_and_agreement_are_those_of_the_runs_one_by_one(blobs, folder, capsys):
    assert main(["compare", "x.csv", "-a", "kmeans", "-a", "single", "-k", "3", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert [(run["method"], run["k"], run["best"]) for run in plain["runs"]] == [
        ("kmeans", 3, True),
        ("single", 3, True),
    ]
    labels = []
    for name in ("kmeans", "single"):
        assert main(["fit", "x.csv", "-a", name, "-k", "3", "-o", f"{name}.csv"]) == 0
        labels.append(pl.read_csv(folder / f"{name}.csv")["cluster"].to_numpy())
    assert plain["agreement"][0][1] == pytest.approx(adjusted_rand_score(*labels))
    assert plain["agreement"][1][1] == 1.0
    assert plain["runs"][1]["smallest"] == np.bincount(labels[1]).min()
    assert plain["runs"][0]["inertia"] <= plain["runs"][1]["inertia"]


def test_of_a_range_the_best_of_each_algorithm_is_marked_and_compared(blobs, capsys):
    assert main(["compare", "x.csv", "-a", "kmeans", "-a", "ward", "-k", "2:4"]) == 0
    out = capsys.readouterr().out
    assert sum("◀" in line for line in out.splitlines()) == 2
    assert "agreement (adjusted Rand)  kmeans, " in out


def test_without_a_number_the_recommended_one_is_run(blobs, capsys):
    assert main(["compare", "x.csv", "-a", "kmeans", "--json"]) == 0
    captured = capsys.readouterr()
    assert "note: K = " in captured.err
    assert len(json.loads(captured.out)["runs"]) == 1


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["-a", "kmeans", "-a", "mixture", "-k", "3"], 2, "mixture cannot be compared"),
        (["-a", "kmeans", "-k", "121"], 3, "more clusters than there are rows (120)"),
        (["-a", "kmeans", "-k", "2:100000000000"], 3, "more clusters than there are rows (120)"),
        (["-a", "kmeans", "--missing", "ignore", "-k", "3"], 2, "--missing ignore"),
    ],
)
def test_runs_that_cannot_be_compared_are_rejected(blobs, capsys, arguments, code, message):
    assert main(["compare", "x.csv", *arguments]) == code
    assert message in capsys.readouterr().err
