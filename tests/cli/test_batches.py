"""`--batch-rows`: tables of which some rows are in memory at a time come out as tables that are read whole."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from coterie.algorithms import ALGORITHMS
from coterie.cli import main
from coterie.data import temporary_arrays
from coterie.data.tables import reader
from coterie.data.tables.scan import scan
from coterie.datasets import make_blobs

BATCHES = ["1", "7", "64", "1000"]
IN_PARTS = [name for name, method in ALGORITHMS.items() if not method.mixed]


@pytest.fixture
def people(folder) -> Path:
    """Two hundred rows of numbers with holes, whole numbers, categories, identifiers, weights and text."""
    X, y = make_blobs(200, 3, centers=4, cluster_std=2.0, random_state=1)
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "person_id": np.arange(200) + 1000,
            "age": X[:, 0].round(2),
            "income": X[:, 1],
            "visits": rng.poisson(5 + 3 * y),
            "colour": rng.choice(["red", "green", "blue"], 200),
            "name": [f"no. {i}" for i in range(200)],
            "weight": rng.integers(1, 4, 200),
            "same": np.full(200, 3.5),
        }
    )
    gaps = pl.Series(rng.random(200) < 0.06)
    frame = frame.with_columns(pl.when(~gaps).then("age"), pl.when(~gaps.shift(3, fill_value=False)).then("colour"))
    frame.write_csv(folder / "people.csv", separator=";", float_precision=9)
    frame.write_parquet(folder / "people.parquet", row_group_size=50)
    frame.write_ipc(folder / "people.arrow")
    frame.write_ndjson(folder / "people.ndjson")
    return folder


def done(capsys, *arguments: str) -> dict:
    assert main([*arguments, "--json", "-q"]) == 0, capsys.readouterr().err
    result = json.loads(capsys.readouterr().out)
    return {
        key: value
        for key, value in result.items()
        if key not in ("seconds", "total_seconds", "output", "model", "report_size")
    }


def bytes_of(*names: str) -> list[bytes]:
    return [Path(name).read_bytes() for name in names]


USED = ["-k", "4", "--weight", "weight", "--one-hot", "colour", "--exclude", "name", "--n-init", "2"]


@pytest.mark.parametrize(
    "kind, missing",
    [
        ("csv", "drop"),
        ("csv", "median"),
        ("parquet", "mean"),
        ("parquet", "ignore"),
        ("arrow", "median"),
        ("ndjson", "drop"),
    ],
)
def test_files_of_every_kind_give_the_same_bytes(people, capsys, kind, missing):
    how = ["fit", f"people.{kind}", *USED, "--missing", missing, "--scale", "robust", "-o"]
    whole = done(capsys, *how, "whole.csv", "--model", "whole.safetensors")
    for rows in BATCHES[1:3]:
        assert done(capsys, *how, "b.csv", "--model", "b.safetensors", "--batch-rows", rows, "--force") == whole
        assert bytes_of("b.csv", "b.safetensors") == bytes_of("whole.csv", "whole.safetensors")


@pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
def test_scales_do_not_depend_on_where_a_batch_ends(people, capsys, scale):
    how = ["fit", "people.parquet", *USED, "--missing", "drop", "--scale", scale, "--model"]
    whole = done(capsys, *how, "whole.safetensors")
    for rows in BATCHES[:2]:
        assert done(capsys, *how, "b.safetensors", "--batch-rows", rows, "--force") == whole, rows
        assert bytes_of("b.safetensors") == bytes_of("whole.safetensors"), rows


@pytest.mark.parametrize("name", IN_PARTS)
def test_every_algorithm_takes_rows_that_lie_on_disk(folder, capsys, name):
    X, _ = make_blobs(60, centers=np.array([[5.0, 5.0, 14.0], [25.0, 5.0, 14.0], [5.0, 25.0, 5.0]]), random_state=0)
    pl.DataFrame(X, schema=["a", "b", "c"]).write_csv("blobs.csv")
    how = ["fit", "blobs.csv", "-a", name, *([] if ALGORITHMS[name].finds_k else ["-k", "3"]), "-o"]
    whole = done(capsys, *how, "whole.parquet")
    assert done(capsys, *how, "b.parquet", "--batch-rows", "13") == whole
    assert done(capsys, *how, "b.parquet", "--batch-rows", f"1{30 * '0'}", "--force") == whole
    assert pl.read_parquet("b.parquet").equals(pl.read_parquet("whole.parquet"))


def test_a_mixture_of_several_kinds_of_columns_says_that_it_takes_the_table_whole(people, capsys):
    assert main(["fit", "people.csv", "-a", "mixture", "-k", "2", "--batch-rows", "10"]) == 2
    assert "--batch-rows is not for mixture" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.parquet", "out.feather", "out.ndjson", "out.npy"])
def test_outputs_of_every_kind_are_written_batch_by_batch(people, capsys, output):
    how = ["fit", "people.csv", "-k", "3", "--missing", "drop", "--exclude", "weight", "-o"]
    done(capsys, *how, output)
    whole = bytes_of(output)[0]
    done(capsys, *how, output, "--batch-rows", "9", "--force")
    if output.endswith(("parquet", "feather")):
        read = {".parquet": pl.read_parquet, ".feather": pl.read_ipc}[Path(output).suffix]
        Path("whole").write_bytes(whole)
        assert read(output).equals(read("whole"))
    else:
        assert bytes_of(output) == [whole]


def test_a_batch_of_which_no_row_takes_part_is_written_with_nothing_beside_it(folder, capsys):
    values = np.array([np.nan] * 10 + [1.0, 1.1, 5.0, 5.1] + [np.nan] * 7)
    pl.DataFrame({"a": values, "b": np.arange(21.0)}).write_csv("x.csv")
    options = ["-k", "2", "--columns", "a,b", "--missing", "drop", "--batch-rows", "4"]
    done(capsys, "fit", "x.csv", *options, "-o", "out.csv")
    written = pl.read_csv("out.csv")
    assert written["cluster"].is_null().to_list() == np.isnan(values).tolist()
    assert written["cluster_distance"].null_count() == 17


@pytest.mark.parametrize("asked", [[], ["--distance"]])
def test_predictions_are_the_same(people, capsys, asked):
    done(capsys, "fit", "people.csv", *USED, "--missing", "median", "--model", "m.safetensors")
    how = ["predict", "m.safetensors", "people.csv", *asked, "-o"]
    whole = done(capsys, *how, "whole.csv")
    for rows in BATCHES:
        assert done(capsys, *how, "b.csv", "--batch-rows", rows, "--force") == whole, rows
        assert bytes_of("b.csv") == bytes_of("whole.csv"), rows


def test_the_choice_of_k_and_comparisons_are_the_same(people, capsys):
    used = ["-c", "income,visits"]
    for command in (
        ["choose-k", "people.csv", "-k", "1:4", "--budget", "quick"],
        ["compare", "people.csv", "-k", "2:4", "-a", "kmeans", "-a", "ward"],
    ):
        whole, batched = (done(capsys, *command, *used, *more) for more in ([], ["--batch-rows", "17"]))
        for run in (*whole.get("runs", ()), *batched.get("runs", ())):
            run.pop("seconds")
        assert batched == whole


WHEN = re.compile(r"\d{1,2} \w+ \d{4}|\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?|\d+(\.\d+)? (m?s|seconds?)\b")


@pytest.mark.parametrize("command", ["fit", "report"])
def test_pages_are_the_same(people, capsys, command):
    done(capsys, "fit", "people.csv", *USED, "--missing", "median", "-o", "labelled.csv", "--model", "m.safetensors")
    how = {
        "fit": ["fit", "people.csv", *USED, "--missing", "median", "--static", "--report"],
        "report": ["report", "labelled.csv", "--labels", "cluster", "--missing", "median", "--static", "-o"],
    }[command]
    done(capsys, *how, "whole.html")
    done(capsys, *how, "b.html", "--batch-rows", "17")
    whole, batched = (WHEN.sub("", Path(name).read_text(encoding="utf-8")) for name in ("whole.html", "b.html"))
    assert batched == whole


@pytest.mark.parametrize("name", ["headless.csv", "blank.csv", "vectors.parquet", "vectors.ndjson"])
def test_odd_files_are_read_alike(folder, capsys, name):
    X, _ = make_blobs(40, 3, centers=2, random_state=0)
    lines = [",".join(f"{x:.6f}" for x in row) for row in X]
    Path("headless.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("blank.csv").write_text("\n".join(["a,b,c", *lines, "", "", ""]), encoding="utf-8")
    vectors = pl.DataFrame({"text": [f"no. {i}" for i in range(40)], "v": X.tolist()})
    vectors.write_parquet("vectors.parquet")
    vectors.write_ndjson("vectors.ndjson")
    whole = done(capsys, "fit", name, "-k", "2", "-o", "whole.csv")
    assert (whole["rows"], len(whole["columns"])) == (40, 3)
    assert any("no line of names" in note or "first line" in note for note in whole["notes"]) == (
        name == "headless.csv"
    )
    assert done(capsys, "fit", name, "-k", "2", "-o", "b.csv", "--batch-rows", "7") == whole
    assert bytes_of("b.csv") == bytes_of("whole.csv")


# What stands in the way


@pytest.mark.parametrize(
    "arguments",
    [
        ["people.csv"],
        ["people.csv", "-c", "agee"],
        ["people.csv", "-c", "name"],
        ["people.csv", "--one-hot", "name"],
        ["people.csv", "--weight", "name", "--missing", "drop"],
        ["people.csv", "-c", "same"],
        ["infinite.csv"],
        ["words.csv"],
        ["header.csv"],
        ["empty.csv"],
        ["ragged.csv"],
        ["noise.parquet"],
    ],
)
def test_errors_are_those_of_a_table_that_is_read_whole(people, capsys, arguments):
    pl.DataFrame({"a": [1.0, 2.0, float("inf")] * 9}).write_csv("infinite.csv")
    pl.DataFrame({"a": ["x", "y", "z"] * 9}).write_csv("words.csv")
    Path("header.csv").write_text("a,b\n")
    Path("empty.csv").write_text("")
    Path("ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    Path("noise.parquet").write_bytes(b"PAR1 is how it begins")
    said = []
    for more in ([], ["--batch-rows", "5"]):
        said.append((main(["fit", *arguments, "-k", "2", "-o", "out.csv", *more]), capsys.readouterr().err))
        assert not Path("out.csv").exists()
    assert said[0] == said[1]
    assert said[0][0] in (2, 3)


@pytest.mark.parametrize("rows", ["0", "-3"])
def test_a_batch_has_a_row(people, capsys, rows):
    assert main(["fit", "people.csv", "--batch-rows", rows]) == 2
    assert "batch_rows must be at least 1" in capsys.readouterr().err


def test_files_that_are_read_whole_only_say_so(folder, capsys):
    np.savez("x.npz", X=np.eye(5))
    assert main(["fit", "x.npz", "--batch-rows", "2"]) == 2
    assert "--batch-rows is for .csv" in capsys.readouterr().err


def test_a_disk_that_is_full_is_told_of_before_anything_is_written(people, capsys, monkeypatch):
    monkeypatch.setattr(temporary_arrays.shutil, "disk_usage", lambda folder: SimpleNamespace(free=100))
    assert main(["fit", "people.csv", "-k", "2", "--missing", "drop", "--batch-rows", "10", "-o", "out.csv"]) == 3
    assert "TMPDIR" in capsys.readouterr().err
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("rows", [150, 250])
def test_a_file_that_changes_while_it_is_read_is_told_of(people, capsys, monkeypatch, rows):
    def changed(path, header_row):
        found = scan(path, header_row)
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([*lines, *lines[1:]][: rows + 1]) + "\n", encoding="utf-8")
        return found

    monkeypatch.setattr(reader, "scan", changed)
    how = ["fit", "people.csv", "-k", "2", "--missing", "drop", "--batch-rows", "40", "-o", "out.csv"]
    assert main(how) == 3
    assert capsys.readouterr().err == "Error: people.csv changed while it was read: run the command again.\n"
    assert not Path("out.csv").exists()


def test_a_table_too_large_for_memory_is_read_in_batches_unasked(people, capsys, monkeypatch):
    how = ["fit", "people.csv", *USED, "--missing", "mean"]
    whole = done(capsys, *how)
    monkeypatch.setattr(reader.machine, "free_memory", lambda: 10_000)
    found = done(capsys, *how)
    assert any("rows at a time" in note for note in found["notes"])
    assert {**found, "notes": whole["notes"]} == whole


# Memory, and what is left behind


LARGE = """
import threading, time
from coterie.cli import main

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

seen = []
def watch():
    while True:
        seen.append(anonymous())
        time.sleep(0.002)

few = ["-k", "3", "--n-init", "1", "--max-iter", "3", "--batch-rows", "10000", "-q", "--force"]
main(["fit", "100.parquet", *few])  # compiled, and all modules loaded
before = anonymous()
threading.Thread(target=watch, daemon=True).start()
assert main(["fit", "3000000.parquet", *few, "-o", "out.parquet"]) == 0
print("MB", round(max(seen) - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counts pages as Linux tells of them")
def test_memory_is_less_than_the_matrix(folder, python):
    rng = np.random.default_rng(0)
    centers, columns = rng.normal(size=(3, 32), scale=8), [f"c{j}" for j in range(32)]
    for n in (100, 3_000_000):
        X = centers[rng.integers(3, size=n)] + rng.normal(size=(n, 32))
        pl.DataFrame(X, schema=columns).write_parquet(f"{n}.parquet", row_group_size=20_000)
    found = python(LARGE)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout.rsplit("MB", 1)[1]) < 0.6 * X.nbytes / 2**20
