"""Every kind of file in and out."""

import io
import json
import sys

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from coterie.cli import main
from coterie.datasets import make_blobs

X, Y = make_blobs(30, centers=[[0, 0], [30, 30]], random_state=2)
FRAME = pl.DataFrame({"x0": X[:, 0], "x1": X[:, 1]})
READERS = {
    "csv": pl.read_csv,
    "tsv": lambda path: pl.read_csv(path, separator="\t"),
    "parquet": pl.read_parquet,
    "arrow": pl.read_ipc,
    "feather": pl.read_ipc,
    "ndjson": pl.read_ndjson,
    "jsonl": pl.read_ndjson,
}


def write(path) -> None:
    match path.suffix:
        case ".csv":
            FRAME.write_csv(path)
        case ".tsv":
            FRAME.write_csv(path, separator="\t")
        case ".parquet":
            FRAME.write_parquet(path)
        case ".arrow" | ".feather":
            FRAME.write_ipc(path)
        case ".ndjson" | ".jsonl":
            FRAME.write_ndjson(path)
        case ".npy":
            np.save(path, X)
        case ".npz":
            np.savez(path, rows=X, names=np.arange(3))
        case ".safetensors":
            save_file({"rows": X}, path)


def rows_by_cluster(capsys, *arguments: str) -> list[int]:
    assert main(["fit", *arguments, "-k", "2", "--json", "-q"]) == 0, capsys.readouterr().err
    return [cluster["rows"] for cluster in json.loads(capsys.readouterr().out)["clusters"]]


@pytest.mark.parametrize("kind", [*READERS, "npy", "npz", "safetensors"])
def test_every_kind_of_file_is_read(folder, capsys, kind):
    write(folder / f"t.{kind}")
    assert rows_by_cluster(capsys, f"t.{kind}") == [15, 15]


@pytest.mark.parametrize("kind", READERS)
def test_every_kind_of_file_is_written_with_the_clusters(folder, capsys, kind):
    write(folder / "t.parquet")
    rows_by_cluster(capsys, "t.parquet", "-o", f"out.{kind}")
    written = READERS[kind](folder / f"out.{kind}")
    assert written.columns == ["x0", "x1", "cluster", "cluster_distance"]
    assert written["x0"].to_numpy() == pytest.approx(X[:, 0])
    assert len(set(zip(written["cluster"].to_list(), Y.tolist(), strict=True))) == 2


def test_labels_alone_are_an_array(folder, capsys):
    (folder / "t.csv").write_text("x\n1\n\n9\n1.5\n9.5\n", encoding="utf-8")
    assert main(["fit", "t.csv", "-k", "2", "--missing", "drop", "-o", "labels.npy"]) == 0
    labels = np.load(folder / "labels.npy")
    assert labels[1] == -1
    assert labels[0] == labels[3] != labels[2] == labels[4]


def test_a_hyphen_is_csv_from_standard_input(capsys, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(FRAME.write_csv().encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["fit", "-", "-k", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "standard input"


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_the_delimiter_is_found(folder, capsys, mark):
    (folder / "t.csv").write_text(FRAME.write_csv(separator=mark), encoding="utf-8")
    assert rows_by_cluster(capsys, "t.csv") == [15, 15]


def test_commas_in_quotes_do_not_count_as_delimiters(folder, capsys):
    lines = ["name;x", '"a, b, c";1', '"d, e, f";2', '"g, h, i";30']
    (folder / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    assert sorted(rows_by_cluster(capsys, "t.csv")) == [1, 2]


def test_a_comma_may_stand_before_decimals(folder, capsys):
    (folder / "t.csv").write_text("x;y\n1,5;2\n1,6;2,5\n30,25;3\n", encoding="utf-8")
    assert main(["fit", "t.csv", "-k", "2", "--json", "--scale", "none"]) == 0
    means = [cluster["means"]["x"] for cluster in json.loads(capsys.readouterr().out)["clusters"]]
    assert sorted(means) == pytest.approx([1.55, 30.25])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found(folder, capsys, encoding):
    (folder / "t.csv").write_bytes("größe,x\n1,2\n1,3\n9,2\n".encode(encoding))
    assert main(["fit", "t.csv", "-k", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == ["größe", "x"]


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"a": X, "b": X}, "must hold one array of rows and columns; it holds a (30, 2), b (30, 2)"),
        ({"a": X[:, 0]}, "it holds a (30,)"),
    ],
)
@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_several_arrays_are_rejected_by_name(folder, capsys, kind, arrays, message):
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    np.savez(folder / "t.npz", **arrays) if kind == "npz" else save_file(arrays, folder / "t.safetensors")
    assert main(["fit", f"t.{kind}", "-k", "2"]) == 3
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["arrow", "ndjson", "npz", "safetensors", "parquet"])
def test_a_damaged_file_is_rejected_in_a_line(folder, capsys, kind):
    (folder / f"t.{kind}").write_bytes(b"\x01\x02 nothing of the kind")
    assert main(["fit", f"t.{kind}", "-k", "2"]) == 3
    err = capsys.readouterr().err
    assert err.startswith(f'Error: cannot read "t.{kind}"')
    assert err.count("\n") == 1


def test_excel_without_its_package_says_which_one(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    (folder / "t.xlsx").write_bytes(b"PK")
    assert main(["fit", "t.xlsx", "-k", "2"]) == 2
    assert capsys.readouterr().err == 'Error: reading .xlsx needs one more package. Run: pip install "coterie[excel]"\n'


def test_nothing_on_standard_input_is_said_to_be_nothing(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["fit", "-", "-k", "2"]) == 3
    assert capsys.readouterr().err == "Error: standard input is empty.\n"
