"""Delimited text: some rows at a time, every field is what it is when the file is read whole."""

import csv
import io
from unittest import mock

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from coterie.data.tables import delimited_text as text
from coterie.data.tables import scan as tables
from coterie.data.tables.reader import BatchedTable
from coterie.errors import InputError

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")
MARKS = st.sampled_from([*text.MISSING_MARKS, " ", " NA "])
WHOLE = st.integers(-(10**20), 10**20).map(str) | st.sampled_from(["007", "+5", "-0", " 12 ", "1_000", "0x1f"])
REAL = st.floats(allow_nan=True).map(str) | st.sampled_from(["1.50", "1e400", ".5", "5.", "1e-3", "INF", "NAN", "1d5"])
COMMA = st.sampled_from(["1,5", "-0,25", ",5", "1,234,567", "1.000,5", "7,"])
WORDS = st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), max_size=6) | st.sampled_from(
    ['he said "no"', "a,b", "a;b", "a\tb", "two\nlines", "two\r\nlines", "#", "''", '"', "ÄÖ€", " "]
)


@st.composite
def tables_of_text(draw):
    """Rows of fields, most of a kind in every column, with a header."""
    kinds = draw(st.lists(st.sampled_from([WHOLE, WHOLE | REAL, WHOLE | COMMA, WORDS, MARKS]), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(kind | MARKS for kind in kinds)), max_size=12))
    if rows and draw(st.booleans()):  # a column of numbers whose last field is none
        last = draw(st.tuples(*(st.just(field) | REAL | COMMA | WORDS for field in rows[-1])))
        rows.append(last)
    header = draw(st.just([tuple(f"c{j}" for j in range(len(kinds)))]) | st.just([]))
    return [*header, *rows]


def written(rows, delimiter, newline, encoding, quoting, blank=0):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows(rows)
    file.write(newline * blank)
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    return mark + file.getvalue().encode(encoding, errors="replace")


def whole(path):
    """The file read at once: fields as they are written, and what they are."""
    raw, layout = text.read_text(path.read_bytes(), path.suffix)
    return raw, raw.with_columns(text.parse(column, layout.separator) for column in raw)


def joined(batches, like):
    return pl.concat([like.clear(), *batches])


# the law


@settings(max_examples=60, deadline=None)
@given(
    tables_of_text(),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(ENCODINGS),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.integers(0, 3),
    st.integers(1, 7),
    st.integers(3, 11),
)
@example([("a",), ("1",), ("2",), ("x",)], ",", "\n", "utf-8", csv.QUOTE_MINIMAL, 0, 1, 4)
@example([("a",), ("1",), ("2.5",), ("",)], ",", "\n", "utf-8", csv.QUOTE_MINIMAL, 0, 1, 4)
@example([("a", "b"), ("1", "2"), ("1,5", "2"), ("", "2")], ";", "\n", "utf-8", csv.QUOTE_MINIMAL, 0, 1, 4)
def test_some_rows_at_a_time_are_the_rows_of_the_whole_file(
    tmp_path_factory, rows, delimiter, newline, encoding, quoting, blank, at_a_time, block
):
    path = tmp_path_factory.getbasetemp() / "hostile.csv"
    path.write_bytes(written(rows, delimiter, newline, encoding, quoting, blank))
    try:
        raw, typed = whole(path)
    except pl.exceptions.PolarsError:  # a field that is cut, or a mark within quotes, can look like a ragged row
        with pytest.raises(InputError):
            tables.scan(path)
        return
    with mock.patch.object(tables, "ROWS", at_a_time), mock.patch.object(text, "BLOCK", block):
        found = tables.scan(path)
        table = BatchedTable(path, found.schema, found.n_rows, (), found, at_a_time)
        nothing = table.empty_columns if found.n_rows else frozenset(found.schema)
    assert found.schema == dict(typed.schema)
    assert found.n_rows == raw.height
    assert_frame_equal(joined(found.batches(rows=at_a_time), typed), typed)
    assert_frame_equal(joined(found.batches(rows=at_a_time, raw=True), raw), raw)
    assert nothing == {c.name for c in typed if all(value is None or value != value for value in c)}


