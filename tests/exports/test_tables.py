"""Models of `coterie fit`: the stored preparation is exported, and labels are those of `coterie predict`."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris

from coterie import jobs
from coterie.datasets import write_demo
from exports.engines import ENGINES, in_python, in_sqlite

NUMBERS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
N_NEW = 2000


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
        for engine, labels_of in ENGINES.items():
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


def test_a_column_of_numbers_with_an_equals_sign_is_not_a_category(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=60), "b=c": rng.normal(size=60), "=d": rng.random(60)})
    frame.write_parquet(tmp_path / "table.parquet")
    model = tmp_path / "model.safetensors"
    for scale in ("standard", "none"):
        result = jobs.run(jobs.Job(tmp_path / "table.parquet", k=3, model=model, force=True, scale=scale))
        assert in_python(model, frame) == in_sqlite(model, frame) == result.labels.tolist()


def test_true_and_false_are_categories(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=60), "flag": rng.random(60) < 0.5})
    frame.write_parquet(tmp_path / "table.parquet")
    model = tmp_path / "model.safetensors"
    result = jobs.run(jobs.Job(tmp_path / "table.parquet", k=4, model=model, one_hot=("flag",), scale="none"))
    for engine in ENGINES:
        assert ENGINES[engine](model, frame) == result.labels.tolist(), engine
