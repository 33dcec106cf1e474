"""Whatever names the rows, a path, a pattern or a query: the same bits as from the rows themselves."""

import datetime
import os
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import coterie
from coterie import (
    AgglomerativeClustering,
    BalancedKMeans,
    BayesianGaussianMixture,
    BisectingKMeans,
    DivisiveClustering,
    FuzzyCMeans,
    GaussianMixture,
    Job,
    KernelKMeans,
    KMeans,
    KMedians,
    KMedoids,
    MiniBatchKMeans,
    Mixture,
    SphericalKMeans,
    TimeSeriesKMeans,
    choose_k,
    diagnose,
    machine,
)
from coterie.data import as_source, opened, temporary_arrays
from coterie.data.tables import scan as tables
from coterie.distances import pairwise
from coterie.errors import InputError
from coterie.hierarchy import linkage
from coterie.metrics import calinski_harabasz_score, silhouette_score
from coterie.selection import sweep

NAMES = ["height", "weight", "age", "pulse"]
ESTIMATORS = [
    KMeans(3, random_state=0),
    KMeans(3, random_state=0, missing="ignore"),
    MiniBatchKMeans(3, random_state=0, batch_size=100),
    SphericalKMeans(3, random_state=0),
    KMedians(3, random_state=0),
    FuzzyCMeans(3, random_state=0),
    BalancedKMeans(3, random_state=0),
    BisectingKMeans(3, random_state=0),
    KernelKMeans(3, random_state=0),
    TimeSeriesKMeans(3, random_state=0),
    GaussianMixture(3, random_state=0),
    BayesianGaussianMixture(3, random_state=0),
    Mixture(3, "gaussian", random_state=0),
    KMedoids(3, random_state=0),
    KMedoids(3, metric="gower", random_state=0),
    AgglomerativeClustering(3),
    AgglomerativeClustering(3, linkage="average", metric="manhattan"),
    DivisiveClustering(3),
    DivisiveClustering(3, method="bisecting", random_state=0),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same table in many files, in double and in single precision; and in several, one below the other."""
    where = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(1)
    X = (5 * rng.normal(size=(3, 4)))[rng.integers(3, size=300)] + rng.normal(size=(300, 4))
    for kind in (np.float64, np.float32):
        frame = pl.DataFrame(X.astype(kind), schema=NAMES)
        name = where / np.dtype(kind).name
        frame.write_parquet(f"{name}.parquet")
        frame.write_ipc(f"{name}.arrow")
        frame.write_csv(f"{name}.csv")
        np.save(f"{name}.npy", X.astype(kind))
        for i, part in enumerate(frame.iter_slices(80)):
            part.write_parquet(f"{name}_{i}.parquet")
    return where


@pytest.fixture
def X(folder):
    return np.load(folder / "float64.npy")


@pytest.fixture
def path(folder):
    return str(folder / "float64.parquet")


def named(folder, kind):
    """All ways to name the rows of that type."""
    return {
        "Parquet": str(folder / f"{kind}.parquet"),
        "Path": folder / f"{kind}.parquet",
        "Arrow": str(folder / f"{kind}.arrow"),
        "pattern": str(folder / f"{kind}_*.parquet"),
        "query": pl.scan_parquet(folder / f"{kind}.parquet"),
        "query of a frame": pl.read_parquet(folder / f"{kind}.parquet").lazy(),
    }


@pytest.fixture
def short_of_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(temporary_arrays, "SMALL", 0)
    monkeypatch.setattr(machine, "free_memory", lambda: 0)
    return tmp_path


def answers(model):
    """All arrays and numbers that a fit has found."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray | float | int)}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)
        assert np.asarray(value).dtype == np.asarray(other[name]).dtype, name


# the law


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_a_fit_has_the_same_bits_whatever_names_the_rows(folder, estimator, kind):
    X = np.load(folder / f"{kind}.npy")
    frame = pl.DataFrame(X, schema=NAMES)
    fit = clone(estimator).fit
    expected = answers(fit(X)) | {"feature_names_in_": np.array(NAMES, object)}
    assert_same(answers(fit(frame)), expected)
    names = named(folder, kind)
    for given in (names["Parquet"], names["query"]) if kind == "float64" else (names["Arrow"],):
        assert_same(answers(fit(given)), expected)


@pytest.mark.parametrize("estimator", [ESTIMATORS[0], ESTIMATORS[-2]], ids=repr)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_every_name_of_the_rows_gives_the_same_bits(folder, estimator, kind):
    expected = answers(clone(estimator).fit(folder / f"{kind}.npy"))
    for name, given in named(folder, kind).items():
        found = answers(clone(estimator).fit(given))
        assert found.pop("feature_names_in_").tolist() == NAMES, name
        assert_same(found, expected)


@pytest.mark.parametrize("estimator", ESTIMATORS[:13], ids=repr)
def test_a_fit_has_the_same_bits_where_rows_and_their_copies_are_on_disk(path, X, estimator, request):
    expected = answers(estimator.fit(X)) | {"feature_names_in_": np.array(NAMES, object)}
    folder = request.getfixturevalue("short_of_memory")
    assert_same(answers(estimator.fit(path)), expected)
    assert os.listdir(folder) == []


@pytest.mark.parametrize("rows", [1, 7, 299, 300, 301])
def test_rows_are_the_same_whatever_the_batches(path, X, rows, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", rows)
    np.testing.assert_array_equal(as_source(path).X, X)


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_sources_keep_values_type_and_names(folder, kind):
    X = np.load(folder / f"{kind}.npy")
    for given in named(folder, kind).values():
        source = as_source(given)
        assert type(source.X) is np.ndarray
        assert source.dtype == kind
        assert source.columns == NAMES
        np.testing.assert_array_equal(source.X, X)


def test_numbers_written_as_text_are_read_back(folder, X):
    source = as_source(folder / "float64.csv")
    assert source.columns == NAMES
    np.testing.assert_array_equal(source.X, X)


# what is asked of a model that is fitted


@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if hasattr(e, "predict")], ids=repr)
def test_a_model_answers_for_a_path_as_for_its_rows(path, X, estimator):
    frame = pl.DataFrame(X, schema=NAMES)
    model = estimator.fit(path)
    for verb in ("predict", "transform", "predict_proba", "score_samples", "score"):
        if hasattr(model, verb):
            np.testing.assert_array_equal(getattr(model, verb)(path), getattr(model, verb)(frame), err_msg=verb)


