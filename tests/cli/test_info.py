"""`coterie info` and `coterie doctor`."""

import json
import sys

import numba
import numpy as np
import polars as pl
import pytest
from numba.core import caching

from coterie.cli import main
from coterie.datasets import make_blobs
from coterie.jobs import Job, inspect, run


def test_every_column_is_described(penguins, capsys):
    assert main(["info", "penguins.csv", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["rows"], plain["incomplete_rows"], plain["duplicate_rows"]) == (344, 11, 0)
    columns = {column["name"]: column for column in plain["columns"]}
    assert columns["species"] | {"name": ""} == {
        "name": "",
        "kind": "text",
        "missing": 0,
        "distinct": 3,
        "least": None,
        "mean": None,
        "most": None,
        "examples": ["Adelie", "Gentoo", "Chinstrap"],
        "skipped": "text",
    }
    assert columns["body_mass_g"]["least"] == 2700
    assert columns["body_mass_g"]["missing"] == 2
    assert columns["body_mass_g"]["skipped"] is None


def test_the_text_has_a_line_for_each_column(penguins, capsys):
    assert main(["info", "penguins.csv"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("penguins.csv  344 rows · 8 columns · ")
    assert "skipped: text · Adelie, Gentoo, Chinstrap" in out
    assert len(out.splitlines()) == 13
    assert "coterie fit stops here: 2 of 344 rows have missing values" in out


@pytest.mark.parametrize("array", [np.zeros((3, 2)), np.array([[np.nan, 1.0], [2.0, np.nan]])])
def test_arrays_and_holes_are_described(folder, capsys, array):
    np.save(folder / "x.npy", array)
    assert main(["info", "x.npy", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["incomplete_rows"] == int(np.isnan(array).any(axis=1).sum())
    assert [column["missing"] for column in plain["columns"]] == np.isnan(array).sum(axis=0).tolist()


def a_column(rng, kind, n):
    """A column of one of many kinds, as text."""
    half = rng.permutation(n) % 2
    return {
        "measure": lambda: rng.normal(size=n),
        "count": lambda: rng.integers(0, 5, n),
        "row": lambda: rng.permutation(n) + 1,
        "constant": lambda: np.full(n, 3),
        "empty": lambda: [""] * n,
        "amount": lambda: [f"${value:.2f}" for value in 100 * rng.random(n)],
        "units": lambda: [
            f"{value} {'kg' if side else 'EUR'}" for value, side in zip(rng.integers(0, 9, n), half, strict=True)
        ],
        "flag": lambda: np.where(half, "yes", "no"),
        "day": lambda: [f"2024-05-{1 + value:02}" for value in rng.integers(0, 28, n)],
        "word": lambda: rng.choice(["a", "b", "c"], n),
        "text": lambda: [f"text {value}" for value in rng.random(n)],
        "zip": lambda: rng.integers(10_000, 10_050, n),
        "id": lambda: rng.integers(0, 50, n),
    }[kind]()


KINDS = ["measure", "count", "row", "constant", "empty", "amount", "units", "flag", "day", "word", "text", "zip", "id"]


@pytest.mark.parametrize("seed", range(12))
def test_info_shows_the_columns_and_reasons_of_the_fit(tmp_path, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 60))
    columns = {}
    for j, kind in enumerate(rng.choice(KINDS, 6)):
        name = kind if kind in ("zip", "id") and kind not in columns else f"column{'abcdef'[j]}"
        columns[name] = [str(value) for value in a_column(rng, kind, n)]
    columns["x"] = [str(value) for value in rng.normal(size=n)]
    columns["double"] = [str(2 * float(value)) for value in columns["x"]]
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    info, result = inspect(tmp_path / "t.csv"), run(Job(tmp_path / "t.csv", k=2))
    assert info.error is None
    assert tuple(column.name for column in info.columns if column.skipped is None) == result.columns
    reasons = {column.name: column.reason for column in result.skipped}
    assert {column.name: column.skipped for column in info.columns if column.skipped is not None} == reasons
    about_columns = [note for note in result.notes if not note.startswith("differences in s.d.")]
    assert list(info.notes) == about_columns
    assert set(info.warnings) <= set(result.warnings)


def test_info_tells_what_a_fit_would_do_with_the_values(folder, capsys):
    rng = np.random.default_rng(0)
    days, x = ["2024-05-01", "2024-06-01"] * 100, [7.0, 8.0, None, 9.0] * 50
    pl.DataFrame({"amount": np.exp(3 * rng.normal(size=200)), "day": days, "x": x}).write_csv(folder / "t.csv")
    assert main(["info", "t.csv"]) == 0
    out, err = capsys.readouterr()
    assert "note: log of amount: skewed" in err
    assert "note: dates are read as age in days: day" in err
    assert "coterie fit stops here: 50 of 200 rows have missing values (x: 50). Choose one: --missing drop" in out
    assert main(["fit", "t.csv", "-k", "2"]) == 3
    assert "50 of 200 rows have missing values (x: 50)" in capsys.readouterr().err
    assert main(["fit", "t.csv", "-k", "2", "--missing", "median"]) == 0
    assert "note: log of amount: skewed" in capsys.readouterr().err


def test_info_says_why_a_fit_would_stop(folder, capsys):
    (folder / "t.csv").write_text("name,same\nx,1\ny,1\n", encoding="utf-8")
    assert main(["info", "t.csv"]) == 0
    assert "coterie fit stops here: every column is constant (same)" in capsys.readouterr().out


def test_info_of_nothing_is_a_problem_of_the_data(capsys):
    assert main(["info", "absent.csv"]) == 3
    assert 'no file "absent.csv" here' in capsys.readouterr().err


def test_the_doctor_tells_versions_and_how_to_get_what_is_missing(capsys, monkeypatch):
    from importlib.metadata import PackageNotFoundError

    from coterie.jobs import doctor

    known = doctor.version

    def version(name):
        if name in ("matplotlib", "scipy", "uvicorn"):
            raise PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(doctor, "version", version)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"Python {sys.version.split()[0]}" in out
    assert f"numpy         {np.__version__}" in out
    assert 'pip install "coterie[plot]"' in out
    assert 'pip install "coterie[app]"' in out
    assert "scipy is missing, and nothing works without it." in out


def test_the_doctor_speaks_json(capsys):
    assert main(["doctor", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["threads"] >= 1
    assert {"numba", "polars"} <= {package["name"] for package in plain["packages"] if package["version"]}


@pytest.mark.parametrize(
    "has_products, switch, text",
    [(True, "1", "integer products on"), (True, "0", "integer products off"), (False, "1", "no integer products")],
)
def test_the_doctor_says_whether_integer_scores_are_used(has_products, switch, text, capsys, monkeypatch):
    from coterie.kernels.cpu import low_precision

    monkeypatch.setattr(low_precision, "has_integer_products", lambda: has_products)
    monkeypatch.setenv("COTERIE_LOW_PRECISION", switch)
    assert main(["doctor"]) == 0
    assert text in capsys.readouterr().out


def test_the_doctor_names_the_folder_of_compiled_kernels(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert main(["doctor"]) == 0
    assert f"kernels compiled here: {tmp_path}" in capsys.readouterr().out
    (tmp_path / "file").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file" / "folder"))
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [caching.UserProvidedCacheLocator])
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "kernels compiled here: not kept" in out
    assert "Set NUMBA_CACHE_DIR to a folder with write permission." in out


def test_names_and_number_of_clusters_of_a_model_are_shown(blobs_of_eight, folder, capsys):
    names = "one, two, three, four, five, six, seven, eight"
    assert main(["fit", "x.csv", "-k", "8", "--names", names, "--model", "m.safetensors", "-q"]) == 0
    capsys.readouterr()
    assert main(["info", "m.safetensors"]) == 0
    out = capsys.readouterr().out
    assert "8 clusters" in out
    assert "names: 0 one, 1 two, 2 three" in out
    assert main(["info", "m.safetensors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"][7] == "eight"


@pytest.mark.parametrize("algorithm", ["ward", "kmedoids", "gmm"])
def test_the_number_of_clusters_is_that_of_the_model(blobs_of_eight, folder, capsys, algorithm):
    assert main(["fit", "x.csv", "-k", "8", "-a", algorithm, "--model", "m.safetensors", "-q"]) == 0
    capsys.readouterr()
    assert main(["info", "m.safetensors", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["clusters"], result["names"]) == (8, None)


@pytest.fixture
def blobs_of_eight(folder):
    X, _ = make_blobs(160, 2, centers=8, cluster_std=0.1, random_state=0)
    pl.DataFrame(X, schema=["a", "b"]).write_csv(folder / "x.csv")