FIELDS = WHOLE | REAL | COMMA | WORDS | st.sampled_from(["two\nlines; of, it|", '5" pipe', 'a\n"b";', "\n\n\n"])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(FIELDS, FIELDS, FIELDS), max_size=25),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
@example([("two\nlines", "1", "2")], ";", "\n", csv.QUOTE_MINIMAL)
@example([("a;b\nc;d", "1,5", "2,5")], ";", "\n", csv.QUOTE_MINIMAL)
def test_the_delimiter_is_found_whatever_stands_in_quotes(rows, delimiter, newline, quoting):
    content = written([("x", "y", "z"), *rows], delimiter, newline, "utf-8", quoting)
    frame, layout = text.read_text(content)
    assert layout.separator == delimiter
    assert frame.columns == ["x", "y", "z"]
    assert text._delimiter(content.decode()[: len(content) // 2]) in (delimiter, ",")  # where a field is cut


def test_a_quote_within_a_field_is_text():
    assert text._delimiter('size;price\n5" pipe;3,5\n6" pipe;4,5\n') == ";"


@settings(max_examples=150, deadline=None)
@given(st.lists(WHOLE | REAL | COMMA | WORDS | MARKS, min_size=1, max_size=6), st.sampled_from(",;"))
def test_what_can_be_read_as_a_kind_can_be_read_as_every_wider_one(fields, separator):
    """What lets a batch be looked at once, with the kind that was left after those before it."""
    column = pl.Series("c", fields)
    missing = text.convert(column, text.TEXT).null_count()
    fits = [text.convert(column, kind).null_count() == missing for kind in text._numbers(separator)]
    assert fits == sorted(fits)


# its cases


def scanned(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tables.scan(path)


def column(found, name):
    return pl.concat([pl.Series(name, dtype=found.schema[name]), *(batch[name] for batch in found.batches([name]))])


@pytest.mark.parametrize(
    "fields, kind",
    [
        (["1", "2", "3"], pl.Int64),
        (["1", "NA", ""], pl.Int64),
        (["", "null", "N/A"], pl.Int64),
        (["1", "2", "3.5"], pl.Float64),
        (["1", "2", "99999999999999999999"], pl.Float64),
        (["1", "2", "x"], pl.String),
        (["1.5", "2", "1.5.2"], pl.String),
    ],
)
def test_the_last_field_counts_as_much_as_the_first(tmp_path, monkeypatch, fields, kind):
    monkeypatch.setattr(tables, "ROWS", 1)
    found = scanned(tmp_path, "a,b\n" + "".join(f"{field},0\n" for field in fields))
    assert found.schema == {"a": kind(), "b": pl.Int64()}
    expected = text.parse(pl.Series("a", [field or None for field in fields]), ",")
    assert column(found, "a").to_list() == expected.to_list()


def test_a_comma_stands_before_decimals_where_it_separates_no_fields(tmp_path):
    found = scanned(tmp_path, "a;b\n1,5;x\n2;y\n")
    assert column(found, "a").to_list() == [1.5, 2.0]
    assert column(scanned(tmp_path, "a\tb\n1,5\t0,25\n", "t.tsv"), "b").to_list() == [0.25]


def test_fields_come_as_they_were_written_if_asked(tmp_path):
    found = scanned(tmp_path, "a,b\n007,1.50\n NA,x \n")
    (batch,) = found.batches(raw=True)
    assert batch.rows() == [("007", "1.50"), (" NA", "x ")]
    (batch,) = found.batches()
    assert batch.rows() == [("007", "1.50"), (None, "x ")]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_is_read_as_it_is_meant(tmp_path, encoding):
    rows = [("größe", "ort"), *((str(j), "Zürich") for j in range(30))]
    found = scanned(tmp_path, written(rows, ";", "\r\n", encoding, csv.QUOTE_MINIMAL))
    assert list(found.schema) == ["größe", "ort"]
    assert column(found, "größe").to_list() == list(range(30))
    assert set(column(found, "ort")) == {"Zürich"}


def test_a_file_is_in_utf8_only_if_its_last_byte_is(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 1 << 10)
    body = "a,b\n" + "1,Zürich\n" * 2000
    assert set(column(scanned(tmp_path, body.encode()), "b")) == {"Zürich"}
    found = column(scanned(tmp_path, body.encode() + b"1,Z\xfcrich\n"), "b")
    assert found[-1] == "Zürich"
    assert found[0] == "ZÃ¼rich"


def test_a_letter_that_is_cut_where_the_delimiter_is_looked_for_does_no_harm(tmp_path):
    field = "😀" * text.SNIFFED_BYTES
    found = scanned(tmp_path, f"a;b\nx{field};1\n".encode("utf-16"))
    assert list(found.schema) == ["a", "b"]


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\r\n\r\n", "\n  \n", "\n\n "])
def test_blank_lines_at_the_end_are_no_rows(tmp_path, end):
    found = scanned(tmp_path, "a,b\n1,2\n,\n\n3,4" + end)
    assert found.n_rows == 4
    assert column(found, "a").to_list() == [1, None, None, 3]
    raw, _ = text.read_text(("a,b\n1,2\n,\n\n3,4" + end).encode())
    assert raw["a"].to_list() == ["1", None, None, "3"]


def test_blank_lines_are_found_however_many_there_are(tmp_path):
    assert scanned(tmp_path, "a,b\n1,2" + "\n" * 3 * text.SNIFFED_BYTES).n_rows == 1


def test_in_one_column_a_blank_line_is_a_value_that_is_missing(tmp_path):
    assert column(scanned(tmp_path, "a\n1\n\n"), "a").to_list() == [1, None]


@pytest.mark.parametrize(
    "first, header",
    [
        ("1,2.5", False),
        ('"1"," 2 "', False),
        ("-1e3,inf", False),
        ("a,2", True),
        ("1,", True),
        ("1,NA", True),
        ("2019 Q1,2", True),
    ],
)
def test_a_first_line_of_numbers_is_a_row(tmp_path, first, header):
    found = scanned(tmp_path, first + "\n3,4\n5,6\n")
    assert found.n_rows == (2 if header else 3)
    assert (list(found.schema) == ["column_1", "column_2"]) != header
    assert (found.notes == ()) == header


def test_numbers_with_a_comma_before_decimals_are_no_header(tmp_path):
    assert column(scanned(tmp_path, "1,5;2\n3;4\n5;6\n"), "column_1").to_list() == [1.5, 3.0, 5.0]


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_an_empty_file_is_rejected(tmp_path, content):
    with pytest.raises(InputError, match=r"t\.csv is empty"):
        scanned(tmp_path, content)


def test_values_that_are_not_text_are_rejected(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*t\.csv.*: it is not text"):
        scanned(tmp_path, b"a,b\n\0\1,2\n")


def test_a_row_with_too_many_fields_is_rejected_wherever_it_is(tmp_path):
    with pytest.raises(InputError, match="line 5003 has 4 fields, the first has 2"):
        scanned(tmp_path, 'a,b\n1,"2\n"\n' + "1,2\n" * 4999 + "1,2,3,4\n" + "1,2\n" * 5000)
    with pytest.raises(InputError, match="line 3 has 3 fields, the first has 2"):
        scanned(tmp_path, "größe;b\n1;2\n1;2;3\n".encode("utf-16"))


@pytest.mark.parametrize("name", ['q "x"', '"', 'a""b', 'two\n"lines"'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_name_with_quotes_is_the_name_that_was_written(tmp_path, name, encoding):
    (tmp_path / "t.csv").write_bytes(written([(name, "b"), ("1", "2")], ",", "\n", encoding, csv.QUOTE_ALL))
    assert text.scan_text(tmp_path / "t.csv")[0].collect().columns == [name, "b"]
    assert text.read_text((tmp_path / "t.csv").read_bytes())[0].columns == [name, "b"]


def test_quotes_of_a_name_that_is_not_in_quotes_are_text():
    assert text.read_text(b'a""b,c\n1,2\n')[0].columns == ['a""b', "c"]
    assert text.read_text(b'a""b,"a""""b"\n1,2\n')[0].columns == ['a""b', 'a""b_2']  # two columns of one name


def test_a_header_alone_has_no_rows(tmp_path):
    found = scanned(tmp_path, "a,b\n")
    assert found.n_rows == 0
    assert list(found.schema) == ["a", "b"]
    assert column(found, "a").to_list() == []