@pytest.mark.parametrize(
    "estimator", [KMeans(3), GaussianMixture(3), KMedoids(3), AgglomerativeClustering(3)], ids=repr
)
def test_other_columns_than_those_of_the_fit_are_rejected(path, estimator):
    model = estimator.fit(path)
    assert list(model.feature_names_in_) == NAMES
    for other in (pl.scan_parquet(path).rename({"age": "years"}), pl.scan_parquet(path).select(NAMES[::-1])):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(other)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pl.scan_parquet(path).select(NAMES[:3]))


def test_missing_values_are_rejected_by_the_name_of_the_column(path):
    query = pl.scan_parquet(path).with_columns(pl.when(pl.col("age") > 1).then("age"))
    with pytest.raises(InputError, match=r"NaN: age \(\d+\)"):
        KMeans(3).fit(query)
    assert KMeans(3, missing="ignore", random_state=0).fit(query).n_features_in_ == 4


# everything else that takes rows


LABELS = np.arange(300) % 3
FUNCTIONS = {
    "choose_k": lambda X: choose_k(X, range(2, 5), criteria=["silhouette", "x_means"], random_state=0).ks,
    "diagnose": lambda X: diagnose(X, random_state=0).to_dict(),
    "diagnose a model": lambda X: diagnose(X, model=KMeans(3, random_state=0).fit(opened(X)), random_state=0).to_dict(),
    "silhouette_score": lambda X: silhouette_score(X, LABELS),
    "silhouette_score of a distance": lambda X: silhouette_score(X, LABELS, metric="manhattan"),
    "calinski_harabasz_score": lambda X: calinski_harabasz_score(X, LABELS),
    "pairwise": pairwise,
    "linkage": lambda X: linkage(X, "complete", "manhattan"),
    "sweep": lambda X: sweep(KMeans(random_state=0), X, [2, 3, 4]).curve("silhouette").values,
    "fit_transform": KMeans(3, random_state=0).fit_transform,
    "KMedoids.fit_transform": KMedoids(3, random_state=0).fit_transform,
    "partial_fit": lambda X: MiniBatchKMeans(3, random_state=0).partial_fit(X).cluster_centers_,
    "fit_trace": lambda X: [step.objective for step in KMeans(3, random_state=0).fit_trace(X).steps],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_paths_and_queries_and_read_them_once(path, X, name, monkeypatch):
    reads = []

    def matrix(table, read=tables.matrix):
        reads.append(1)
        return read(table)

    monkeypatch.setattr(tables, "matrix", matrix)
    expected = FUNCTIONS[name](pl.DataFrame(X, schema=NAMES))
    for given in (path, pl.scan_parquet(path)):
        reads.clear()
        np.testing.assert_equal(FUNCTIONS[name](given), expected)
        assert len(reads) == (2 if name == "diagnose a model" else 1)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_distances_may_be_in_a_file(X, tmp_path, suffix):
    D, path = pairwise(X), tmp_path / f"distances{suffix}"
    if suffix == ".npy":
        np.save(path, D)
    else:
        pl.DataFrame(D).write_parquet(path)
    for model in (KMedoids(3, metric="precomputed", random_state=0), DivisiveClustering(3, metric="precomputed")):
        np.testing.assert_array_equal(model.fit_predict(path), model.fit_predict(D))
    np.testing.assert_array_equal(linkage(path, "average", "precomputed"), linkage(D, "average", "precomputed"))
    assert silhouette_score(path, LABELS, metric="precomputed") == silhouette_score(D, LABELS, metric="precomputed")


def test_a_fit_that_was_interrupted_goes_on_with_the_same_file(path, tmp_path):
    class Stopped(Exception):
        pass

    def stop(progress):
        if progress.iteration == 2:
            raise Stopped

    options = {"n_init": 1, "init": "random", "random_state": 3, "tol": 0}
    expected = KMeans(8, **options).fit(path)
    checkpoint = tmp_path / "fit.checkpoint"
    with pytest.raises(Stopped):
        KMeans(8, **options, checkpoint=checkpoint, callback=stop).fit(path)
    assert checkpoint.exists()
    iterations = []
    again = KMeans(8, **options, checkpoint=checkpoint, callback=lambda p: iterations.append(p.iteration))
    assert_same(answers(again.fit(pl.scan_parquet(path))), answers(expected))
    assert iterations[0] > 1


# what cannot be read


@pytest.mark.parametrize(
    "name, words",
    [
        ("nothing.parquet", r"no file \"nothing\.parquet\" in "),
        ("nothing*.parquet", "no file matches the pattern"),
        ("empty", r"the folder \".*empty\" has no tables: their names end in \.csv"),
        ("notes.md", r"tables end in \.csv, .*\.safetensors"),
    ],
)
def test_other_formats_are_rejected_with_a_list_of_formats(folder, name, words):
    (folder / "notes.md").write_text("notes")
    (folder / "empty").mkdir(exist_ok=True)
    with pytest.raises(InputError, match=words):
        KMeans(3).fit(str(folder / name))


def test_a_query_that_fails_is_an_error_in_words(path):
    with pytest.raises(InputError, match="cannot read the table: unable to find column"):
        KMeans(3).fit(pl.scan_parquet(path).select("salary"))


def test_text_in_a_file_is_rejected_with_the_call_that_reads_it(tmp_path):
    path = tmp_path / "t.csv"
    pl.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}).write_csv(path)
    with pytest.raises(InputError, match=r"'name' \(String\)\. coterie\.Job\(.*X=polars\.scan_parquet"):
        KMeans(2).fit(path)


