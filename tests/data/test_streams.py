"""Rows that are read once, in batches: the same bits as the rows in memory, and clear errors for streams that fail."""

import os
import sys

import numpy as np
import pandas
import polars as pl
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest

from coterie import GaussianMixture, KMeans, MiniBatchKMeans, machine
from coterie.data import as_source, opened, scan_files, temporary_arrays
from coterie.errors import InputError, ParameterError

NAMES = ["height", "weight", "age"]


@pytest.fixture
def X():
    rng = np.random.default_rng(2)
    return (6 * rng.normal(size=(3, 3)))[rng.integers(3, size=400)] + rng.normal(size=(400, 3))


def cut(X):
    return [X[:150], X[150:151], X[151:]]


class Capsule:
    """An object of a library that has nothing but an Arrow stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def duckdb_relation(X, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    frame = pl.DataFrame(X, schema=NAMES)
    return duckdb.connect().from_arrow(frame.to_arrow())


def dataset(X, tmp_path):
    for i, part in enumerate(cut(X)):
        pyarrow.parquet.write_table(pyarrow.table(dict(zip(NAMES, part.T, strict=True))), tmp_path / f"{i}.parquet")
    return pyarrow.dataset.dataset(tmp_path)


def arrow_table(X):
    return pyarrow.table(dict(zip(NAMES, X.T, strict=True)))


STREAMS = {
    "generator of arrays": lambda X, _: (part for part in cut(X)),
    "generator of lists": lambda X, _: (part.tolist() for part in cut(X)),
    "map": lambda X, _: map(np.asarray, cut(X)),
    "generator of Polars frames": lambda X, _: (pl.DataFrame(part, schema=NAMES) for part in cut(X)),
    "generator of pandas frames": lambda X, _: (pandas.DataFrame(part, columns=NAMES) for part in cut(X)),
    "generator of Arrow tables": lambda X, _: (arrow_table(part) for part in cut(X)),
    "generator of record batches": lambda X, _: iter(arrow_table(X).to_batches(100)),
    "generator with an empty batch": lambda X, _: iter([*cut(X), X[:0]]),
    "columns in another order": lambda X, _: iter(
        [arrow_table(X[:100]), arrow_table(X[100:]).select(["age", "height", "weight"])]
    ),
    "RecordBatchReader": lambda X, _: arrow_table(X).to_reader(100),
    "Arrow C stream": lambda X, _: Capsule(arrow_table(X)),
    "Dataset": dataset,
    "Scanner": lambda X, path: dataset(X, path).scanner(),
    "DuckDB": duckdb_relation,
}


@pytest.fixture(params=[False, True], ids=["in memory", "on disk"])
def memory(request, monkeypatch, tmp_path):
    """Enough memory for the rows, or too little."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    if request.param:
        monkeypatch.setattr(temporary_arrays, "SMALL", 1000)
        monkeypatch.setattr(machine, "free_memory", lambda: 0)
    yield
    assert os.listdir(scratch) == []


@pytest.mark.parametrize("name", STREAMS)
def test_a_fit_of_a_stream_has_the_same_bits(X, tmp_path, memory, name):
    folder = tmp_path / "stream"
    folder.mkdir()
    for estimator in (KMeans(3, random_state=0), GaussianMixture(3, random_state=0)):
        stream = STREAMS[name](X, folder)
        labels = estimator.fit(stream).labels_
        np.testing.assert_array_equal(labels, estimator.fit(X).labels_)
    source = as_source(STREAMS[name](X, folder))
    np.testing.assert_array_equal(source.X, X)
    has_names = name not in ("generator of arrays", "generator of lists", "map", "generator with an empty batch")
    assert source.columns == (NAMES if has_names else None)


def test_single_precision_is_kept(X, memory):
    assert as_source(part.astype(np.float32) for part in cut(X)).dtype == np.float32
    assert as_source(iter([X[:9].round().astype(int), X[9:]])).dtype == np.float64


def test_rows_of_a_stream_may_share_memory(X):
    """A generator may fill the same array for every batch."""

    def reused():
        batch = np.empty((100, 3))
        for start in range(0, 400, 100):
            batch[:] = X[start : start + 100]
            yield batch

    np.testing.assert_array_equal(opened(reused()), X)


def test_rows_out_of_range_are_read_once(X):
    expected = KMeans(3, random_state=0).fit(np.ldexp(X, 500))
    model = KMeans(3, random_state=0).fit(np.ldexp(part, 500) for part in cut(X))
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)


# one pass


@pytest.mark.parametrize("estimator", [MiniBatchKMeans(3, random_state=0), GaussianMixture(3, random_state=0)])
def test_partial_fit_takes_each_batch_of_a_stream(X, estimator):
    batches = [X[:150], X[150:200], X[200:]]
    expected = (
        MiniBatchKMeans(3, random_state=0)
        if isinstance(estimator, MiniBatchKMeans)
        else GaussianMixture(3, random_state=0)
    )
    for batch in batches:
        expected.partial_fit(pl.DataFrame(batch, schema=NAMES))
    estimator.partial_fit(pl.DataFrame(batch, schema=NAMES) for batch in batches)
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(estimator, name), value, err_msg=name)


def test_partial_fit_reads_one_batch_at_a_time(X):
    alive = []

    def batches():
        for part in (X[:200], X[200:]):
            alive.append(model.n_steps_ if hasattr(model, "n_steps_") else 0)
            yield part

    model = MiniBatchKMeans(3, random_state=0)
    model.partial_fit(batches())
    assert alive == [0, 1]


