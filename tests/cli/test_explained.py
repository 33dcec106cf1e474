"""Rules, names, profiles and comparisons of labels on the command line."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.cli import main
from coterie.cli.failures import Exit

FIT = ["fit", "penguins.csv", "-k", "3", "--missing", "drop", "--exclude", "year", "-q"]


def output(capsys, *arguments: str) -> str:
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_summary_shows_a_rule_for_each_cluster(penguins, capsys):
    text = output(capsys, *FIT)
    table = text.partition("rule, in the units of the table\n")[2].splitlines()
    assert len(table) == 3
    assert all("of rows that fit the rule" in line for line in table)


def test_json_has_rules_whose_counts_are_right(penguins, capsys):
    result = json.loads(output(capsys, *FIT, "--json", "-o", "out.csv"))
    frame = pl.read_csv("out.csv", null_values="NA").drop_nulls("cluster")
    assert 1 <= result["rule_cost_ratio"] < 1.2
    for cluster in result["clusters"]:
        rule, mask = cluster["rule"], np.ones(frame.height, bool)
        for condition in rule["conditions"]:
            x = frame[condition["column"]].to_numpy()
            mask &= x > (-np.inf if condition["lower"] is None else condition["lower"])
            mask &= x <= (np.inf if condition["upper"] is None else condition["upper"])
        inside = (frame["cluster"] == cluster["cluster"]).to_numpy()
        assert (rule["fitting"], rule["correct"], rule["rows"]) == (mask.sum(), (mask & inside).sum(), inside.sum())
        assert rule["describes"]
        assert rule["text"]


def test_batches_give_the_same_rules(penguins, capsys):
    whole, parts = (json.loads(output(capsys, *FIT, "--json", *more)) for more in ((), ("--batch-rows", "50")))
    assert [one["rule"] for one in whole["clusters"]] == [one["rule"] for one in parts["clusters"]]


@pytest.fixture
def subscribers(folder):
    """Two groups that differ in a category and in a column of zeros and ones."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 100)
    frame = pl.DataFrame(
        {
            "spending": rng.normal(size=200) + 8 * group,
            "newsletter": np.where(rng.random(200) < np.where(group == 0, 0.1, 0.8), "yes", "no"),
            "member": (rng.random(200) < np.where(group == 0, 0.05, 0.9)).astype(int),
        }
    )
    frame.write_csv("subscribers.csv")
    return frame, group


def test_categories_are_shown_as_shares(subscribers, capsys):
    frame, _ = subscribers
    arguments = ["fit", "subscribers.csv", "-k", "2", "--one-hot", "newsletter", "-q"]
    text = output(capsys, *arguments, "-o", "out.csv")
    labels = pl.read_csv("out.csv")["cluster"].to_numpy()
    cluster = labels[-1]
    yes, ones = (frame["newsletter"] == "yes").to_numpy(), frame["member"].to_numpy()
    share = yes[labels == cluster].mean()
    assert f"newsletter: yes {share:.0%}, overall {yes.mean():.0%}" in text
    assert f"member: {ones[labels == cluster].mean():.0%}, overall {ones.mean():.0%}" in text
    assert text.count("newsletter:") == 2, "one value for each cluster"
    assert "newsletter=" not in text
    result = json.loads(output(capsys, *arguments, "--json"))
    assert result["clusters"][cluster]["stands_out_by"]["newsletter=yes"] == {
        "share": pytest.approx(share), "overall": pytest.approx(yes.mean()),
    }  # fmt: skip


def test_a_cluster_with_a_rule_is_not_called_average(folder, capsys):
    """The middle of three groups on a line: its mean is that of all rows."""
    x = np.concatenate([np.linspace(0, 1, 60) + shift for shift in (-10, 0, 10)])
    pl.DataFrame({"x": x, "y": np.sin(np.arange(180)) / 10}).write_csv("line.csv")
    text = output(capsys, "fit", "line.csv", "-k", "3", "--scale", "none", "-q")
    assert "no difference" not in text
    assert "no single mean: see its rule" in text


def test_names_go_to_summary_table_report_and_model(penguins, capsys):
    names = ["small", "large, heavy", "long bill"]
    files = ["-o", "out.csv", "--model", "m.safetensors", "--report", "r.html", "--profiles", "p.csv"]
    text = output(capsys, *FIT, "--names", 'small, "large, heavy", long bill', *files)
    assert all(name in text for name in names)
    frame = pl.read_csv("out.csv", null_values="NA").drop_nulls("cluster")
    assert [names[label] for label in frame["cluster"]] == frame["cluster_name"].to_list()
    assert "large, heavy" in Path("r.html").read_text(encoding="utf-8")
    assert pl.read_csv("p.csv")["name"].to_list() == names
    assert coterie.load("m.safetensors")[-1].cluster_names_ == names
    text = output(capsys, "predict", "m.safetensors", "penguins.csv", "--missing", "drop", "-o", "again.csv")
    assert "large, heavy" in text
    again = pl.read_csv("again.csv", null_values="NA").drop_nulls("cluster")
    assert again["cluster_name"].to_list() == frame["cluster_name"].to_list()
    report = ["report", "penguins.csv", "--model", "m.safetensors", "--missing", "drop", "-o", "s.html"]
    assert "large, heavy" in output(capsys, *report)


