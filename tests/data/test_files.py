"""Tables in several files, read once or in every pass: the same bits as the rows in memory."""

import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import polars as pl
import pytest

from coterie import GaussianMixture, KMeans, SphericalKMeans, machine
from coterie.data import as_source, opened, scan_files, temporary_arrays
from coterie.data.files import FileSource
from coterie.engines.local import Serial, Threads
from coterie.errors import InputError, ParameterError
from coterie.metrics import calinski_harabasz_score
from many_parts import many_parts, weights_of_many_digits

NAMES = ["height", "weight", "age", "pulse"]
CACHES = ["none", "memory", "disk", "auto"]
FORMATS = ["parquet", "arrow", "feather", "csv", "tsv", "txt", "ndjson", "jsonl", "npy"]


def rows(n=900, dtype=np.float64):
    rng = np.random.default_rng(1)
    return ((5 * rng.normal(size=(3, 4)))[rng.integers(3, size=n)] + rng.normal(size=(n, 4))).astype(dtype)


def write(frame, path):
    """A table as a file; Parquet in row groups, Arrow in batches, which do not match the parts."""
    suffix = path.suffix
    if suffix == ".parquet":
        frame.write_parquet(path, row_group_size=70)
    elif suffix in (".arrow", ".feather"):
        frame.write_ipc(path, record_batch_size=70)
    elif suffix == ".npy":
        np.save(path, frame.to_numpy())
    elif suffix in (".ndjson", ".jsonl"):
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, separator="\t" if suffix == ".tsv" else ",")


def write_files(frame, folder, suffix="parquet", sizes=(200, 1, 500, 0, 199)):
    """A table in several files; one of them has no rows."""
    start = 0
    for i, size in enumerate(sizes):
        if size or suffix == "parquet":
            write(frame.slice(start, size), folder / f"{i}.{suffix}")
        start += size
    assert start == frame.height
    return folder


@pytest.fixture
def X():
    return rows()


@pytest.fixture
def folder(tmp_path, X):
    (tmp_path / "year").mkdir()
    return write_files(pl.DataFrame(X, schema=NAMES), tmp_path / "year")


@pytest.fixture
def small_parts(monkeypatch, X):
    many_parts(monkeypatch, X)


# the law


@pytest.mark.parametrize(
    "cache, name",
    [("none", "folder"), ("memory", "pattern"), ("disk", "list"), ("auto", "address"), ("none", "pattern")],
)
def test_a_fit_has_the_same_bits_as_of_the_rows_in_memory(folder, X, small_parts, cache, name):
    paths = {
        "folder": folder,
        "pattern": str(folder / "*.parquet"),
        "list": sorted(folder.iterdir()),
        "address": folder.as_uri(),
    }
    w = weights_of_many_digits(X)
    source = scan_files(paths[name], cache=cache)
    for estimator in (KMeans(3, random_state=0), SphericalKMeans(3, random_state=0)):
        expected = estimator.fit(X, sample_weight=w)
        centers, labels, inertia = expected.cluster_centers_, expected.labels_, expected.inertia_
        model = estimator.fit(source, sample_weight=w)
        np.testing.assert_array_equal(model.cluster_centers_, centers)
        np.testing.assert_array_equal(model.labels_, labels)
        np.testing.assert_array_equal(model.predict(source), labels)
        assert model.inertia_ == inertia
        assert list(model.feature_names_in_) == NAMES


def test_paths_of_several_files_are_estimators_input(folder, X):
    expected = GaussianMixture(3, random_state=0).fit(X).means_
    for paths in (folder, str(folder), str(folder / "*.parquet"), sorted(folder.iterdir()), folder.as_uri()):
        np.testing.assert_array_equal(GaussianMixture(3, random_state=0).fit(paths).means_, expected)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_parts_of_every_format_are_the_rows(tmp_path, suffix, dtype, monkeypatch):
    X = rows(dtype=dtype)
    many_parts(monkeypatch, X)
    write_files(pl.DataFrame(X, schema=NAMES), tmp_path, suffix)
    source = scan_files(tmp_path, cache="none")
    keeps_type = suffix in ("parquet", "arrow", "feather", "npy")
    assert source.dtype == (dtype if keeps_type else np.float64)
    expected = X if keeps_type else as_source(scan_files(tmp_path)).X
    in_memory = as_source(expected)
    chunks, others = ([part() for part in each.parts()] for each in (source, in_memory))
    assert len(chunks) == len(others) > 2
    for chunk, other in zip(chunks, others, strict=True):
        np.testing.assert_array_equal(chunk.X, other.X)
        assert chunk.X.dtype == other.X.dtype
        assert chunk.X.flags.c_contiguous
        assert chunk.part == other.part
    np.testing.assert_allclose(expected, X, rtol=1e-6)


