"""Tables in files: read some rows at a time, they are the tables that are read whole."""

import json
import os
import sys
import threading
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from coterie import machine
from coterie.data import as_source, temporary_arrays
from coterie.data.tables import reader
from coterie.data.tables import scan as tables
from coterie.data.tables.array_files import array_frame
from coterie.errors import InputError, ParameterError

N = 240
WRITERS = {
    ".csv": pl.DataFrame.write_csv,
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".txt": lambda frame, path: frame.write_csv(path, separator="|"),
    ".parquet": pl.DataFrame.write_parquet,
    ".arrow": pl.DataFrame.write_ipc,
    ".feather": lambda frame, path: frame.write_ipc(path, compression="zstd"),
    ".ndjson": pl.DataFrame.write_ndjson,
    ".jsonl": pl.DataFrame.write_ndjson,
}
EVERY = pytest.mark.parametrize("suffix", WRITERS)
TYPED = pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "real": rng.normal(size=N),
            "whole": rng.integers(-9, 9, size=N),
            "word": rng.choice(["red", "green", 'a "b", c'], size=N),
            "holes": pl.Series(rng.normal(size=N)).set(pl.Series(rng.random(N) < 0.3), None),
        }
    )


def saved(frame, folder, suffix, name="t"):
    path = folder / (name + suffix)
    WRITERS[suffix](frame, path)
    return path


# what is read


@EVERY
@pytest.mark.parametrize("rows", [3, 50, N, 2 * N])
def test_batches_are_the_table_in_order_and_all_of_one_size_but_the_last(frame, tmp_path, suffix, rows):
    found = tables.scan(saved(frame, tmp_path, suffix))
    batches = list(found.batches(rows=rows))
    assert [batch.height for batch in batches] == [min(rows, N - start) for start in range(0, N, rows)]
    assert_frame_equal(pl.concat(batches), frame)


@EVERY
def test_schema_number_of_rows_and_columns_are_those_of_the_table(frame, tmp_path, suffix):
    found = tables.scan(saved(frame, tmp_path, suffix))
    assert found.schema == dict(frame.schema)
    assert found.n_rows == N
    for name in frame.columns:
        assert_series_equal(pl.concat(found.batches([name]))[name], frame[name])


@EVERY
def test_columns_come_in_the_order_asked_for(frame, tmp_path, suffix):
    found = tables.scan(saved(frame, tmp_path, suffix))
    some = ["holes", "real"]
    assert_frame_equal(pl.concat(found.batches(some, rows=70)), frame.select(some))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.uint64, bool, ">f8"])
@pytest.mark.parametrize("order", "CF")
def test_columns_of_an_array_are_called_by_their_place(tmp_path, dtype, order):
    X = np.asarray(np.random.default_rng(0).integers(0, 2, size=(57, 3)), dtype, order=order)
    np.save(tmp_path / "t.npy", X)
    found = tables.scan(tmp_path / "t.npy")
    assert list(found.schema) == ["x0", "x1", "x2"]
    assert found.n_rows == 57
    np.testing.assert_array_equal(pl.concat(found.batches(["x2", "x0"], rows=10)).to_numpy(), X[:, [2, 0]])
    assert_frame_equal(pl.concat(found.batches(rows=10)), array_frame(np.load(tmp_path / "t.npy"), "t.npy"))


@TYPED
def test_columns_without_a_value_are_found_wherever_their_values_might_be(tmp_path, suffix):
    last = [None] * 10 + [1.0]
    columns = {
        "null": [None] * 11,
        "nan": [float("nan")] * 11,
        "both": [None, float("nan")] * 5 + [None],
        "late": last,
        "first": last[::-1],
        "word": [None] * 11,
    }
    kinds = {name: pl.String if name == "word" else pl.Float64 for name in columns}
    path = saved(pl.DataFrame(columns, schema=kinds), tmp_path, suffix)
    for batch_rows in (None, 4):
        assert reader.read(path, batch_rows).empty_columns == {"null", "nan", "both", "word"}