def test_names_can_be_made_from_rules(penguins, capsys):
    result = json.loads(output(capsys, *FIT, "--names", "auto", "--json"))
    names = [one["name"] for one in result["clusters"]]
    assert len(set(names)) == 3
    assert all(name.split()[0] in ("low", "high", "medium") for name in names)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--names", "a,b"], "--names has 2 names for 3 clusters"),
        (["--names", "a,b,a"], '--names has the name "a" more than once'),
        (["--profiles", "p.doc"], "a table of profiles ends in"),
    ],
)
def test_wrong_names_and_files_are_rejected_before_the_fit(penguins, capsys, arguments, message):
    assert main([*FIT, *arguments]) == Exit.USAGE
    assert message in capsys.readouterr().err


def test_profiles_have_one_row_for_each_cluster(penguins, capsys):
    text = output(capsys, *FIT, "--profiles", "p.csv", "-o", "out.csv")
    assert "wrote p.csv (profiles, 3 clusters)" in text
    profiles = pl.read_csv("p.csv")
    frame = pl.read_csv("out.csv", null_values="NA").drop_nulls("cluster")
    for row in profiles.iter_rows(named=True):
        mass = frame.filter(pl.col("cluster") == row["cluster"])["body_mass_g"]
        assert row["rows"] == len(mass)
        assert row["share"] == pytest.approx(len(mass) / frame.height)
        assert row["body_mass_g mean"] == pytest.approx(mass.mean())
        assert row["body_mass_g median"] == mass.median()
        assert row["rule"]


def test_profiles_show_shares_of_categories(subscribers, capsys):
    frame, _ = subscribers
    files = ["--profiles", "p.csv", "-o", "out.csv"]
    output(capsys, "fit", "subscribers.csv", "-k", "2", "--one-hot", "newsletter", "-q", *files)
    labels = pl.read_csv("out.csv")["cluster"].to_numpy()
    expected = [(frame["newsletter"].to_numpy()[labels == j] == "yes").mean() for j in (0, 1)]
    assert pl.read_csv("p.csv")["newsletter: yes"].to_list() == pytest.approx(expected)


def test_compare_labels_matches_clusters_and_finds_rows_that_moved(folder, capsys):
    before, after = ["a"] * 5 + ["b"] * 5, [1] * 5 + [0] * 4 + [1]
    pl.DataFrame({"id": range(10), "cluster": before}).write_csv("a.csv")
    pl.DataFrame({"id": range(10), "cluster": after}).write_csv("b.csv")
    result = json.loads(output(capsys, "compare-labels", "a.csv", "b.csv", "--json", "-o", "moved.csv"))
    assert (result["moved"], result["rows_compared"]) == (1, 10)
    assert result["matching"] == {"1": "a", "0": "b"}
    assert result["table"] == [[5, 0], [1, 4]]
    assert result["adjusted_rand"] == pytest.approx(coterie.metrics.adjusted_rand_score(before, after))
    assert pl.read_csv("moved.csv").rows() == [(9, "b", 1)]
    text = output(capsys, "compare-labels", "a.csv", "b.csv")
    assert "90.0% of rows in matched clusters" in text
    assert "1 row moved to another cluster" in text


def test_compare_labels_matches_rows_by_id(folder, capsys):
    pl.DataFrame({"key": [1, 2, 3, 4], "cluster": [0, 0, 1, 1]}).write_csv("a.csv")
    pl.DataFrame({"key": [4, 3, 2, 9, 1], "cluster": [7, 7, 8, 8, -1]}).write_csv("b.csv")
    result = json.loads(output(capsys, "compare-labels", "a.csv", "b.csv", "--id", "key", "--json"))
    assert (result["rows"], result["rows_compared"], result["moved"]) == (4, 3, 0)
    assert result["unmatched"] == [0, 1]


@pytest.mark.parametrize(
    "columns, arguments, code, message",
    [
        ({"cluster": [0, 1]}, [], Exit.DATA, "Use --id COLUMN"),
        ({"x": [0, 1, 2]}, [], Exit.USAGE, "--labels COLUMN"),
        ({"cluster": [0, 1, 2], "key": [1, 1, 2]}, ["--id", "key"], Exit.DATA, "repeated values"),
        ({"cluster": [-1, -1, -1]}, [], Exit.DATA, "no row has a cluster"),
    ],
)
def test_labels_that_cannot_be_compared_are_rejected(folder, capsys, columns, arguments, code, message):
    pl.DataFrame({"cluster": [0, 1, 2], "key": [1, 2, 3]}).write_csv("a.csv")
    pl.DataFrame(columns).write_csv("b.csv")
    assert main(["compare-labels", "a.csv", "b.csv", *arguments]) == code
    assert message in capsys.readouterr().err
