"""Models of tables, exported and run where they are meant to run: SQLite, DuckDB, ONNX Runtime, plain Python."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import coterie
from coterie import jobs
from coterie.algorithms import ALGORITHMS
from coterie.errors import ParameterError
from coterie.exports import written
from coterie.exports.model_rule import SCORES
from coterie.exports.prediction_rule import PredictionRule
from fuzz.draw import Draw
from fuzz.finding import LawBroken, require

ROW = "row number"
TYPES = {pl.Float64: "REAL", pl.Float32: "REAL", pl.Int64: "INTEGER", pl.Boolean: "INTEGER"}
NEAR = (1 - 1e-9, 1 + 1e-9)  # factors that move a row across a boundary only if it is on it up to rounding
Labels = list[int | None]


def exported(model: Any, to: str, table: str = "data", dialect: str = "duckdb") -> Any:
    """The export of a model, or of a rule."""
    if isinstance(model, PredictionRule):
        return written(model, to, table, dialect)
    return coterie.export(model, to, table=table, dialect=dialect)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def in_sqlite(model: Any, frame: pl.DataFrame) -> Labels:
    statement = exported(model, "sql", dialect="sqlite", table="the table")
    columns = ", ".join(f"{quoted(name)} {TYPES.get(dtype, 'TEXT')}" for name, dtype in frame.schema.items())
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f'CREATE TABLE "the table" ({quoted(ROW)} INTEGER, {columns})')
        marks = ", ".join("?" * (frame.width + 1))
        rows = ([str(cell) if isinstance(cell, date) else cell for cell in row] for row in frame.iter_rows())
        connection.executemany(f'INSERT INTO "the table" VALUES ({marks})', ((i, *row) for i, row in enumerate(rows)))
        return [row[-1] for row in sorted(connection.execute(statement), key=lambda row: row[0])]


def in_duckdb(model: Any, frame: pl.DataFrame, dialect: str = "duckdb") -> Labels:
    import duckdb

    statement = exported(model, "sql", dialect=dialect, table="main.the table")
    with duckdb.connect() as connection:
        connection.register("rows", frame.with_row_index(ROW).to_arrow())
        connection.execute('CREATE TABLE "the table" AS SELECT * FROM rows')
        rows = connection.execute(statement).fetchall()
    return [row[-1] for row in sorted(rows, key=lambda row: row[0])]


def in_postgresql_text(model: Any, frame: pl.DataFrame) -> Labels:
    """DuckDB also reads the statement for PostgreSQL."""
    return in_duckdb(model, frame, "postgresql")


def in_python(model: Any, frame: pl.DataFrame) -> Labels:
    scope: dict[str, Any] = {}
    exec(exported(model, "python"), scope)
    require([name for name, value in scope.items() if type(value).__name__ == "module"] == ["math"], "imports")
    labels = [scope["predict"](row) for row in frame.rows(named=True)]
    few = frame.select(scope["COLUMNS"]).head(20)
    require([scope["predict"](row) for row in few.rows()] == labels[:20], "rows without names have other labels")
    return labels


def in_onnx(model: Any, frame: pl.DataFrame) -> Labels:
    import onnxruntime

    session = onnxruntime.InferenceSession(exported(model, "onnx"), providers=["CPUExecutionProvider"])
    names = session.get_modelmeta().custom_metadata_map
    numbers = frame.select(map(as_numbers, frame.select(json.loads(names["numbers"])))).fill_null(np.nan).to_numpy()
    texts = frame.select(json.loads(names["categories"])).cast(pl.String).fill_null("").to_numpy().astype(object)
    arrays = {"numbers": np.ascontiguousarray(numbers), "categories": texts}
    inputs = {each.name: arrays[each.name] for each in session.get_inputs()}
    (labels,) = session.run(["cluster"], inputs)
    return [None if label < 0 else label for label in labels.tolist()]


def as_numbers(column: pl.Series) -> pl.Series:
    """The numbers that ONNX takes: yes and no are 1 and 0."""
    words = {"yes": 1.0, "no": 0.0}
    if column.name != "member" or column.dtype != pl.String:
        return column.cast(pl.Float64)
    return column.str.strip_chars().str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Float64)


ENGINES: dict[str, Callable[[Any, pl.DataFrame], Labels]] = {
    "sqlite": in_sqlite,
    "duckdb": in_duckdb,
    "python": in_python,
    "onnx": in_onnx,
}
WITH_POSTGRESQL = {**ENGINES, "postgresql": in_postgresql_text}

# Tables, and models that are fitted to them

NAMES = (
    'a"b', "it's", 'x"; DROP TABLE "the table"; --', "new\nline", "tab\tand\rreturn", "\x1b[31mred\x1b[0m",
    "back\\slash", "'''", '"""', "%s {0} {} $1 :a ?", "/* comment */", "-- comment", "ünïcödé ☃", "t", "f0", "select",
    " ", "\u202eabc",
)  # fmt: skip
EXPORTED = tuple(name for name, each in ALGORITHMS.items() if each.class_name in SCORES and not each.series)
PREPARATIONS: dict[str, dict[str, Any]] = {
    "standardised": {"missing": "drop", "scale": "standard"},
    "medians": {"missing": "median", "scale": "robust"},
    "means": {"missing": "mean", "scale": "minmax"},
    "unscaled": {"missing": "drop", "scale": "none"},
    "transformed": {"missing": "median", "scale": "standard", "transform": ("log1p:amount", "sqrt:visits")},
    "ignored": {"missing": "ignore", "scale": "standard"},
}
DOMAINS = {"amount": -1.0, "visits": 0.0}  # of the transforms
CATEGORIES: dict[str, tuple[Any, ...]] = {  # names with "=" collide with those of one-hot columns
    "a": ("b", "c", "b=c"),
    "a=b": ("c", " d", "Ä"),
    "p": ("0.5", "1", "10"),
    "zip": ("02115", "2115", "10001"),
    "both": ("1", "1.0", "x"),  # two texts of one number
    "words": ("it's", "%", '--"', "new\nline", "TRUE", "\\d+"),
    "whole": (1, 2, 10),
    "real": (0.1 + 0.2, 1e16, -2.0),
    "truth": (True, False),
}
WRITINGS = (
    "{}", " {}\t", "{}.0", "{}.00", "{}e0", "0{}", "+{}", "{}.", "{}E+00", "-{}", "unseen", "n/a", " - ", "", "1e1",
    "1.0E+01", "1e+16", "10000000000000000", "1e-1", "true", "False", "None", "0", "-0.0",
)  # fmt: skip


