"""`coterie export`."""

import json
import subprocess
import sys

import polars as pl
import pytest

import coterie
from coterie.cli import main

FIT = ["fit", "penguins.csv", "-k", "3", "--missing", "median", "--exclude", "year", "--model", "m.safetensors"]
SUFFIXES = {"sql": "sql", "onnx": "onnx", "python": "py"}


@pytest.fixture
def model(penguins, capsys):
    assert main([*FIT, "-o", "fitted.csv"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("to", SUFFIXES)
def test_the_file_is_that_of_python(model, folder, capsys, to):
    pytest.importorskip("onnx")
    name = f"out.{SUFFIXES[to]}"
    assert main(["export", "m.safetensors", "--to", to, "-o", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "m.safetensors  KMeans · 3 clusters"
    assert lines[1] == "needs 4 columns: bill_length_mm, bill_depth_mm, flipper_length_mm, body_mass_g"
    assert lines[2].startswith(f"wrote {name} (")
    content = coterie.export(folder / "m.safetensors", to)
    assert (folder / name).read_bytes() == (content if to == "onnx" else content.encode())


def test_an_existing_file_is_replaced_only_with_force(model, folder, capsys):
    arguments = ["export", "m.safetensors", "--to", "sql", "-o", "out.sql"]
    (folder / "out.sql").write_text("mine", encoding="utf-8")
    assert main(arguments) == 2
    assert "out.sql" in capsys.readouterr().err
    assert (folder / "out.sql").read_text(encoding="utf-8") == "mine"
    assert main([*arguments, "--force", "--table", "birds", "--dialect", "sqlite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["clusters"] == 3
    assert (folder / "out.sql").read_text(encoding="utf-8").endswith('FROM "birds" AS t\n')


def test_wrong_names_are_errors_before_anything_is_written(model, folder, capsys):
    for arguments, message in [
        (["m.safetensors", "--to", "sql", "-o", "out.txt"], "an SQL file ends in .sql"),
        (["m.safetensors", "--to", "onnx", "-o", "out.py"], "an ONNX model ends in .onnx"),
        (["m.safetensors", "--to", "python", "-o", "no/out.py"], 'there is no folder "no"'),
        (["penguins.csv", "--to", "sql", "-o", "out.sql"], "a model ends in .safetensors"),
    ]:
        assert main(["export", *arguments]) in (2, 3)
        assert message in capsys.readouterr().err
    assert not list(folder.glob("out.*"))


def test_what_cannot_be_exported_is_rejected_by_name(penguins, folder, capsys):
    assert main(["fit", "penguins.csv", "-k", "3", "-a", "ward", "--missing", "drop", "--model", "t.safetensors"]) == 0
    capsys.readouterr()
    assert main(["export", "t.safetensors", "--to", "sql", "-o", "tree.sql"]) == 2
    assert "AgglomerativeClustering cannot be exported" in capsys.readouterr().err
    assert not (folder / "tree.sql").exists()


def test_the_python_module_runs_alone(model, folder):
    """Without coterie and every other package, on rows of csv.DictReader."""
    assert main(["export", "m.safetensors", "--to", "python", "-o", "clusters.py"]) == 0
    code = (
        "import csv, clusters, sys\n"
        "rows = csv.DictReader(open('penguins.csv'))\n"
        "rows = [{key: '' if value == 'NA' else value for key, value in row.items()} for row in rows]\n"
        "print(*(clusters.predict(row) for row in rows))\n"
        "assert not {'numpy', 'coterie'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=folder, check=True)
    labels = pl.read_csv(folder / "fitted.csv")["cluster"].to_list()
    assert done.stdout.split() == [str(label) for label in labels]
