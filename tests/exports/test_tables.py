"""Models of `coterie fit`: the stored preparation is exported, and labels are those of `coterie predict`."""

from datetime import date, timedelta
from itertools import product

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris

import coterie
from coterie import jobs
from coterie.algorithms import ALGORITHMS
from coterie.datasets import write_demo
from coterie.errors import ParameterError
from coterie.exports.model_rule import SCORES
from fuzz.draw import RandomDraw
from fuzz.exported import (
    ENGINES,
    EXPORTED,
    PREPARATIONS,
    WITH_POSTGRESQL,
    fitted,
    new_rows,
    require_same_labels,
    training_table,
)

NUMBERS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
N_NEW = 1000


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Penguins, and random penguins with missing values and islands that the fit has not seen."""
    folder = tmp_path_factory.mktemp("tables")
    frame = pl.read_csv(write_demo("penguins", folder / "penguins.csv"), null_values="NA").drop("year")
    frame.write_parquet(folder / "penguins.parquet")
    rng = np.random.default_rng(3)
    columns = {}
    for name in NUMBERS:
        low, high = frame[name].min(), frame[name].max()
        values = rng.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), N_NEW)
        columns[name] = np.where(rng.random(N_NEW) < 0.1, np.nan, values)
    columns["sex"] = rng.choice(["male", "female", "unknown", None], N_NEW).tolist()
    columns["island"] = rng.choice(["Biscoe", "Dream", "Torgersen", "Anvers", "dream", None], N_NEW).tolist()
    new = pl.DataFrame(columns, schema_overrides={"sex": pl.String, "island": pl.String}).fill_nan(None)
    new.write_parquet(folder / "new.parquet")
    return folder, frame, new


def check_labels(tables, at_predict, **options):
    """Check that exports have the labels of `coterie predict` for both tables; -1 there is no cluster."""
    folder, *frames = tables
    path = folder / "model.safetensors"
    jobs.run(jobs.Job(folder / "penguins.parquet", columns=NUMBERS, model=path, force=True, **options))
    for name, frame in zip(("penguins.parquet", "new.parquet"), frames, strict=True):
        labels = jobs.predict(jobs.PredictJob(path, folder / name, missing=at_predict)).labels.tolist()
        expected = [None if label < 0 else label for label in labels]
        assert (None in expected) == (at_predict == "drop")
        for engine, labels_of in WITH_POSTGRESQL.items():
            assert labels_of(path, frame) == expected, (name, engine)


@pytest.mark.parametrize("scale", ["standard", "robust", "minmax", "none"])
def test_scaling_and_categories(tables, scale):
    check_labels(tables, "drop", k=4, missing="drop", one_hot=("sex", "island"), scale=scale)


@pytest.mark.parametrize("missing", ["mean", "median", "ignore"])
def test_missing_values_and_categories(tables, missing):
    check_labels(tables, "auto", k=4, missing=missing, one_hot=("sex", "island"))


@pytest.mark.parametrize("method", ["spherical", "bisecting", "kmedoids"])
def test_other_algorithms(tables, method):
    check_labels(tables, "drop", k=3, algorithm=method, missing="drop")


def test_mixtures(tables):
    check_labels(
        tables, "auto", k=3, algorithm="gmm", missing="median", one_hot=("sex",), options={"covariance": "EEE"}
    )


def test_iris_and_float32(tmp_path):
    X = load_iris().data
    for dtype in (pl.Float64, pl.Float32):
        frame = pl.DataFrame({f"column {j}": X[:, j] for j in range(4)}).cast(dtype)
        frame.write_parquet(tmp_path / "iris.parquet")
        model = tmp_path / "iris.safetensors"
        for method in ("kmeans", "gmm"):
            result = jobs.run(jobs.Job(tmp_path / "iris.parquet", algorithm=method, k=3, model=model, force=True))
            for engine, labels_of in ENGINES.items():
                assert labels_of(model, frame) == result.labels.tolist(), engine


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Amounts over orders of magnitude, counts with missing values, prices as text, and truth values."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("shop")
    frame = pl.DataFrame(
        {
            "amount": np.exp(rng.normal(3, 2, 200)),
            "visits": np.where(rng.random(200) < 0.1, np.nan, rng.poisson(5, 200)),
            "price": rng.uniform(1, 5000, 200).round(2),
            "member": rng.random(200) < 0.5,
            "day": [date(2024, 1, 1) + timedelta(days=i) for i in rng.integers(0, 500, 200).tolist()],
        }
    ).fill_nan(None)
    frame.write_parquet(folder / "shop.parquet")
    text = pl.Series([f"${price:,.2f}" for price in frame["price"]])
    frame.with_columns(text.alias("price")).write_csv(folder / "shop.csv")
    return folder, frame


@pytest.mark.parametrize("transform", [(), ("log:amount", "sqrt:visits", "log1p:price"), ("none:amount",)])
def test_transforms_and_truth_values(shop, transform):
    folder, frame = shop
    model = folder / "model.safetensors"
    options = {"k": 3, "missing": "median", "exclude": ("day",), "transform": transform}
    result = jobs.run(jobs.Job(folder / "shop.parquet", model=model, force=True, **options))
    assert result.columns == ("amount", "visits", "price", "member")
    for engine, labels_of in WITH_POSTGRESQL.items():
        assert labels_of(model, frame) == result.labels.tolist(), engine


@pytest.mark.parametrize("cell", ["${:,.2f}", "{:.2f} €", "{:.0f},5", "({:.2f})"])
def test_sql_of_numbers_that_are_written_for_people_is_rejected(shop, cell):
    """ONNX and Python take the numbers."""
    folder, frame = shop
    prices = frame["price"].head(3).to_list() + frame["price"].to_list()[3:]
    table = frame.drop("day").with_columns(pl.Series("price", [cell.format(price) for price in prices]))
    table.write_parquet(folder / "written.parquet")
    model = folder / "written.safetensors"
    result = jobs.run(jobs.Job(folder / "written.parquet", k=3, missing="median", model=model, force=True))
    for dialect in ("duckdb", "sqlite", "postgresql"):
        with pytest.raises(ParameterError, match=r"column 'price' is read from text such as .*: store it as numbers"):
            coterie.export(model, "sql", dialect=dialect)
    numbers = pl.Series("price", [float(f"{price:.0f}.5") if ",5" in cell else round(price, 2) for price in prices])
    plain = frame.with_columns(-numbers if "(" in cell else numbers)
    for engine in ("python", "onnx"):
        assert ENGINES[engine](model, plain) == result.labels.tolist(), engine


@pytest.mark.parametrize("engine", WITH_POSTGRESQL)
def test_codes_and_words_of_missing_values_and_text_of_numbers(tmp_path, engine):
    """Numbers that `--na-values` names, marks in a column of text, and plain numbers in it are read as in the fit."""
    rng = np.random.default_rng(0)
    codes = np.where(np.arange(90) % 7 == 0, -9999, rng.integers(0, 9, 90)).tolist()
    texts = [["-", "unknown", "NaN"][i % 3] if i % 9 == 0 else f"{1000 * rng.random():.1f}" for i in range(90)]
    frame = pl.DataFrame({"x": rng.normal(size=90), "code": codes, "text": texts})
    frame.write_parquet(tmp_path / "table.parquet")
    model = tmp_path / "model.safetensors"
    options = {"missing": "median", "na_values": ("-9999", "unknown"), "model": model}
    result = jobs.run(jobs.Job(tmp_path / "table.parquet", k=4, **options))
    assert result.columns == ("x", "code", "text")
    if engine == "onnx":
        frame = frame.with_columns(pl.col("text").cast(pl.Float64, strict=False))
    assert WITH_POSTGRESQL[engine](model, frame) == result.labels.tolist()


def test_dates_are_rejected(shop):
    folder, _ = shop
    model = folder / "dates.safetensors"
    jobs.run(jobs.Job(folder / "shop.csv", k=3, missing="median", model=model))
    with pytest.raises(ParameterError, match=r"column 'day' is computed from a date, .*: fit with --dates skip"):
        coterie.export(model, "sql")


def test_columns_with_an_equals_sign_are_what_they_were_in_the_fit(tmp_path):
    """Neither a numeric column nor a category is guessed from its name."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({
        "a": rng.choice(["b", "c", "b=c"], 60), "a=b": rng.choice(["c", "d"], 60), "a=c": rng.normal(size=60),
        "p": rng.choice(["0.5", "1"], 60), "p=0.5": rng.integers(0, 2, 60), "=d": rng.random(60),
    })  # fmt: skip
    frame.write_parquet(tmp_path / "table.parquet")
    model = tmp_path / "model.safetensors"
    for scale, one_hot in product(("standard", "none"), ((), ("p",), ("a=b",), ("a", "a=b", "p"))):
        job = jobs.Job(tmp_path / "table.parquet", k=3, model=model, force=True, scale=scale, one_hot=one_hot)
        result = jobs.run(job)
        assert jobs.predict(jobs.PredictJob(model, job.path)).labels.tolist() == result.labels.tolist()
        assert coterie.load(model).predict(frame).tolist() == result.labels.tolist()
        for engine, labels_of in ENGINES.items():
            assert labels_of(model, frame) == result.labels.tolist(), (engine, scale, one_hot)
        n_features = len(result.columns) + sum(frame[name].n_unique() for name in result.categories)
        assert {len(cluster.means) for cluster in result.clusters} == {n_features}


