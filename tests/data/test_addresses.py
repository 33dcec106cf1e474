"""Files at addresses: a web server, an object store and a file system in memory, through fsspec."""

import sys

import numpy as np
import polars as pl
import pytest

from coterie import KMeans
from coterie.data import as_source, scan_files
from coterie.errors import InputError, ParameterError
from file_servers import Files, Objects, serving
from many_parts import many_parts, weights_of_many_digits

NAMES = ["height", "weight", "age", "pulse"]
SIZES = (300, 1, 599)


def short_fit(source, X, **weights):
    """A fit of few passes."""
    return KMeans(3, init=X[:3], tol=1e9).fit(source, **weights)


@pytest.fixture
def X(monkeypatch):
    rng = np.random.default_rng(1)
    X = (5 * rng.normal(size=(3, 4)))[rng.integers(3, size=900)] + rng.normal(size=(900, 4))
    many_parts(monkeypatch, X)
    return X


@pytest.fixture
def folder(tmp_path, X):
    """The rows in several files of each format, and some that are not tables."""
    frame, start = pl.DataFrame(X, schema=NAMES), 0
    for i, size in enumerate(SIZES):
        part, start = frame.slice(start, size), start + size
        for suffix in ("parquet", "arrow", "csv", "ndjson"):
            (tmp_path / "bucket" / suffix).mkdir(parents=True, exist_ok=True)
        path = tmp_path / "bucket"
        part.write_parquet(path / "parquet" / f"{i}.parquet", row_group_size=70)
        part.write_ipc(path / "arrow" / f"{i}.arrow", record_batch_size=70)
        part.write_csv(path / "csv" / f"{i}.csv")
        part.write_ndjson(path / "ndjson" / f"{i}.ndjson")
    (tmp_path / "bucket" / "parquet" / "_SUCCESS").touch()
    return tmp_path


@pytest.fixture
def server(folder):
    with serving(folder, Files) as server:
        yield server


@pytest.mark.parametrize(
    "suffix, cache", [("parquet", "none"), ("arrow", "none"), ("csv", "none"), ("ndjson", "none"), ("parquet", "disk")]
)
def test_files_of_a_web_server_give_the_same_bits(server, X, suffix, cache):
    urls = [f"{server.url}/bucket/{suffix}/{i}.{suffix}" for i in range(len(SIZES))]
    w = weights_of_many_digits(X)
    model = short_fit(scan_files(urls, cache=cache), X, sample_weight=w)
    expected = short_fit(X, X, sample_weight=w)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert list(model.feature_names_in_) == NAMES


def test_folders_and_patterns_of_a_web_server(server, X):
    for url in ("bucket/parquet/", "bucket/parquet/*.parquet"):
        np.testing.assert_array_equal(as_source(f"{server.url}/{url}").X, X)
    np.testing.assert_array_equal(as_source(f"{server.url}/bucket/parquet/0.parquet").X, X[:300])


def test_a_row_group_of_a_web_server_is_read_once_in_a_pass(tmp_path, X):
    pl.DataFrame(X, schema=NAMES).write_parquet(tmp_path / "t.parquet", row_group_size=450)
    with serving(tmp_path) as server:
        source = scan_files(f"{server.url}/t.parquet", cache="none")
        assert len(source.parts()) >= 3
        server.ranges.clear()
        for part in source.parts():
            part()
        assert len(server.ranges) <= 6  # the end of the file, and the columns, of each of two groups


def test_a_file_of_a_web_server_that_changes_is_named(server, folder, X):
    source = scan_files(f"{server.url}/bucket/parquet/", cache="none")
    model = short_fit(source, X)
    pl.read_parquet(folder / "bucket" / "parquet" / "2.parquet").reverse().write_parquet(
        folder / "bucket" / "parquet" / "2.parquet"
    )
    with pytest.raises(InputError, match=r'http://.*/2\.parquet" changed after it was opened'):
        model.predict(source)


@pytest.mark.parametrize(
    "name, words",
    [
        ("bucket/parquet/9.parquet", r'cannot read "http://.*/9\.parquet"'),
        ("bucket/parquet/*.csv", "no file matches the pattern"),
        ("bucket/", "has no tables"),
        ("bucket/parquet/_SUCCESS", r"_SUCCESS"),
        ("bucket/rows.npz", "files at an address are read in parts, .*: copy it to this machine"),
        ("bucket/broken.parquet", r'cannot read "http://.*broken\.parquet"'),
    ],
)
def test_an_address_that_cannot_be_read_is_named(server, folder, X, name, words):
    np.savez(folder / "bucket" / "rows.npz", X)
    (folder / "bucket" / "broken.parquet").write_bytes(b"PAR1 truncated")
    if name == "bucket/":
        for path in (folder / "bucket").glob("*.*"):
            path.unlink()
    with pytest.raises(InputError, match=words):
        scan_files(f"{server.url}/{name}")


@pytest.mark.parametrize("path", ["bucket/parquet", "bucket/csv/*.csv"])
def test_files_of_an_object_store_give_the_same_bits(folder, X, path):
    pytest.importorskip("s3fs")
    with serving(folder, Objects) as server:
        options = {"key": "key", "secret": "secret", "endpoint_url": server.url}
        source = scan_files(f"s3://{path}", cache="none", storage_options=options)
        assert source.files[0].location.url.startswith("s3://bucket/")
        model = short_fit(source, X)
    np.testing.assert_array_equal(model.cluster_centers_, short_fit(X, X).cluster_centers_)


def test_files_of_a_file_system_in_memory(X):
    import fsspec

    system = fsspec.filesystem("memory")
    frame = pl.DataFrame(X, schema=NAMES)
    with system.open("/year/a.parquet", "wb") as file:
        frame.head(500).write_parquet(file)
    with system.open("/year/b.parquet", "wb") as file:
        frame.slice(500).write_parquet(file)
    for paths in ("memory://year", "memory://year/*.parquet", ["memory://year/a.parquet", "memory://year/b.parquet"]):
        np.testing.assert_array_equal(as_source(scan_files(paths, cache="none")).pick(slice(None)).X, X)
    system.rm("/year", recursive=True)
    with pytest.raises(InputError, match=r'cannot read "memory://year"|no tables'):
        scan_files("memory://year")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ParameterError, match=r's3://bucket/t\.parquet needs .* pip install "coterie\[cloud\]"'):
        KMeans(3).fit("s3://bucket/t.parquet")


def test_an_unknown_protocol_is_an_error():
    with pytest.raises(InputError, match=r'cannot read "nothing://x/t\.parquet": Protocol not known: nothing'):
        scan_files("nothing://x/t.parquet")