@pytest.mark.parametrize(
    "cells", [["$1,001.35", "$2.00", "$880.10"], ["1.003,33", "12,50", "7,00"], ["68.2%", "40%", "12%"]]
)
@pytest.mark.parametrize("form", ["path", "query"])
def test_amounts_in_a_table_are_rejected_with_the_call_that_reads_them(tmp_path, cells, form):
    path = tmp_path / "sales.csv"
    frame = pl.DataFrame({"Revenue": cells, "visits": [1, 9, 2]})
    frame.write_csv(path, separator=";")
    X = path if form == "path" else frame.lazy()
    with pytest.raises(InputError) as error:
        KMeans(2).fit(X)
    call = f'coterie.Job("{path}", k=3).run()' if form == "path" else "coterie.Job(X, k=3).run()"
    assert f"\"{cells[0]}\" in column 'Revenue' is not a plain number. {call}" in str(error.value)
    result = coterie.Job(X, k=2).run()
    assert "read as numbers: Revenue" in result.notes[0]


# tensors and frames of Dask


def test_tensors_are_arrays(X):
    torch = pytest.importorskip("torch")
    for kind, expected in (
        ("float64", "float64"),
        ("float32", "float32"),
        ("bfloat16", "float32"),
        ("half", "float32"),
    ):
        tensor = torch.tensor(X, dtype=getattr(torch, kind), requires_grad=True)
        source = as_source(tensor)
        assert source.dtype == expected
        np.testing.assert_array_equal(source.X, tensor.detach().to(getattr(torch, expected)).numpy())
    with pytest.raises(InputError, match="to_dense"):
        as_source(torch.tensor(X).to_sparse())


