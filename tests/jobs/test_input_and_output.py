"""Files that jobs read and write."""

import os
import warnings

import numpy as np
import polars as pl
import pytest

from coterie import KMeans
from coterie.datasets import make_blobs
from coterie.errors import FitInterruptedWarning, InputError, ParameterError
from coterie.jobs import Job, run
from jobs.tables import leftovers, same_partition, write_lines

# Files


def test_a_missing_file_gets_a_suggestion(penguins):
    with pytest.raises(InputError, match=r'no file "pengins.csv" in .* Did you mean .*penguins.csv\?'):
        run(Job(penguins.with_name("pengins.csv")))


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        run(Job(tmp_path / "nowhere" / "x.csv"))


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("empty.csv", b"", "empty.csv is empty"),
        ("header.csv", b"x,y\n", "header.csv has no rows"),
        ("broken.parquet", b"PAR1 this is not Parquet", "cannot read"),
        ("broken.npy", b"not an array", "cannot read"),
        ("ragged.csv", b"x,y\n1,2\n1,2,3,4\n", "cannot read"),
        ("binary.csv", b"x,y\n\x00\x01,1\n2,3\n", "it is not text"),
        ("page.html", b"<p>", "tables end in .csv, .tsv"),
        ("table.csv.gz", b"x", "it is compressed. Decompress it first"),
    ],
)
def test_an_unreadable_file_is_rejected_in_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        run(Job(path, k=1))
    assert "\n" not in str(caught.value)


def test_a_folder_is_not_a_table(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        run(Job(tmp_path))


@pytest.mark.parametrize(
    "array, message",
    [
        (np.zeros(5), "1 dimensions"),
        (np.array([["a"], ["b"]]), "not numbers"),
        (np.zeros((2, 2), dtype=complex), "not numbers"),
        (np.array([[object()]], dtype=object), "cannot read"),
    ],
)
def test_an_array_that_is_not_a_table_of_numbers_is_rejected(tmp_path, array, message):
    path = tmp_path / "x.npy"
    np.save(path, array, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        run(Job(path, k=1))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy"])
def test_every_format_gives_the_same_clusters(tmp_path, suffix):
    X, y = make_blobs(30, centers=3, cluster_std=0.1, random_state=2)
    path = tmp_path / f"x{suffix}"
    frame = pl.DataFrame({"x0": X[:, 0], "x1": X[:, 1]})
    match suffix:
        case ".npy":
            np.save(path, X)
        case ".parquet":
            frame.write_parquet(path)
        case _:
            frame.write_csv(path, separator="\t" if suffix == ".tsv" else ",")
    result = run(Job(path, k=3))
    assert result.columns == ("x0", "x1")
    assert same_partition(result.labels, y)


def test_a_name_with_wildcards_is_a_plain_name(tmp_path):
    write_lines(tmp_path, "x", "1", "2", name="a1.csv")
    path = write_lines(tmp_path, "x", "1", "2", "3", name="a[1].csv")
    assert run(Job(path, k=2)).rows == 3


# Output


def test_fields_of_a_text_table_come_out_as_they_went_in(tmp_path):
    lines = ["code,x,note", "007,1.50,", '010,2.0,"a, b"', "100,9,NA"]
    out = tmp_path / "out.csv"
    run(Job(write_lines(tmp_path, *lines), k=2, columns=("x",), output=out))
    kept = [line.rsplit(",", 2)[0] for line in out.read_text(encoding="utf-8").splitlines()]
    assert kept == lines


def test_a_text_table_written_as_parquet_has_typed_columns(penguins, tmp_path):
    out = tmp_path / "out.parquet"
    run(Job(penguins, k=3, missing="drop", output=out))
    schema = pl.read_parquet_schema(out)
    assert schema["body_mass_g"] == pl.Int64
    assert schema["bill_length_mm"] == pl.Float64
    assert schema["species"] == pl.String
    assert schema["cluster"] == pl.Int64


def test_an_existing_output_stays_unless_forced(blobs, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(FileExistsError):
        run(Job(blobs[0], k=2, output=out))
    assert out.read_text() == "mine"
    run(Job(blobs[0], k=2, output=out, force=True))
    assert "cluster" in out.read_text()


def test_a_file_that_appears_during_the_fit_is_not_replaced(blobs, tmp_path):
    out = tmp_path / "out.csv"

    def someone_else(stage):
        if stage.step.startswith("writing"):
            out.write_text("theirs")

    with pytest.raises(FileExistsError):
        run(Job(blobs[0], k=2, output=out), someone_else)
    assert out.read_text() == "theirs"


def test_a_table_with_clusters_already_is_not_written_over_them_unless_forced(blobs, tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    run(Job(blobs[0], k=2, output=first))
    with pytest.raises(ParameterError, match="has cluster and cluster_distance already"):
        run(Job(first, k=3, output=second))
    assert not second.exists()
    run(Job(first, k=3, output=second, force=True))
    assert pl.read_csv(second)["cluster"].n_unique() == 3


@pytest.mark.parametrize("name, message", [("out.pdf", "ends in"), ("nowhere/out.csv", "no folder")])
def test_an_output_that_cannot_be_written_is_rejected_before_the_table_is_read(tmp_path, name, message):
    with pytest.raises(ParameterError, match=message):
        run(Job(tmp_path / "absent.csv", output=tmp_path / name))


def test_an_interrupted_fit_ends_the_job_and_writes_nothing(blobs, tmp_path, monkeypatch):
    class Interrupted(KMeans):
        def fit(self, X, y=None, sample_weight=None):
            warnings.warn("stopped from the keyboard", FitInterruptedWarning, stacklevel=2)
            return super().fit(X)

    monkeypatch.setattr("coterie.kmeans.kmeans.KMeans", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(Job(blobs[0], k=2, output=tmp_path / "out.csv"))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "error, raised", [(OSError(28, "No space left"), InputError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_a_write_that_fails_keeps_the_old_file_only(blobs, tmp_path, monkeypatch, error, raised):
    def fail(*_):
        assert leftovers(tmp_path), "the part file should be there by now"
        raise error

    out = tmp_path / "out.csv"
    out.write_text("mine")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(raised):
        run(Job(blobs[0], k=2, output=out, force=True))
    assert leftovers(tmp_path) == []
    assert out.read_text() == "mine"