def training_table(draw: Draw, n: int) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Clusters in columns with hostile names, and the names of those with categories."""
    rng, clusters = draw.rng, np.arange(n) % 3
    numbers = ["x", "a=c", "p=0.5", *(NAMES[j] for j in sorted(rng.choice(len(NAMES), 2, replace=False)))]
    columns: dict[str, Any] = {name: (rng.normal(size=n) + 4.0 * clusters).round(3) for name in numbers}
    columns["p=0.5"] = rng.random(n) < 0.3 + 0.2 * clusters
    columns["amount"] = rng.exponential(50.0, n) * (1 + clusters)
    columns["visits"] = rng.poisson(5 * (1 + clusters), n)
    columns["member"] = np.where(rng.random(n) < 0.5, "yes", "no")
    names = tuple(sorted(rng.choice(list(CATEGORIES), 4, replace=False)))
    frame = pl.DataFrame(columns).with_columns(pl.col("p=0.5").cast(pl.Float64))
    for name in names:
        values = CATEGORIES[name]
        frame = frame.with_columns(pl.Series(name, [values[i] for i in rng.integers(len(values), size=n).tolist()]))
    holes = {name: pl.Series(rng.random(n) < 0.05) for name in frame.columns}
    return frame.with_columns(pl.when(~holes[name]).then(pl.col(name)).alias(name) for name in frame.columns), names


def new_rows(draw: Draw, table: pl.DataFrame, categories: tuple[str, ...], n: int) -> pl.DataFrame:
    """Rows with missing and infinite values, integers, and categories in other writings or that are not known."""
    rng, columns = draw.rng, dict[str, pl.Series]()
    for column in table:
        cells: list[Any] = column.drop_nulls().sample(n, with_replacement=True, seed=draw.integer(0, 10**6)).to_list()
        if column.name in categories:
            if draw.happens(0.7):
                choices = [draw.one_of(WRITINGS) if draw.happens(0.5) else "{}" for _ in range(n)]
                cells = [choice.format(cell) for choice, cell in zip(choices, cells, strict=True)]
        elif column.name == "member":
            cells = [draw.one_of(["{}", " {} ", "NO", "-", "n/a"]).format(cell) for cell in cells]
        else:
            values = np.array(cells, dtype=float) + rng.normal(size=n) * draw.one_of([0.3, 3.0])
            values[rng.random(n) < 0.02] = draw.one_of([np.inf, -np.inf])
            cells = (np.round(values) if draw.happens(0.3) else values).tolist()
        is_missing = (rng.random(n) < 0.05).tolist()
        cells = [None if missing else cell for missing, cell in zip(is_missing, cells, strict=True)]
        columns[column.name] = pl.Series(column.name, cells, strict=False)
    return pl.DataFrame(columns)


def fitted(path: Path, table: pl.DataFrame, algorithm: str, preparation: str, categories: tuple[str, ...]) -> None:
    """Fit a model to a table as `coterie fit` does, and write it to a file."""
    table.write_parquet(path.parent / "table.parquet")
    quick = {"n_init": 1, "search": "none", "max_iter": 3}
    options = {name: value for name, value in quick.items() if name in ALGORITHMS[algorithm].options}
    jobs.run(
        jobs.Job(
            path.parent / "table.parquet", k=3, algorithm=algorithm, one_hot=categories, model=path, force=True,
            options=options, **PREPARATIONS[preparation],
        )
    )  # fmt: skip


def predicted(path: Path, new: pl.DataFrame, preparation: str) -> Labels:
    """The labels of `coterie predict`; None for rows that it rejects, which are left out."""
    options = PREPARATIONS[preparation]
    numbers = new.select(pl.col(pl.Float64, pl.Int64))
    is_valid = ~numbers.select(pl.any_horizontal(pl.all().cast(pl.Float64).is_infinite().fill_null(False))).to_series()
    for name in ("amount", "visits") if "transform" in options else ():
        bound = new[name] > DOMAINS[name] if name == "amount" else new[name] >= DOMAINS[name]
        is_valid &= bound.fill_null(True)
    new.filter(is_valid).write_parquet(path.parent / "new.parquet")
    missing = "drop" if options["missing"] == "drop" else "auto"
    result = jobs.predict(jobs.PredictJob(path, path.parent / "new.parquet", missing=missing))
    labels = iter(result.labels.tolist())
    valid = [next(labels) if valid else -1 for valid in is_valid]
    return [None if label < 0 else label for label in valid]


def require_same_labels(path: Path, new: pl.DataFrame, preparation: str) -> None:
    """Every engine must give the labels of `coterie predict`, up to rows on a boundary."""
    expected = predicted(path, new, preparation)
    for engine, labels_of in WITH_POSTGRESQL.items():
        try:
            labels = labels_of(path, new)
        except ParameterError as error:
            if engine != "python" and "full or tied covariances" in str(error):
                continue
            raise
        different = [i for i, pair in enumerate(zip(labels, expected, strict=True)) if pair[0] != pair[1]]
        near = [i for i in different if labels[i] is not None and expected[i] is not None]
        moved = [predicted(path, _moved(new[near], factor), preparation) if near else [] for factor in NEAR]
        on_boundary = {i for j, i in enumerate(near) if labels[i] in [each[j] for each in moved]}
        wrong = [i for i in different if i not in on_boundary]
        if wrong:
            raise LawBroken(
                f"{engine}: {len(wrong)} of {len(new)} labels differ from predict, {labels[wrong[0]]} instead of "
                f"{expected[wrong[0]]} for {new.row(wrong[0], named=True)}"
            )


def _moved(rows: pl.DataFrame, factor: float) -> pl.DataFrame:
    """The rows with numbers that differ by rounding; categories stay."""
    return rows.with_columns(pl.col(pl.Float64).exclude("real") * factor)