def test_a_part_is_small_and_another_process_reads_it(folder, X, small_parts):
    source = as_source(scan_files(folder, cache="none"), weights_of_many_digits(X), np.arange(len(X)))
    parts = source.parts()
    pickled = [pickle.dumps(part) for part in parts]
    assert max(map(len, pickled)) < 6000
    code = "import pickle, sys; print([pickle.loads(p)().X.sum() for p in pickle.load(sys.stdin.buffer)])"
    run = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(pickled), capture_output=True, check=True)
    assert eval(run.stdout.decode().replace("np.float64", "")) == [part().X.sum() for part in parts]
    chunk, start = parts[1](), len(parts[0]().X)
    np.testing.assert_array_equal(chunk.y, np.arange(start, start + len(chunk.X)))
    np.testing.assert_array_equal(chunk.w, weights_of_many_digits(X)[chunk.y])


def test_index_of_text_is_cut_for_a_part(tmp_path, monkeypatch):
    from coterie.data.tables import text_index

    monkeypatch.setattr(text_index, "BLOCK", 2000)
    X = rows()
    many_parts(monkeypatch, X)
    write_files(pl.DataFrame(X, schema=NAMES), tmp_path, "csv")
    source = scan_files(tmp_path, cache="none")
    assert len(source.files[2].reader.index.rows) > 8
    for part in source.parts():
        for piece in part.pieces:
            rows_of_piece = piece.reader.index.rows
            assert piece.start - rows_of_piece[0] < 60
            assert rows_of_piece[-1] - piece.stop < 60
    np.testing.assert_array_equal(source.pick(slice(None)).X, X)


# the source


@pytest.mark.parametrize("index", [[0], [899, 3, 3, 450], slice(10, 20), slice(None), np.arange(900)[::-7]])
def test_rows_are_picked_in_the_order_of_the_index(folder, X, small_parts, index):
    w, y = weights_of_many_digits(X), np.arange(900)
    source = as_source(scan_files(folder, cache="none"), w, y)
    for chunk in (source.pick(index), source.subset(index).pick(slice(None))):
        np.testing.assert_array_equal(chunk.X, X[index])
        np.testing.assert_array_equal(chunk.w, w[index])
        np.testing.assert_array_equal(chunk.y, y[index])


def test_functions_of_rows_are_applied_to_every_part(folder, X, small_parts):
    source = scan_files(folder, cache="none").map_rows(partial(np.multiply, 2.0), Serial())
    source = source.map_rows(np.square, Serial())
    np.testing.assert_array_equal(source.pick([5, 1]).X, np.square(2 * X[[5, 1]]))
    np.testing.assert_array_equal(np.concatenate([part().X for part in source.parts()]), np.square(2 * X))


def test_rows_beyond_the_range_of_squares_are_divided(folder, X, tmp_path):
    (tmp_path / "large").mkdir()
    write_files(pl.DataFrame(np.ldexp(X, 500), schema=NAMES), tmp_path / "large")
    expected = KMeans(3, random_state=0).fit(np.ldexp(X, 500))
    model = KMeans(3, random_state=0).fit(scan_files(tmp_path / "large", cache="none"))
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_values_of_rows_are_on_disk_if_memory_is_short(folder, X, monkeypatch, tmp_path):
    expected = KMeans(3, random_state=0).fit(X).labels_
    monkeypatch.setattr(temporary_arrays, "SMALL", 0)
    monkeypatch.setattr(machine, "free_memory", lambda: 0)
    calls = []
    mapped = temporary_arrays.mapped_zeros
    monkeypatch.setattr(temporary_arrays, "mapped_zeros", lambda *args: calls.append(args) or mapped(*args))
    np.testing.assert_array_equal(KMeans(3, random_state=0).fit(scan_files(folder, cache="none")).labels_, expected)
    assert calls


@pytest.mark.parametrize("engine", [Serial(), Threads(4)])
def test_engines_give_the_same_bits(folder, X, small_parts, engine):
    w = weights_of_many_digits(X)
    model = KMeans(3, random_state=0, engine=engine).fit(scan_files(folder, cache="none"), sample_weight=w)
    expected = KMeans(3, random_state=0).fit(X, sample_weight=w)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)


def test_a_metric_reads_files_in_every_pass(folder, X, small_parts):
    labels = np.arange(900) % 3
    expected = calinski_harabasz_score(X, labels)
    assert calinski_harabasz_score(scan_files(folder, cache="none"), labels) == expected


# columns and types