def test_a_name_is_that_of_one_file_whatever_marks_are_in_it(frame, tmp_path):
    for suffix in WRITERS:
        path = saved(frame, tmp_path, suffix, "t[1]*")
        saved(frame.head(3), tmp_path, suffix, "t1")
        assert tables.scan(path).n_rows == N, suffix


def test_a_suffix_may_be_in_capitals(frame, tmp_path):
    saved(frame, tmp_path, ".parquet").rename(tmp_path / "T.PARQUET")
    assert tables.scan(tmp_path / "T.PARQUET").n_rows == N


def test_what_a_query_will_be_is_read_like_a_file(frame, tmp_path):
    path = saved(frame, tmp_path, ".parquet")
    query = pl.scan_parquet(path).filter(pl.col("whole") > 0).select("whole", twice=2 * pl.col("real"))
    found = tables.scan_frame(query)
    whole = query.collect()
    assert found.schema == dict(whole.schema)
    assert found.n_rows == whole.height
    assert_frame_equal(pl.concat(found.batches(rows=11)), whole)


# matrices


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("rows", [3, 64, 10 * N])
@EVERY
def test_a_matrix_has_the_bits_of_the_frame_whatever_the_batches(frame, tmp_path, monkeypatch, suffix, rows, on_disk):
    if on_disk:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr(temporary_arrays, "SMALL", 0)
        monkeypatch.setattr(machine, "free_memory", lambda: 0)
    numbers = frame.drop("word")
    monkeypatch.setattr(tables, "ROWS", rows)
    values = tables.matrix(tables.scan(saved(numbers, tmp_path, suffix)))
    assert values.flags.c_contiguous
    assert (values.base is None) != on_disk
    expected = as_source(numbers).X
    assert values.dtype == expected.dtype
    np.testing.assert_array_equal(values, expected)


@TYPED
def test_numbers_of_every_kind_become_what_they_become_in_a_frame(tmp_path, suffix):
    columns = {
        "yes": pl.Series([True, False, None]),
        "byte": pl.Series([1, -2, 3], dtype=pl.Int8),
        "long": pl.Series([2**63, 1, None], dtype=pl.UInt64),
        "single": pl.Series([0.1, None, float("nan")], dtype=pl.Float32),
        "money": pl.Series([Decimal("1.25"), Decimal("-0.5"), None], dtype=pl.Decimal(10, 2)),
    }
    frame = pl.DataFrame(columns)
    for names in (list(columns), ["single"], ["byte"], ["single", "byte"]):
        some = frame.select(names)
        values, expected = tables.matrix(tables.scan(saved(some, tmp_path, suffix))), as_source(some).X
        assert values.dtype == expected.dtype
        np.testing.assert_array_equal(values, expected)


def test_columns_that_are_not_numbers_are_rejected_by_their_names(frame, tmp_path):
    found = tables.scan(saved(frame.with_columns(day=pl.lit("2020-01-01").str.to_date()), tmp_path, ".parquet"))
    with pytest.raises(
        InputError, match=r"'word' \(String\), 'day' \(Date\)\. coterie\.Job\(.*choose other columns: .*select"
    ):
        tables.matrix(found)


@pytest.mark.parametrize("now", [N - 1, N + 1])
def test_a_file_that_changes_between_two_passes_is_rejected(frame, tmp_path, monkeypatch, now):
    monkeypatch.setattr(tables, "ROWS", 100)
    path = saved(frame.select("real"), tmp_path, ".csv")
    found = tables.scan(path)
    saved(pl.concat([frame, frame]).select("real").head(now), tmp_path, ".csv")
    with pytest.raises(InputError, match=f"{N} rows, and a different number when it was read again"):
        tables.matrix(found)


# what goes wrong


