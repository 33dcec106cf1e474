"""`coterie fit`: every algorithm, the choice of K, and what goes out."""

import json
import shlex
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from coterie import jobs
from coterie.algorithms import ALGORITHMS, OPTIONS
from coterie.cli import main
from coterie.datasets import make_blobs

APART = np.array([[0.0, 0.0, 9.0], [20.0, 0.0, 9.0], [0.0, 20.0, 0.0]])


@pytest.fixture
def blobs(folder):
    """Sixty rows in three groups far apart, in directions and in places."""
    X, y = make_blobs(60, centers=APART + 5, cluster_std=0.5, random_state=0)
    pl.DataFrame(X, schema=["a", "b", "c"]).write_csv(folder / "blobs.csv")
    return y


def fitted(capsys, *arguments: str) -> dict:
    assert main(["fit", *arguments, "--json", "-q"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def same_partition(a, b) -> bool:
    pairs = set(zip(np.asarray(a).tolist(), np.asarray(b).tolist(), strict=True))
    return len(pairs) == len(set(np.asarray(a).tolist())) == len(set(np.asarray(b).tolist()))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_finds_groups_far_apart_and_labels_the_rows(blobs, folder, capsys, name):
    number = ["--eps", "0.5"] if name == "dbscan" else [] if ALGORITHMS[name].finds_k else ["-k", "3"]
    result = fitted(capsys, "blobs.csv", "-a", name, *number, "-o", "out.parquet")
    written = pl.read_parquet(folder / "out.parquet")
    assert same_partition(written["cluster"], blobs)
    assert result["k"] == 3
    assert [cluster["rows"] for cluster in result["clusters"]] == [20, 20, 20]
    assert written.columns == ["a", "b", "c", *result["added"]]
    assert written.null_count().sum_horizontal().item() == 0


def test_every_option_belongs_to_an_estimator_that_knows_it():
    for method in ALGORITHMS.values():
        known = method.build().get_params()
        assert {OPTIONS[option] for option in method.options} | set(method.fixed) | set(method.defaults) <= set(known)


@pytest.mark.parametrize(
    "arguments, parameter, value",
    [
        (["-a", "gmm", "--covariance", "tied"], "covariance_type", "tied"),
        (["-a", "kmedoids", "--metric", "manhattan"], "metric", "manhattan"),
        (["-a", "fuzzy", "--fuzzifier", "1.5"], "fuzzifier", 1.5),
        (["-a", "balanced", "--size-max", "25"], "size_max", 25),
        (["-a", "kmeans", "--search", "fast", "--max-iter", "50"], "search", "fast"),
        (["-a", "kernel", "--kernel", "linear"], "kernel", "linear"),
    ],
)
def test_an_option_of_the_algorithm_reaches_it(blobs, capsys, arguments, parameter, value):
    assert fitted(capsys, "blobs.csv", "-k", "3", *arguments)["options"][parameter] == value


def test_the_covariance_can_be_chosen_by_bic(blobs, capsys):
    assert main(["fit", "blobs.csv", "-k", "3", "-a", "gmm", "--covariance", "auto"]) == 0
    assert "note: covariance chosen by BIC: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--covariance", "full"], "--covariance belongs to gmm and bayes-gmm; not to kmeans."),
        (["-a", "ward", "--n-init", "3"], "--n-init belongs to kmeans"),
        (["-a", "gmmm"], 'Did you mean "gmm"?'),
        (["-a", "ward", "--missing", "ignore"], "--missing ignore is not for Ward's linkage"),
        (["-a", "mixture", "--scale", "standard"], "--scale standard is not for mixture"),
        (["-a", "mixture", "--missing", "mean"], "--missing mean is not for mixture: use drop or ignore."),
        (["-a", "kmeans-dtw", "--missing", "median"], "--missing median is not for K-means by time warping: use drop."),
        (["-a", "mixture", "-k", "2:4"], "set it for mixture, for example -k 3"),
        (["-a", "gmm", "--covariance", "round"], "covariance_type"),
        (["--threads", "0"], "threads must be at least 1"),
        (["--max-iter", "0"], "max_iter must be at least 1"),
    ],
)
def test_an_option_that_does_not_apply_is_rejected_as_wrong_usage(blobs, folder, capsys, arguments, message):
    usual = [] if "-k" in arguments else ["-k", "3"]
    assert main(["fit", "blobs.csv", "-o", "out.csv", *usual, *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert not (folder / "out.csv").exists()


# How many


def test_without_a_number_it_is_chosen_and_the_table_marks_it(blobs, capsys):
    assert main(["fit", "blobs.csv", "--budget", "quick"]) == 0
    out = capsys.readouterr().out
    assert "\n 3 ◀ " in out
    assert "✓ K = 3 (clear): " in out
    assert "inertia  silhouette" in out
    assert "K-means, k = 3" in out


@pytest.mark.parametrize("name", ["gmm", "ward", "divisive"])
def test_a_range_is_chosen_from_for_any_algorithm(blobs, capsys, name):
    assert main(["fit", "blobs.csv", "-a", name, "-k", "2:5", "--budget", "quick", "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert [row["k"] for row in result["choice"]["table"]] == [2, 3, 4, 5]
    assert result["recommended"] == result["k"] == 3
    assert ("chosen with clusters of K-means" in captured.err) is (name == "divisive")


def test_a_table_without_clusters_is_warned_about(folder, capsys):
    X = np.random.default_rng(0).uniform(size=(200, 3))
    pl.DataFrame(X, schema=["a", "b", "c"]).write_csv(folder / "even.csv")
    assert main(["fit", "even.csv", "--budget", "quick"]) == 0
    captured = capsys.readouterr()
    assert "K-means, k = 1" in captured.out
    assert "warning: the table seems to have no clusters" in captured.err


# Columns that are not numbers


def test_one_hot_makes_categories_count(folder, capsys):
    (folder / "t.csv").write_text("colour,x\n" + "red,1\nblue,1\n" * 10, encoding="utf-8")
    result = fitted(capsys, "t.csv", "-k", "2", "--one-hot", "colour")
    assert result["categories"] == ["colour"]
    means = sorted(cluster["means"]["colour=red"] for cluster in result["clusters"])
    assert means == [0.0, 1.0]


def test_rows_of_different_categories_are_as_far_apart_as_rows_of_a_standardised_column_on_average(folder):
    (folder / "t.csv").write_text("colour,x\n" + "red,1\nblue,2\n" * 10, encoding="utf-8")
    from coterie.algorithms import algorithm_of
    from coterie.data.tables.reader import read
    from coterie.preparation.fit_preparation import prepare

    path = folder / "t.csv"
    given = prepare(read(path), jobs.Job(path, one_hot=("colour",)), algorithm_of("kmeans")).rows.model_input
    between = given[:, np.newaxis] - given
    assert (between[..., 0] ** 2).sum() / len(given) ** 2 == pytest.approx(2.0)  # x: mean of squares over all pairs
    assert (between[0, 1, 1:] ** 2).sum() == pytest.approx(2.0)  # red to blue


def test_a_mixture_takes_text_as_it_is_and_says_which_family_a_column_got(penguins, capsys):
    assert main(["fit", "penguins.csv", "-a", "mixture", "-k", "3", "--missing", "ignore", "--exclude", "year"]) == 0
    captured = capsys.readouterr()
    assert "using 4 numeric and 3 categorical" in captured.out
    assert "Gaussian bill_length_mm, bill_depth_mm, flipper_length_mm, body_mass_g" in captured.err
    assert "Categorical species, island, sex" in captured.err


def test_a_mixture_finds_its_number_of_components(penguins, capsys):
    result = fitted(capsys, "penguins.csv", "-a", "mixture", "--missing", "drop", "--exclude", "year")
    assert result["k"] == len(result["clusters"]) > 1


def test_text_alone_is_rejected_with_a_remedy(folder, capsys):
    (folder / "city.csv").write_text("name,country\nRome,Italy\nPisa,Italy\nOslo,Norway\n", encoding="utf-8")
    assert main(["fit", "city.csv"]) == 3
    assert capsys.readouterr().err == (
        "Error: no numeric columns in city.csv (name: text, country: text). "
        "Use --one-hot country, or pass embeddings.\n"
    )


def test_hints_can_be_pasted_into_a_shell_whatever_columns_are_called(folder, capsys):
    words, gaps = ["red", "blue"] * 20, [1.0, None] * 20
    columns = {"a b c": words, 'd,"e"': words, "my size": gaps, "x": range(0, 80, 2)}
    pl.DataFrame(columns).write_parquet(folder / "t.parquet")
    for more, hint in (
        (["-c", "a b c"], "--one-hot 'a b c'"),
        (["-c", '"d,""e"""'], """--one-hot '"d,""e\"""'"""),
        ([], "--exclude 'my size'"),
    ):
        assert main(["fit", "t.parquet", "-k", "2", *more]) == 3
        told = capsys.readouterr().err
        assert hint in told
        assert main(["fit", "t.parquet", "-k", "2", "--missing", "drop", *shlex.split(hint)]) == 0
        capsys.readouterr()
    assert main(["fit", "t.parquet", "-c", "a b c", "--exclude", "x,my size"]) == 3


def test_what_columns_hold_is_told_in_words(folder, capsys):
    day = datetime(2020, 1, 2, 3)
    columns = {
        "day": [day.date()] * 9, "moment": [day] * 9, "hour": [day.time()] * 9, "span": [timedelta(3)] * 9,
        "record": [{"c": 1}] * 9, "names": [["a"]] * 9, "raw": [b"a"] * 9, "x": range(9),
    }  # fmt: skip
    pl.DataFrame(columns).write_parquet(folder / "t.parquet")
    assert main(["fit", "t.parquet", "-k", "2", "--dates", "skip"]) == 0
    told = capsys.readouterr().err
    kinds = ("dates: day", "dates and times: moment", "times: hour", "durations: span", "records: record",
             "lists: names", "bytes: raw")  # fmt: skip
    for kind in kinds:
        assert f"note: skipped as {kind}." in told
    assert main(["fit", "t.parquet", "-c", "day", "--dates", "skip"]) == 3
    assert 'column "day" holds dates, not numbers.' in capsys.readouterr().err


def test_one_row_is_no_table_to_cluster(folder, capsys):
    (folder / "one.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert main(["fit", "one.csv", "-k", "1"]) == 3
    assert capsys.readouterr().err == (
        "Error: one.csv has only one row to cluster: clustering needs at least two rows.\n"
    )


# Weights, samples, series


def test_a_weight_of_two_is_the_row_twice(folder, capsys):
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=40).round(3), rng.integers(1, 4, 40)
    pl.DataFrame({"x": x, "w": w}).write_csv(folder / "weighted.csv")
    pl.DataFrame({"x": np.repeat(x, w), "w": 1}).write_csv(folder / "repeated.csv")
    how = ["-k", "3", "--scale", "none", "--search", "global"]
    weighted = fitted(capsys, "weighted.csv", "--weight", "w", *how)
    repeated = fitted(capsys, "repeated.csv", "--exclude", "w", *how)
    assert weighted["columns"] == ["x"]
    assert weighted["scores"]["inertia"] == pytest.approx(repeated["scores"]["inertia"])


def test_a_sample_is_fitted_and_every_row_gets_a_label(blobs, folder, capsys):
    result = fitted(capsys, "blobs.csv", "-a", "average", "-k", "3", "--sample", "30", "-o", "out.csv")
    assert same_partition(pl.read_csv(folder / "out.csv")["cluster"], blobs)
    assert sum(cluster["rows"] for cluster in result["clusters"]) == 60


def test_what_is_missing_at_the_end_of_a_series_is_its_end(folder, capsys):
    (folder / "series.csv").write_text("a,b,c,d\n1,2,3,\n1,1,2,3\n9,8,7,6\n9,7,,\n", encoding="utf-8")
    result = fitted(capsys, "series.csv", "-a", "kmeans-dtw", "-k", "2")
    assert [cluster["rows"] for cluster in result["clusters"]] == [2, 2]
    (folder / "holes.csv").write_text("a,b,c\n1,,3\n1,2,3\n", encoding="utf-8")
    assert main(["fit", "holes.csv", "-a", "kmeans-dtw", "-k", "2"]) == 3
    assert "Choose one: --missing drop (keeps 1 row), or --exclude b." in capsys.readouterr().err


def test_kmeans_uses_what_is_there_of_rows_with_holes(folder, capsys):
    (folder / "holes.csv").write_text("a,b\n1,1\n1.1,\n,1.2\n9,9\n9.1,\n,9.2\n", encoding="utf-8")
    result = fitted(capsys, "holes.csv", "-k", "2", "--missing", "ignore", "-o", "out.csv")
    assert same_partition(pl.read_csv(folder / "out.csv")["cluster"], [0, 0, 0, 1, 1, 1])
    assert result["missing"] == "4 values in 2 columns left as they are"


# Strict


def test_strict_rejects_a_fit_that_has_not_converged_and_writes_nothing(folder, capsys):
    X = np.random.default_rng(0).normal(size=(500, 4))
    np.save(folder / "x.npy", X)
    arguments = ["fit", "x.npy", "-k", "8", "--max-iter", "1", "--n-init", "1", "-o", "out.csv"]
    assert main([*arguments, "--strict"]) == 4
    assert "not converged" in capsys.readouterr().err
    assert not (folder / "out.csv").exists()
    assert main(arguments) == 0
    assert "warning: not converged" in capsys.readouterr().err
