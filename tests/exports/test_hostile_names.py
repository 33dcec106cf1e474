"""Names of columns and values from data cannot change the meaning of an export."""

import sqlite3

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie
from coterie.errors import ParameterError
from coterie.exports import written
from coterie.exports.prediction_rule import Indicator, NearestCenter, Number, PredictionRule
from coterie.exports.sql_dialects import SQLITE, identifier, literal_of, string
from fuzz.exported import ENGINES, NAMES, WITH_POSTGRESQL


@pytest.mark.parametrize("engine", WITH_POSTGRESQL)
def test_hostile_names_of_columns(engine):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({name: rng.normal(size=80) for name in NAMES})
    model = coterie.KMeans(3, random_state=0).fit(frame)
    assert WITH_POSTGRESQL[engine](model, frame) == model.labels_.tolist()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_quoted_names_and_strings_are_read_as_they_are(text):
    with sqlite3.connect(":memory:") as connection:
        cursor = connection.execute(f"SELECT {string(text)} AS {identifier(text or 'x')}")
        assert cursor.fetchall() == [(text,)]
        assert cursor.description[0][0] == (text or "x")


def test_null_characters_are_rejected_in_sql_and_escaped_in_python():
    model = coterie.KMeans(2, random_state=0).fit(pl.DataFrame({"a\0b": [1.0, 2.0, 8.0, 9.0]}))
    for dialect in ("duckdb", "sqlite", "postgresql"):
        with pytest.raises(ParameterError, match=r"'a\\x00b' contains a null character"):
            coterie.export(model, "sql", dialect=dialect)
    assert ENGINES["python"](model, pl.DataFrame({"a\0b": [1.5]})) == [int(model.labels_[0])]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgresql"])
def test_a_column_without_a_name_is_rejected_in_sql(dialect):
    frame = pl.DataFrame({"": [1.0, 2.0, 8.0, 9.0]})
    model = coterie.KMeans(2, random_state=0).fit(frame)
    with pytest.raises(ParameterError, match="a column has no name"):
        coterie.export(model, "sql", dialect=dialect)
    assert ENGINES["python"](model, frame) == model.labels_.tolist()


def test_names_that_differ_by_case_only():
    frame = pl.DataFrame({"a": [1.0, 2.0, 8.0, 9.0], "A": [5.0, 6.0, 1.0, 2.0]})
    model = coterie.KMeans(2, random_state=0).fit(frame)
    for dialect in ("duckdb", "sqlite"):
        with pytest.raises(ParameterError, match=f"columns 'a' and 'A' are the same in {dialect}"):
            coterie.export(model, "sql", dialect=dialect)
    assert '"A"' in coterie.export(model, "sql", dialect="postgresql")
    assert ENGINES["python"](model, frame) == model.labels_.tolist()


def test_python_code_is_ascii():
    frame = pl.DataFrame({name: [0.0, 1.0, 5.0, 6.0] for name in NAMES})
    code = coterie.export(coterie.KMeans(2, random_state=0).fit(frame), "python")
    assert code.isascii()
    assert not any(ord(character) < 32 and character != "\n" for character in code)


def test_a_table_in_a_schema_and_a_hostile_table_name():
    model = coterie.KMeans(2, random_state=0).fit([[1.0], [2.0], [8.0]])
    assert coterie.export(model, "sql", table="sales.orders").endswith('FROM "sales"."orders" AS t\n')
    assert coterie.export(model, "sql", table='x"; --').endswith('FROM "x""; --" AS t\n')


def test_text_in_a_numeric_column_of_sqlite():
    """Columns of SQLite can contain any value. Text of a number is that number, as for `coterie predict`."""
    model = coterie.KMeans(2, random_state=0).fit([[1.0], [2.0], [8.0], [9.0]])
    near, far = model.predict([[1.0], [9.0]]).tolist()
    values = {1: near, 9: far, 9.5: far, "9": far, " 9.0 ": far, "9e0": far, 2**53 + 1: far, "": None, None: None}
    values |= dict.fromkeys(["9 apples", "abc", b"9", float("inf")])
    for kind in ("", "REAL", "TEXT", "INTEGER"):
        with sqlite3.connect(":memory:") as connection:
            connection.execute(f"CREATE TABLE data (x0 {kind})")
            connection.executemany("INSERT INTO data VALUES (?)", [[value] for value in values])
            rows = connection.execute(coterie.export(model, "sql", dialect="sqlite")).fetchall()
        assert [label for _, label in rows] == list(values.values()), kind


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_of_sqlite_are_exact(number):
    with sqlite3.connect(":memory:") as connection:
        assert connection.execute(f"SELECT {literal_of(number, SQLITE)}").fetchone() == (number,)


def test_numbers_that_sqlite_would_round_are_exact():
    """Versions of SQLite read about one of twenty thousand decimals as a neighbour of the number."""
    rng = np.random.default_rng(0)
    misread = [-0.0949079371633735, -9920468.47345741, 0.002357098520853605, 1.604320944184687e-11, 0.1, 1e22, 1e23]
    numbers = [*misread, *(rng.normal(size=5000) * 10.0 ** rng.integers(-12, 13, 5000)).tolist()]
    with sqlite3.connect(":memory:") as connection:
        rows = connection.execute("VALUES " + ", ".join(f"({literal_of(number, SQLITE)})" for number in numbers))
        assert [number for (number,) in rows] == numbers


def test_categories_of_sqlite_are_compared_by_case():
    """Also in a column whose collation ignores it."""
    frame = pl.DataFrame({"x": [0.0, 1.0, 0.5, 0.7] * 3, "kind": ["a", "A", "b", "B"] * 3})
    rule = PredictionRule(
        "KMeans",
        (Number("x"),),
        tuple(Indicator("kind", value) for value in ("a", "A", "b")),
        "none",
        NearestCenter("squares", np.array([[0.5, 1.0, 0.0, 0.0], [0.5, 0.0, 1.0, 0.0], [0.5, 0.0, 0.0, 1.0]])),
    )
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE data (x REAL, kind TEXT COLLATE NOCASE)")
        connection.executemany("INSERT INTO data VALUES (?, ?)", frame.rows())
        rows = connection.execute(written(rule, "sql", "data", "sqlite")).fetchall()
    assert [label for *_, label in rows] == [0, 1, 2, 0] * 3
