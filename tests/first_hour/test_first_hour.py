"""The first hour of a new user: real tables through the whole command line, and what one would check by hand.

Each table is clustered with the defaults. Its clusters, rules, profiles, report and model must agree with each other
and with the file. What is known about a table is in `TABLES`: the numbers of clusters that one can defend, columns that
must be used, and columns that must not be.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("cyclopts")

from coterie.cli import main
from first_hour.real_tables import write


class Known(NamedTuple):
    k: range  # numbers of clusters that one can defend
    used: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


TABLES = {
    "vega:cars.json": Known(range(1, 6), ("Cylinders", "Horsepower", "Weight_in_lbs"), ("Name",)),
    "vega:seattle-weather.csv": Known(range(1, 6), ("temp_max", "wind"), ("weather",)),
    "vega:stocks.csv": Known(range(1, 7), ("price",), ("symbol",)),
    "vega:airports.csv": Known(range(1, 11), ("latitude", "longitude"), ("iata", "name", "city")),
    "r:MASS/Cars93": Known(range(1, 6), ("Price", "Horsepower", "Weight"), ("unnamed_1", "Make", "Model")),
    "r:MASS/survey": Known(range(1, 6), ("Height", "Wr.Hnd", "Pulse"), ("unnamed_1",)),
    "r:MASS/birthwt": Known(range(1, 11), ("bwt", "age", "lwt"), ("unnamed_1",)),
    "r:MASS/Boston": Known(range(2, 7), ("crim", "rm", "medv"), ("unnamed_1",)),
    "r:datasets/USArrests": Known(range(1, 5), ("Murder", "Assault", "Rape"), ("unnamed_1",)),
    "r:datasets/swiss": Known(range(1, 5), ("Fertility", "Education"), ("unnamed_1",)),
    "r:datasets/airquality": Known(range(1, 6), ("Ozone", "Temp"), ("unnamed_1",)),
    "r:ggplot2/mpg": Known(range(1, 6), ("displ", "cty", "hwy"), ("unnamed_1",)),
    "r:ggplot2/msleep": Known(range(1, 6), ("sleep_total", "bodywt"), ("unnamed_1", "name")),
    "r:Ecdat/Caschool": Known(range(1, 7), ("enrltot", "testscr"), ("unnamed_1",)),
    "sklearn:wine": Known(range(3, 5), ("proline",)),
    "sklearn:breast_cancer": Known(range(1, 4), ("mean radius",)),
    "sklearn:diabetes": Known(range(1, 4), ("bmi",)),
    "sklearn:digits": Known(range(1, 21), (), ("pixel_0_0",)),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(capsys, *options: str) -> dict:
    capsys.readouterr()
    assert main(["fit", "table.csv", *options, "--json", "--force"]) == 0
    return json.loads(capsys.readouterr().out)


def rows_of_rule(table: pd.DataFrame, conditions: list[dict]) -> np.ndarray:
    """Rows that satisfy the conditions of a rule, from the file alone."""
    satisfied = np.ones(len(table), bool)
    for condition in conditions:
        column = table[condition["column"]]
        if condition["values"]:
            values = condition["values"]
            satisfied &= (column.astype(str) if isinstance(values[0], str) else column).isin(values).to_numpy()
            continue
        if condition["lower"] is not None:
            satisfied &= (column > condition["lower"]).to_numpy()
        if condition["upper"] is not None:
            satisfied &= (column <= condition["upper"]).to_numpy()
    return satisfied


def check(source: str, folder, capsys, *more: str) -> dict:
    """Cluster a table, and check what a user would check; return the result."""
    known = TABLES[source]
    write(source, folder / "table.csv")
    files = [
        "--output", "labelled.csv", "--model", "model.safetensors", "--report", "report.html",
        "--profiles", "profiles.csv",
    ]  # fmt: skip
    result = fit(capsys, "--missing", "median", *files, *known.options, *more)
    labelled = pd.read_csv("labelled.csv", keep_default_na=False)
    table = pd.read_csv("table.csv", keep_default_na=False)
    table.columns = ["unnamed_1" if name.startswith("Unnamed:") else name for name in table.columns]

    k, clusters = result["k"], result["clusters"]
    assert k in known.k
    assert len(clusters) == k
    assert sum(each["rows"] for each in clusters) == len(labelled) == len(table)
    assert np.bincount(labelled["cluster"], minlength=k).tolist() == [each["rows"] for each in clusters]
    assert {*known.used} <= {*result["columns"]}
    assert not {*known.left_out} & {*result["columns"]}
    assert {*known.left_out} <= {*result["skipped"]}
    assert all(result["skipped"].values())

    as_read = pd.read_csv("table.csv")
    as_read.columns = table.columns
    for each in clusters:
        rule = each.get("rule")
        if rule and rule["describes"] and all(as_read[c["column"]].notna().all() for c in rule["conditions"]):
            fitting = rows_of_rule(as_read, rule["conditions"])
            assert fitting.sum() == rule["fitting"]
            assert (fitting & (labelled["cluster"] == each["cluster"]).to_numpy()).sum() == rule["correct"]

    assert main(["predict", "model.safetensors", "table.csv", "-o", "again.csv", "--force"]) == 0
    again = pd.read_csv("again.csv", keep_default_na=False)
    assert (again["cluster"] == labelled["cluster"]).all()

    profiles = pd.read_csv("profiles.csv")
    assert len(profiles) == k
    assert profiles["rows"].tolist() == [each["rows"] for each in clusters]

    page = (folder / "report.html").read_text("utf-8")
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|NaN|undefined|inf)\b|\de−1\d\b", text)
    assert not re.search(r"(?:src|href)=[\"']https?://", page)
    return result


def test_cars(folder, capsys):
    """The clusters of cars are those of their cylinders: rules say so, or none is recommended."""
    result = check("vega:cars.json", folder, capsys, "--budget", "quick")
    described = [each["rule"]["text"] for each in result["clusters"] if each["rule"] and each["rule"]["describes"]]
    assert result["k"] == 1 or len(described) == result["k"]
    assert result["k"] == 1 or any("Cylinders" in text or "Displacement" in text for text in described)


@pytest.mark.slow
@pytest.mark.parametrize("source", [each for each in TABLES if each != "vega:cars.json"])
def test_tables(source, folder, capsys):
    check(source, folder, capsys)


@pytest.mark.slow
def test_a_large_table(folder, capsys):
    """Two million rows of Parquet: clusters that are there are found, and a report is written."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=2_000_000)
    frame = pd.DataFrame(rng.normal(size=(len(truth), 6)) + 8 * rng.normal(size=(4, 6))[truth], columns=list("abcdef"))
    frame.to_parquet(folder / "table.parquet")
    assert main(["fit", "table.parquet", "--report", "report.html", "-o", "labelled.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["k"] == 4
    labels = pd.read_parquet("labelled.parquet", columns=["cluster"])["cluster"]
    assert (pd.crosstab(truth, labels) > 0).to_numpy().sum() == 4