COMPLETE = [name for name in PREPARATIONS if name != "ignored"]
LAW = [  # every algorithm, and every preparation; the fuzzer draws all pairs
    *((algorithm, COMPLETE[i % len(COMPLETE)]) for i, algorithm in enumerate(EXPORTED)),
    *((algorithm, "ignored") for algorithm in EXPORTED if ALGORITHMS[algorithm].handles_missing),
]


def test_every_estimator_that_is_exported_is_in_the_law():
    assert {ALGORITHMS[name].class_name for name, _ in LAW} == set(SCORES)
    assert {name for _, name in LAW} == set(PREPARATIONS)


@pytest.mark.parametrize("algorithm, preparation", LAW)
def test_exports_have_the_labels_of_predict(tmp_path, algorithm, preparation):
    """Columns and categories have hostile names; cells are missing, infinite, written otherwise or not known."""
    draw = RandomDraw(*map(ord, algorithm + preparation))
    table, categories = training_table(draw, 60)
    model = tmp_path / "model.safetensors"
    fitted(model, table, algorithm, preparation, categories)
    require_same_labels(model, new_rows(draw, table, categories, 100), preparation)


@pytest.mark.parametrize("category", ["inf", "2024-01-01 10:00:00.000000"])
def test_categories_that_databases_write_otherwise_are_rejected(tmp_path, category):
    frame = pl.DataFrame({"x": [0.0, 1.0, 5.0, 6.0] * 5, "kind": ["a", category] * 10})
    frame.write_parquet(tmp_path / "table.parquet")
    model = tmp_path / "model.safetensors"
    jobs.run(jobs.Job(tmp_path / "table.parquet", k=2, one_hot="kind", model=model))
    with pytest.raises(ParameterError, match=r"^column 'kind' has the category .*: convert the column to text"):
        coterie.export(model, "sql")