class Tensor:
    """What is used of a tensor that is on another device and has a gradient."""

    def __init__(self, values, dtype):
        self.values, self.dtype, self.layout, self.calls = values, dtype, "strided", []

    def detach(self):
        self.calls.append("detach")
        return self

    def cpu(self):
        self.calls.append("cpu")
        return self

    def float(self):
        self.calls.append("float")
        return self

    def numpy(self):
        return self.values


@pytest.mark.parametrize("dtype, calls", [("float32", ["detach", "cpu"]), ("bfloat16", ["detach", "cpu", "float"])])
def test_tensors_are_brought_to_memory_in_a_type_that_holds_them(X, monkeypatch, dtype, calls):
    names = {name: name for name in ("strided", "float16", "bfloat16")}
    monkeypatch.setitem(sys.modules, "torch", type("torch", (), {"Tensor": Tensor, **names}))
    tensor = Tensor(X, dtype)
    assert as_source(tensor).X is X
    assert tensor.calls == calls
    tensor.layout = "sparse_coo"
    with pytest.raises(InputError, match=r"layout sparse_coo, which is not supported: pass X\.to_dense"):
        as_source(tensor)


def test_a_record_batch_and_cells_of_the_type_object_are_tables(X):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(X, columns=NAMES)
    for table in (pyarrow.RecordBatch.from_pandas(frame), frame.astype(object)):
        source = as_source(table)
        assert source.columns == NAMES
        np.testing.assert_array_equal(source.X, X)


@pytest.mark.parametrize("cells", [[1, 2j, 3], ["x", datetime.date(2020, 1, 1), 2]])
def test_a_column_that_is_no_column_of_a_table_is_named(cells):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match=r"cannot read the column 'odd' \(.*\): .*Convert it to numbers or text"):
        Job(pandas.DataFrame({"fine": [1.0, 2, 3], "odd": cells}), k=2).run()


def dask_frame(X, **kinds):
    dask = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    return dask.from_pandas(pandas.DataFrame(X, columns=NAMES).astype(kinds), npartitions=4)


def test_a_frame_of_dask_is_its_array_with_names(X):
    frame = dask_frame(X)
    source = as_source(frame)
    assert source.columns == NAMES
    assert source.engine == "dask"
    np.testing.assert_array_equal(source.X.compute(), X)
    named, bare = (KMeans(3, random_state=0).fit(given) for given in (frame, frame.to_dask_array(lengths=True)))
    np.testing.assert_array_equal(named.cluster_centers_, bare.cluster_centers_)
    np.testing.assert_array_equal(named.labels_.compute(), bare.labels_.compute())
    assert list(named.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame.rename(columns={"age": "years"}))


def test_a_frame_of_dask_keeps_its_type_and_its_holes(X):
    assert as_source(dask_frame(X, **dict.fromkeys(NAMES, "float32"))).dtype == np.float32
    assert as_source(dask_frame(X.round(), age="Int64")).dtype == np.float64
    X[3, 2] = np.nan
    with pytest.raises(InputError, match=r"NaN: age \(1\)"):
        KMeans(3).fit(dask_frame(X))


def test_odd_frames_of_dask_are_rejected(X):
    frame = dask_frame(X)
    with pytest.raises(InputError, match=r"'name' \(String\)"):
        as_source(frame.assign(name="x"))
    with pytest.raises(InputError, match="X is a series"):
        as_source(frame["age"])