def test_a_file_that_is_broken_in_the_middle_is_rejected_when_it_is_read(frame, tmp_path):
    path = saved(pl.concat([frame] * 50), tmp_path, ".parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 3 : len(content) // 2] = b"\0" * (len(content) // 2 - len(content) // 3)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read .*t\.parquet"):
        for _ in tables.scan(path).batches():
            pass


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".ndjson", ".npy"])
def test_other_content_is_rejected_in_a_line(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(b"this is none of them\n" * 10)
    with pytest.raises(InputError, match="cannot read") as caught:
        tables.scan(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line, words", [('{"a": 1', "line 7 is not JSON"), ("[1, 2]", "line 7 is not a JSON object")])
def test_a_line_that_is_no_row_of_json_is_named(tmp_path, line, words):
    (tmp_path / "t.ndjson").write_text('{"a": 1}\n' * 6 + line + "\n" + '{"a": 1}\n')
    with pytest.raises(InputError, match=words):
        pl.concat(tables.scan(tmp_path / "t.ndjson").batches())


def test_values_of_another_kind_late_in_a_file_of_json_are_an_error_or_read_as_in_the_whole(tmp_path):
    path = tmp_path / "t.ndjson"
    path.write_text("".join(json.dumps({"a": 1 if i < 500 else 2.5}) + "\n" for i in range(600)))
    try:
        whole = pl.read_ndjson(path)
    except pl.exceptions.PolarsError:
        with pytest.raises(InputError, match="cannot read"):
            pl.concat(tables.scan(path).batches())
    else:
        assert_frame_equal(pl.concat(tables.scan(path).batches(rows=50)), whole)


def test_other_files_are_rejected_with_those_that_can_be_read(tmp_path):
    (tmp_path / "t.pdf").write_bytes(b"x")
    with pytest.raises(InputError, match=r"t\.pdf\": tables end in \.csv, .*\.npz or \.safetensors"):
        tables.scan(tmp_path / "t.pdf")


def test_an_array_that_is_not_a_table_of_numbers_is_rejected(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.zeros(3))
    with pytest.raises(InputError, match=r"t\.npy has 1 dimensions"):
        tables.scan(path)
    np.save(path, np.zeros((3, 2), complex))
    with pytest.raises(InputError, match=r"t\.npy holds complex128, not numbers"):
        tables.scan(path)


# what is left behind


def test_a_table_that_is_left_early_is_not_read_on_and_leaves_no_thread_at_work(frame, tmp_path, monkeypatch):
    made = []

    class Counting(tables.Queue):
        def put(self, item, *how):
            made.append(item)
            super().put(item, *how)

    monkeypatch.setattr(tables, "Queue", Counting)
    found = tables.scan(saved(pl.concat([frame] * 50), tmp_path, ".csv"))
    before = threading.active_count()
    for _ in range(5):
        made.clear()
        batches = found.batches(rows=10)
        next(batches)
        batches.close()
        assert len(made) < 10
    assert threading.active_count() == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")
def test_no_file_stays_open(frame, tmp_path, monkeypatch):
    paths = [saved(frame, tmp_path, suffix) for suffix in WRITERS]
    latin = tmp_path / "latin.csv"
    latin.write_bytes("größe\n1\n".encode("cp1252"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for path in [*paths, latin]:
        pl.concat(tables.scan(path).batches())
    opened = [os.readlink(at) for at in Path("/proc/self/fd").iterdir() if at.is_symlink()]
    assert not [name for name in opened if name.startswith(str(tmp_path))]


def test_polars_is_asked_for_where_it_is_missing(frame, tmp_path, monkeypatch):
    path = saved(frame, tmp_path, ".parquet")
    monkeypatch.setitem(sys.modules, "coterie.data.tables.scan", None)
    monkeypatch.delattr("coterie.data.tables.scan", raising=False)
    with pytest.raises(ParameterError, match=r"reading \.parquet needs one more package\. Run: pip install polars"):
        as_source(path)