def test_columns_are_found_by_name(tmp_path, X):
    frame = pl.DataFrame(X, schema=NAMES)
    frame.head(400).write_parquet(tmp_path / "a.parquet")
    frame.slice(400).select(NAMES[::-1]).write_parquet(tmp_path / "b.parquet")
    for cache in CACHES:
        np.testing.assert_array_equal(as_source(scan_files(tmp_path, cache=cache)).pick(slice(None)).X, X)
        source = as_source(scan_files(tmp_path, columns=["age", "height"], cache=cache))
        np.testing.assert_array_equal(source.pick(slice(None)).X, X[:, [2, 0]])
        assert source.columns == ["age", "height"]


def test_types_of_files_may_differ(tmp_path, X):
    pl.DataFrame(X[:400].astype(np.float32), schema=NAMES).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame(X[400:].round().astype(np.int16), schema=NAMES).write_parquet(tmp_path / "b.parquet")
    expected = np.concatenate([X[:400].astype(np.float32).astype(float), X[400:].round()])
    for cache in CACHES:
        source = as_source(scan_files(tmp_path, cache=cache))
        assert source.dtype == np.float64
        np.testing.assert_array_equal(source.pick(slice(None)).X, expected)


@pytest.mark.parametrize("cache", ["none", "disk"])
@pytest.mark.parametrize(
    "other, words",
    [
        (pl.DataFrame({"a": [1.0]}), r'b\.parquet" has no column \'b\', unlike ".*a\.parquet"'),
        (pl.DataFrame({"a": [1.0], "b": [2.0], "c": [1]}), r'b\.parquet" has the column \'c\', unlike ".*columns='),
        (pl.DataFrame({"a": [1.0], "b": ["x"]}), r"b\.parquet\": X has columns that are not numbers: 'b' \(String\)"),
        (pl.DataFrame({"a": [[1.0, 2.0]], "b": [1.0]}), r"b\.parquet\" has no column 'a'"),
    ],
)
def test_a_file_with_other_columns_is_named(tmp_path, cache, other, words):
    pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).write_parquet(tmp_path / "a.parquet")
    other.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=words):
        scan_files(tmp_path, cache=cache)


def test_a_column_that_no_file_has_is_named(folder):
    with pytest.raises(InputError, match=r"0\.parquet\" has no column 'salary': its columns are height, weight"):
        scan_files(folder, columns=["age", "salary"])


def test_vectors_are_columns(tmp_path, X, monkeypatch):
    many_parts(monkeypatch, X)
    vectors = pl.DataFrame({"text": X.tolist(), "size": X[:, 0]}, schema={"text": pl.List(pl.Float64), "size": float})
    for suffix in ("parquet", "arrow", "ndjson"):
        path = tmp_path / suffix
        path.mkdir()
        write_files(vectors, path, suffix)
        for cache in ("none", "disk"):
            source = as_source(scan_files(path, cache=cache))
            assert source.columns == ["text_0", "text_1", "text_2", "text_3", "size"]
            np.testing.assert_array_equal(source.pick(slice(None)).X, np.column_stack([X, X[:, 0]]))


# what a cache needs, and when it is stale


