"""Rows of text files by byte range: the rows that a parser of the whole file finds, whatever the blocks."""

import io

import numpy as np
import polars as pl
import pytest

from coterie.data.tables import text_index
from coterie.data.tables.scan import scan
from coterie.errors import InputError

TEXTS = {
    "plain": "a,b\n" + "".join(f"{i},{i * i}\n" for i in range(40)),
    "no newline at the end": "a,b\n" + "\n".join(f"{i},{i * i}" for i in range(40)),
    "quoted newlines": "a,name\n" + "".join(f'{i},"line\n{"x" * (i % 9)}\nend, {i}"\n' for i in range(40)),
    "quotes in quotes": "a,name\n" + "".join(f'{i},"say ""{i}\n"""\n' for i in range(40)),
    "carriage returns": "a,b\r\n" + "".join(f"{i},{i * i}\r\n" for i in range(40)),
    "blank lines": "a,b\n" + "".join(f"{i},{i * i}\n" + "\n" * (i % 5 == 0) for i in range(40)),
    "blank lines at the end": "a,b\n" + "".join(f"{i},{i}.5\n" for i in range(40)) + "\n\n\n",
    "one column": "a\n" + "".join(f"{i}\n" + "\n" * (i % 7 == 3) for i in range(40)),
    "no header": "".join(f"{i};{i / 8}\n" for i in range(40)),
    "short rows": "a,b,c\n" + "".join(f"{i}\n" if i % 3 else f"{i},2,3\n" for i in range(40)),
    "types that widen": "a,b\n" + "".join(f"{i},{i if i < 30 else i + 0.5}\n" for i in range(40)),
    "byte order mark": "\ufeffa,b\n" + "".join(f"{i},é{i}\n" for i in range(40)),
    "missing values": "a,b\n" + "".join(f"{i},{'NA' if i % 4 else ''}\n" for i in range(40)),
    "decimal commas": "a;b\n" + "".join(f"{i};{i},25\n" for i in range(40)),
    "header only": "a,b\n",
    "quoted header": '"a\nb","c, d"\n' + "".join(f"{i},{i * i}\n" for i in range(40)),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("block", [40, 1 << 20])
def test_rows_by_byte_range_are_those_of_the_whole_file(tmp_path, monkeypatch, name, block):
    monkeypatch.setattr(text_index, "BLOCK", block)
    path = tmp_path / "t.csv"
    path.write_bytes(TEXTS[name].encode())
    whole = scan(path)
    index = text_index.index_delimited(io.BytesIO(TEXTS[name].encode()), ".csv")
    assert dict(index.schema) == whole.schema
    assert index.rows[-1] == whole.n_rows
    if whole.n_rows == 0:
        return
    expected = pl.concat(whole.batches())
    rng = np.random.default_rng(0)
    for start, stop in [(0, whole.n_rows), *np.sort(rng.integers(whole.n_rows + 1, size=(9, 2)), axis=1).tolist()]:
        if start < stop:
            part = index.cut(start, stop)
            frame = part.read(io.BytesIO(TEXTS[name].encode()), list(whole.schema), start, stop)
            assert frame.equals(expected.slice(start, stop - start)), (start, stop)


def test_blocks_are_small_where_fields_have_newlines(monkeypatch):
    monkeypatch.setattr(text_index, "BLOCK", 64)
    index = text_index.index_delimited(io.BytesIO(TEXTS["quoted newlines"].encode()), ".csv")
    assert len(index.rows) > 10


@pytest.mark.parametrize("block", [40, 1 << 20])
def test_rows_of_json_by_byte_range(monkeypatch, block):
    monkeypatch.setattr(text_index, "BLOCK", block)
    lines = [f'{{"a": {i}, "b": {i if i < 30 else i + 0.5}, "c": "{i}\\n"}}' for i in range(40)]
    content = "\n".join(lines).encode()
    index = text_index.index_json(io.BytesIO(content))
    assert dict(index.schema) == {"a": pl.Int64, "b": pl.Float64, "c": pl.String}
    for start, stop in ((0, 40), (3, 4), (29, 33), (39, 40)):
        frame = index.cut(start, stop).read(io.BytesIO(content), ["b", "a"], start, stop)
        assert frame["a"].to_list() == list(range(start, stop))
        assert frame["b"].to_list() == [float(i) if i < 30 else i + 0.5 for i in range(start, stop)]


@pytest.mark.parametrize(
    "content, words",
    [
        (b"a,b\n" + "1,é\n".encode("cp1252") * 9, "not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "not plain UTF-8"),
        (b"Sales of 2024\n\na,b\n1,2\n3,4\n5,6\n", "lines that are not rows"),
        (b"a,b\n" + b"1,2\n" * 200 + b'3,"4\n' + b"5,6\n" * 4000, "is a quote not closed"),
        (b"a,b,c\n1,2,3\n4,5", "its last line has 2 of 3 fields"),
    ],
)
def test_text_that_cannot_be_read_in_parts_is_an_error(monkeypatch, content, words):
    monkeypatch.setattr(text_index, "MAX_ROW", 1 << 13)
    monkeypatch.setattr(text_index, "BLOCK", 1 << 11)
    with pytest.raises(InputError, match=words):
        text_index.index_delimited(io.BytesIO(content), ".csv")
