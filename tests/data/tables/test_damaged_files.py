"""Damaged files, and files that no honest program writes: errors in words, never a bug or the end of the process."""

import struct
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import polars as pl
import pytest

from coterie import machine
from coterie.data.tables import table_size
from coterie.data.tables.reader import read
from coterie.errors import InputError

from .test_table_size import workbook

ROWS = "".join(f'<row r="{i}"><c r="A{i}"><v>{i}</v></c><c r="B{i}"><v>{i * i}</v></c></row>' for i in range(1, 9))
MERGED = "</sheetData><mergeCells>{}</mergeCells>"


def changed(path, name, old, new):
    """The archive with other text in one part."""
    with ZipFile(path) as file:
        parts = {each: file.read(each) for each in file.namelist()}
    assert old in parts[name]
    parts[name] = parts[name].replace(old, new)
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        for each, content in parts.items():
            file.writestr(each, content)


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("t.ndjson", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "line 1 is nested too deeply"),
        (
            "t.safetensors",
            struct.pack("<Q", 64) + b'{"x":{"dtype":"BF16","shape":[2,4],"data_offsets":[0,16]}}'.ljust(64) + bytes(16),
            "numbers of the type BF16: convert them to F32",
        ),
    ],
    ids=["nested JSON", "a type that NumPy does not have"],
)
def test_content_that_cannot_be_numbers_is_named(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read(tmp_path / name)


def test_an_array_of_more_rows_than_a_number_can_count_does_not_fit(tmp_path):
    path = tmp_path / "t.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 70, 4)})
        file.write(bytes(64))
    with pytest.raises(InputError, match=r"t\.npy does not fit into memory"):
        read(path)


@pytest.mark.parametrize(
    "part, old, new, words",
    [
        ("xl/workbook.xml", b' sheetId="1"', b"", "is damaged"),
        ("xl/workbook.xml", b'<sheet name="s" sheetId="1" r:id="a"/>', b"", "has no sheets"),
    ],
    ids=["without a number", "without a sheet"],
)
def test_a_workbook_without_its_sheets_is_named(tmp_path, part, old, new, words):
    pytest.importorskip("fastexcel")
    path = workbook(tmp_path / "t.xlsx", ROWS)
    changed(path, part, old, new)
    with pytest.raises(InputError, match=words):
        read(path)


def test_merged_cells_that_are_nowhere_change_nothing(tmp_path):
    pytest.importorskip("fastexcel")
    plain = read(workbook(tmp_path / "t.xlsx", ROWS)).frame()
    path = workbook(tmp_path / "merged.xlsx", ROWS)
    cells = "".join(f'<mergeCell ref="{ref}"/>' for ref in ("A0:B0001", "ZZZZZZ1:B2", "A3:B2", "A999999999999:B1"))
    changed(path, "xl/sheet.xml", b"</sheetData>", MERGED.format(cells).encode())
    assert read(path).frame().equals(plain)


def lists(path, n):
    """A small file of forty lists of `n` zeros."""
    frame = pl.DataFrame({"v": [pl.zeros(n, pl.Float32, eager=True)] * 40, "x": np.arange(40.0) % 7})
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_ipc(path, compression="zstd")
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_lists_that_do_not_fit_are_refused_before_they_are_read(tmp_path, monkeypatch, suffix):
    path = lists(tmp_path / f"t{suffix}", 100_000)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(machine, "free_memory", lambda: 1 << 28)
    with pytest.raises(InputError, match=r"40 rows and 100,002 columns, which take about"):
        read(path)
    monkeypatch.setattr(table_size, "START", 0)  # too little for the process that reads them
    with pytest.raises(InputError, match=r"it has lists that may need more memory"):
        read(path)


def test_embeddings_are_read(tmp_path):
    assert read(lists(tmp_path / "t.parquet", 300)).columns == [*(f"v_{i}" for i in range(300)), "x"]


@pytest.mark.parametrize(
    "dtype, length, n_rows, size", [(pl.String, 5000, 20_000, "100 MB"), (pl.Categorical, 100_000, 60_000, "24 GB")]
)
def test_a_text_that_rows_share_is_counted_for_each_row(tmp_path, monkeypatch, dtype, length, n_rows, size):
    path = tmp_path / "t.parquet"
    texts = pl.Series("t", ["x" * length], dtype=dtype).new_from_index(0, n_rows)
    pl.DataFrame({"t": texts, "x": np.arange(n_rows) % 7}).write_parquet(path)
    assert path.stat().st_size < 1_000_000
    monkeypatch.setattr(machine, "free_memory", lambda: 50_000_000)
    with pytest.raises(InputError, match=rf"{n_rows:,} rows and 2 columns, which take about {size} of memory"):
        read(path)