def test_partial_fit_takes_the_parts_of_files(X, tmp_path):
    pl.DataFrame(X, schema=NAMES).write_parquet(tmp_path / "t.parquet")
    model = MiniBatchKMeans(3, random_state=0).partial_fit(scan_files(tmp_path, cache="none"))
    expected = MiniBatchKMeans(3, random_state=0).partial_fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert list(model.feature_names_in_) == NAMES


def test_weights_of_a_stream_are_refused_where_batches_are_counted(X):
    with pytest.raises(ParameterError, match="sample_weight must be None for a stream"):
        MiniBatchKMeans(3).partial_fit(iter(cut(X)), sample_weight=np.ones(400))


# streams that fail


def test_an_error_of_a_stream_says_when_it_happened(X, memory):
    def failing():
        yield X[:150]
        yield X[150:300]
        raise OSError("connection reset by peer")

    with pytest.raises(InputError, match="after 2 batches with 300 rows: OSError: connection reset by peer"):
        KMeans(3).fit(failing())


def test_ctrl_c_in_a_stream_is_not_hidden(X, memory):
    def interrupted():
        yield X
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KMeans(3).fit(interrupted())


@pytest.mark.parametrize("name", ["generator of arrays", "RecordBatchReader", "generator of Polars frames"])
def test_a_stream_that_was_used_before_is_an_error(X, tmp_path, name):
    stream = STREAMS[name](X, tmp_path)
    model = KMeans(3, random_state=0).fit(stream)
    with pytest.raises(InputError, match=r"read only once.*rows = coterie\.data\.opened\(X\)"):
        model.predict(stream)


@pytest.mark.parametrize("name", ["Dataset", "DuckDB", "Arrow C stream"])
def test_a_stream_that_starts_again_can_be_used_again(X, tmp_path, name):
    stream = STREAMS[name](X, tmp_path)
    model = KMeans(3, random_state=0).fit(stream)
    np.testing.assert_array_equal(model.predict(stream), model.labels_)


@pytest.mark.parametrize(
    "batches, words",
    [
        ([np.zeros((3, 2)), np.zeros((3, 3))], "batch 1 of X has 3 columns, but the first has 2"),
        ([np.zeros((3, 2)), np.zeros(3)], "batch 1 of X is ndarray, but each batch must be a data frame or an array"),
        ([np.zeros((3, 2)), "text"], "batch 1 of X is str"),
        ([{"a": 1}], "batch 0 of X is dict"),
        ([np.zeros((3, 2), np.float32), np.zeros((3, 2))], "batch 1 of X is float64, but the first is float32"),
        (
            [pl.DataFrame({"a": [1.0]}), pl.DataFrame({"b": [1.0]})],
            "batch 1 of X has the columns b, but the first",
        ),
        ([pl.DataFrame({"a": [1.0]}), np.zeros((3, 1))], "batch 1 of X has no column names, unlike the first"),
        ([np.zeros((3, 1)), pl.DataFrame({"a": [1.0]})], "batch 1 of X has column names, unlike the first"),
        ([pl.DataFrame({"a": ["x"]})], r"not numbers: 'a' \(String\)"),
    ],
)
def test_batches_must_be_parts_of_one_table(batches, words):
    with pytest.raises(InputError, match=words):
        KMeans(2).fit(iter(batches))


def test_an_open_file_is_an_error_that_says_what_to_pass(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with (tmp_path / "t.csv").open() as file, pytest.raises(InputError, match="X is an open file: pass its path"):
        KMeans(2).fit(file)


@pytest.mark.parametrize("module", ["pyspark.sql.classic.dataframe", "pyspark.sql.connect.dataframe"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_spark_frame_without_a_stream_is_an_error_that_says_what_to_pass(module, method):
    frame = type("DataFrame", (), {"__module__": module, "columns": NAMES})()
    with pytest.raises(InputError, match=r"X\.toArrow\(\).*X\.write\.parquet"):
        getattr(MiniBatchKMeans(2), method)(frame)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of PySpark, about the version of pandas
def test_a_spark_frame_is_a_stream(X, tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if not hasattr(sql.DataFrame, "__arrow_c_stream__"):
        pytest.skip("PySpark 4.2 or later is needed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    dataset(X, tmp_path)
    spark = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        source = as_source(spark.read.parquet(str(tmp_path)).orderBy("height"))
    finally:
        spark.stop()
    assert source.columns == NAMES
    np.testing.assert_array_equal(source.X, X[np.argsort(X[:, NAMES.index("height")])])


def test_a_column_is_not_a_stream_of_rows(X):
    with pytest.raises(InputError, match="X failed after 0 batches"):
        KMeans(2).fit(pyarrow.chunked_array([X[:, 0]]))


def test_too_little_disk_is_an_error(X, monkeypatch):
    monkeypatch.setattr(temporary_arrays, "SMALL", 1000)
    monkeypatch.setattr(machine, "free_memory", lambda: 0)
    monkeypatch.setattr(temporary_arrays.shutil, "disk_usage", lambda _: type("usage", (), {"free": 2000}))
    with pytest.raises(InputError, match=r"needs 3\.6 KB on disk, but only 2 KB are free"):
        KMeans(3).fit(iter(cut(X)))
