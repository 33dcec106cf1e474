"""Library and command line read the same formats, and have the same error messages."""

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from cli.test_excel import write_workbook
from coterie import KMeans
from coterie.cli import main
from coterie.data import as_source
from coterie.data.tables.file_formats import FRAMES
from coterie.data.tables.reader import read
from coterie.data.tables.suffixes import ARRAYS, READABLE, TEXT
from coterie.errors import InputError
from data.tables.test_scan import WRITERS

NAMES = ["a", "b", "c"]
FORMATS = {
    **WRITERS,
    ".xlsx": lambda frame, path: write_workbook(path, [frame.columns, *map(list, frame.iter_rows())]),
    ".npy": lambda frame, path: np.save(path, frame.to_numpy()),
    ".npz": lambda frame, path: np.savez(path, X=frame.to_numpy(), note=np.zeros(3)),
    ".safetensors": lambda frame, path: save_file({"X": np.ascontiguousarray(frame.to_numpy())}, path),
}


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(60, 3)) + 9 * rng.integers(0, 3, size=(60, 1))).round(3)


def test_every_format_is_tested_or_shares_the_reader_of_excel():
    assert (*TEXT, *FRAMES) == READABLE
    untested = set(READABLE) - set(FORMATS)
    assert untested == {".xls", ".ods"}
    assert {FRAMES[suffix] for suffix in untested} == {FRAMES[".xlsx"]}


@pytest.mark.parametrize("suffix", FORMATS)
def test_estimators_and_the_command_line_read_the_same_rows(X, tmp_path, suffix):
    if suffix == ".xlsx":
        pytest.importorskip("fastexcel")
    path = tmp_path / f"x{suffix}"
    FORMATS[suffix](pl.DataFrame(X, schema=NAMES), path)
    table = read(path)
    np.testing.assert_array_equal(table.frame().to_numpy(), X)
    model = KMeans(3, random_state=0).fit(str(path))
    np.testing.assert_array_equal(model.cluster_centers_, KMeans(3, random_state=0).fit(X).cluster_centers_)
    if suffix in ARRAYS:
        assert not hasattr(model, "feature_names_in_")
    else:
        assert model.feature_names_in_.tolist() == table.columns == NAMES


def library_error(path):
    with pytest.raises(InputError) as caught:
        as_source(path)
    return str(caught.value)


def command_error(capsys, path):
    assert main(["fit", str(path), "-k", "2"]) == 3
    return capsys.readouterr().err.removeprefix("Error: ").rstrip("\n")


@pytest.mark.parametrize("content", [None, b"", b"\0\1 junk"], ids=["no file", "empty", "junk"])
@pytest.mark.parametrize("suffix", READABLE)
def test_a_file_that_cannot_be_read_has_one_message(tmp_path, capsys, suffix, content):
    if suffix in (".xlsx", ".xls", ".ods"):
        pytest.importorskip("fastexcel")
    path = tmp_path / f"x{suffix}"
    if content is not None:
        path.write_bytes(content)
    assert library_error(path) == command_error(capsys, path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_table_without_rows_has_one_message(tmp_path, capsys, suffix):
    path = tmp_path / f"x{suffix}"
    FORMATS[suffix](pl.DataFrame(schema={"a": pl.Float64}), path)
    assert library_error(path) == command_error(capsys, path) == f"x{suffix} has no rows."


def test_an_unknown_format_has_one_message(tmp_path, capsys):
    path = tmp_path / "x.pdf"
    path.write_bytes(b"x")
    assert library_error(path) == command_error(capsys, path)
    assert "tables end in .csv, .tsv, .txt" in library_error(path)