def test_needs_are_shown_before_the_rows_are_read(folder, X, monkeypatch):
    monkeypatch.setattr(machine, "core_count", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for cache, memory, disk in (("none", 0, 0), ("memory", X.nbytes, 0), ("disk", 0, X.nbytes)):
        source = scan_files(folder, cache=cache)
        assert source.requirements == (2 * 6 * X.nbytes + memory, disk)
        assert "_rows" not in vars(source)
    assert repr(scan_files(folder, cache="none")) == (
        "FileSource(5 files, 900 rows x 4 columns, float64, cache='none': 346 KB of memory)"
    )
    assert "28.8 KB on disk in " in repr(scan_files(folder, cache="disk"))


def test_auto_is_memory_unless_it_is_short(folder, monkeypatch):
    assert scan_files(folder).cache == "memory"
    monkeypatch.setattr(temporary_arrays, "SMALL", 0)
    monkeypatch.setattr(machine, "free_memory", lambda: 0)
    assert scan_files(folder).cache == "disk"


def test_too_little_memory_or_disk_is_an_error_before_the_files_are_read(folder, monkeypatch):
    in_memory, on_disk = scan_files(folder, cache="memory"), scan_files(folder, cache="disk")
    for path in folder.iterdir():
        path.write_bytes(b"not read")
    monkeypatch.setattr(machine, "free_memory", lambda: 1000)
    monkeypatch.setattr(machine, "SMALL_OBJECT", 1000)
    with pytest.raises(InputError, match=r"the rows of X would take 28\.8 KB .* use cache='disk' or cache='none'"):
        KMeans(3).fit(in_memory)
    monkeypatch.setattr(temporary_arrays.shutil, "disk_usage", lambda _: type("usage", (), {"free": 1000}))
    with pytest.raises(InputError, match=r"needs 28\.8 KB on disk, but only 1 KB .*, cache='none'\)"):
        KMeans(3).fit(on_disk)


def test_cached_rows_are_read_once(folder, X, monkeypatch):
    source = scan_files(folder, cache="disk")
    model = KMeans(3, random_state=0).fit(source)
    assert opened(source) is opened(source)
    np.testing.assert_array_equal(model.predict(source), model.labels_)


def touched(path):
    """Write a file again, with the same size and content, at another time."""
    os.utime(path, ns=(1, 1))


def rewritten(path):
    frame = pl.read_parquet(path)
    frame.with_columns(pl.col("age") + 1).write_parquet(path)


@pytest.mark.parametrize("change", [touched, rewritten])
@pytest.mark.parametrize("cache", ["none", "memory", "disk"])
def test_a_file_that_changes_between_passes_is_named(folder, cache, change):
    source = scan_files(folder, cache=cache)
    model = KMeans(3, random_state=0, n_init=1).fit(source)
    change(folder / "2.parquet")
    with pytest.raises(InputError, match=r'2\.parquet" changed after it was opened'):
        model.predict(source)


def test_a_file_that_changes_in_a_fit_is_named(folder):
    def change(progress):
        touched(folder / "2.parquet")

    with pytest.raises(InputError, match=r'2\.parquet" changed after it was opened'):
        KMeans(3, init="random", n_init=1, tol=0, callback=change, random_state=0).fit(scan_files(folder, cache="none"))


def test_a_file_that_is_gone_is_named(folder):
    source = scan_files(folder, cache="none")
    (folder / "2.parquet").unlink()
    with pytest.raises(InputError, match=r'cannot read ".*2\.parquet": No such file'):
        KMeans(3).fit(source)


# what cannot be read


@pytest.mark.parametrize("cache", ["none", "disk"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow", "ndjson", "csv"])
def test_a_truncated_file_is_named(tmp_path, X, cache, suffix):
    write_files(pl.DataFrame(X, schema=NAMES), tmp_path, suffix)
    path = tmp_path / f"2.{suffix}"
    content = path.read_bytes()
    cut = len(content) // 2
    if suffix == "csv":
        cut = content.index(b",", cut)  # in the middle of a row
    path.write_bytes(content[:cut])
    with pytest.raises(InputError, match=rf"2\.{suffix}"):
        KMeans(3).fit(scan_files(tmp_path, cache=cache))


def test_an_empty_file_is_named(folder):
    (folder / "9.parquet").touch()
    with pytest.raises(InputError, match=r"9\.parquet is empty"):
        scan_files(folder)


def test_files_without_rows_are_an_error(tmp_path):
    pl.DataFrame({"a": [1.0]}).clear().write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet has no rows"):
        scan_files(tmp_path)


@pytest.mark.parametrize(
    "paths, words",
    [
        ("nothing", r'no file "nothing"'),
        ("*.nothing", "no file matches the pattern"),
        (["a.parquet", 3], "paths must be a path, an address, a pattern, a folder, or a list of them; got list"),
        ([], "got list"),
        ("empty", r'the folder "empty" has no tables: their names end in \.csv'),
        (["year", "year/0.parquet"], r'0\.parquet" is named more than once'),
    ],
)
def test_paths_without_tables_are_an_error(folder, monkeypatch, paths, words):
    monkeypatch.chdir(folder.parent)
    (folder.parent / "empty").mkdir()
    (folder.parent / "empty" / "_metadata.parquet").touch()
    with pytest.raises(InputError, match=words):
        scan_files(paths)


def test_hidden_files_and_other_files_of_a_folder_are_left_out(folder, X):
    for name in ("_metadata.parquet", ".0.parquet.crc", "README.md", "_SUCCESS"):
        (folder / name).write_text("text")
    assert scan_files(folder).shape == X.shape


def test_options_are_checked(folder):
    with pytest.raises(ParameterError, match="cache must be 'auto' or 'memory' or 'disk' or 'none'; got 'ram'"):
        scan_files(folder, cache="ram")


@pytest.mark.parametrize("suffix", [".npz", ".xlsx"])
def test_formats_that_are_read_as_a_whole_need_a_cache(tmp_path, X, suffix):
    path = tmp_path / f"rows{suffix}"
    if suffix == ".npz":
        np.savez(path, X)
    else:
        pl.DataFrame(X, schema=NAMES).write_excel(path)
    assert isinstance(scan_files(path), FileSource)
    np.testing.assert_allclose(as_source(scan_files(path)).X, X, rtol=1e-14)
    with pytest.raises(InputError, match=rf'rows\{suffix}": files are read in parts, which .*: use cache='):
        scan_files(path, cache="none")
