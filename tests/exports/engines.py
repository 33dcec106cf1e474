"""Run an exported model where it is meant to run: SQLite, DuckDB, ONNX Runtime, plain Python."""

import json
import sqlite3

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.exports import written
from coterie.exports.prediction_rule import PredictionRule

ROW = "row number"
TYPES = {pl.Float64: "REAL", pl.Float32: "REAL", pl.Int64: "INTEGER", pl.Boolean: "INTEGER"}


def exported(model, to, table="data", dialect="duckdb"):
    """The export of a model, or of a rule."""
    if isinstance(model, PredictionRule):
        return written(model, to, table, dialect)
    return coterie.export(model, to, table=table, dialect=dialect)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def in_sqlite(model, frame):
    statement = exported(model, "sql", dialect="sqlite", table="the table")
    columns = ", ".join(f"{quoted(name)} {TYPES.get(dtype, 'TEXT')}" for name, dtype in frame.schema.items())
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f'CREATE TABLE "the table" ({quoted(ROW)} INTEGER, {columns})')
        marks = ", ".join("?" * (frame.width + 1))
        connection.executemany(f'INSERT INTO "the table" VALUES ({marks})', frame.with_row_index(ROW).iter_rows())
        return [row[-1] for row in sorted(connection.execute(statement), key=lambda row: row[0])]


def in_duckdb(model, frame, dialect="duckdb"):
    duckdb = pytest.importorskip("duckdb")
    statement = exported(model, "sql", dialect=dialect, table="main.the table")
    with duckdb.connect() as connection:
        connection.register("rows", frame.with_row_index(ROW).to_arrow())
        connection.execute('CREATE TABLE "the table" AS SELECT * FROM rows')
        rows = connection.execute(statement).fetchall()
    return [row[-1] for row in sorted(rows, key=lambda row: row[0])]


def in_postgresql_text(model, frame):
    """DuckDB also reads the statement for PostgreSQL."""
    return in_duckdb(model, frame, "postgresql")


def in_python(model, frame):
    scope = {}
    exec(exported(model, "python"), scope)
    assert [name for name, value in scope.items() if type(value).__name__ == "module"] == ["math"]
    labels = [scope["predict"](row) for row in frame.rows(named=True)]
    few = frame.select(scope["COLUMNS"]).head(20)
    assert [scope["predict"](row) for row in few.rows()] == labels[:20]
    return labels


def in_onnx(model, frame):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(exported(model, "onnx"), providers=["CPUExecutionProvider"])
    names = session.get_modelmeta().custom_metadata_map
    numbers = frame.select(json.loads(names["numbers"])).cast(pl.Float64).fill_null(np.nan).to_numpy()
    texts = frame.select(json.loads(names["categories"])).cast(pl.String).fill_null("").to_numpy().astype(object)
    arrays = {"numbers": np.ascontiguousarray(numbers), "categories": texts}
    inputs = {each.name: arrays[each.name] for each in session.get_inputs()}
    (labels,) = session.run(["cluster"], inputs)
    return [None if label < 0 else label for label in labels.tolist()]


ENGINES = {
    "sqlite": in_sqlite,
    "duckdb": in_duckdb,
    "postgresql": in_postgresql_text,
    "python": in_python,
    "onnx": in_onnx,
}
