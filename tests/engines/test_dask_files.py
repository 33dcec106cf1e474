"""Workers of a cluster read the files themselves: the same bits as rows in memory, and errors that name the file."""

import os
from pickle import dumps

import numpy as np
import polars as pl
import pytest

from coterie import KMeans
from coterie.data import as_source, scan_files
from coterie.errors import InputError
from local_cluster import local_cluster
from many_parts import many_parts

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with local_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def X(monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    many_parts(monkeypatch, X)
    return X


@pytest.fixture
def folder(tmp_path, X):
    for i, start in enumerate((0, 300, 310)):
        stop = (300, 310, 1000)[i]
        pl.DataFrame(X[start:stop], schema=["a", "b", "c"]).write_parquet(tmp_path / f"{i}.parquet")
    return tmp_path


def test_workers_read_files_and_give_the_same_bits(cluster, folder, X):
    expected = KMeans(4, init=X[:4]).fit(X)
    for given in (folder, str(folder / "*.parquet"), scan_files(folder, cache="none")):
        model = KMeans(4, init=X[:4], engine="dask").fit(given)
        np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
        np.testing.assert_array_equal(np.asarray(model.labels_), expected.labels_)
        np.testing.assert_array_equal(np.asarray(model.predict(given)), expected.labels_)


def test_workers_are_sent_names_of_files_and_not_rows(folder, X):
    cluster_source = as_source(scan_files(folder, cache="none"))
    assert len(cluster_source.parts()) >= 3
    assert all(len(dumps(part)) < X.nbytes / 8 for part in cluster_source.parts())


def test_a_file_that_changed_is_named_by_the_worker(cluster, folder, X):
    source = scan_files(folder, cache="none")
    os.utime(folder / "2.parquet", ns=(1, 1))
    with pytest.raises(InputError, match=r'2\.parquet" changed after it was opened'):
        KMeans(4, init=X[:4], engine="dask").fit(source)


def test_a_file_that_was_truncated_in_the_middle_of_the_folder_is_named_by_the_worker(cluster, folder, X):
    source, path = scan_files(folder, cache="none"), folder / "0.parquet"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r'0\.parquet" changed after it was opened'):
        KMeans(4, init=X[:4], engine="dask").fit(source)
    with pytest.raises(InputError, match=r"0\.parquet"):
        KMeans(4, init=X[:4], engine="dask").fit(folder)


def test_a_file_without_rows_has_no_effect(cluster, folder, X):
    expected = KMeans(4, init=X[:4], engine="dask").fit(folder)
    pl.DataFrame(X[:0], schema=["a", "b", "c"]).write_parquet(folder / "00.parquet")
    model = KMeans(4, init=X[:4], engine="dask").fit(folder)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(np.asarray(model.labels_), np.asarray(expected.labels_))


def test_blocks_without_rows_have_no_effect_on_a_cluster(cluster, X):
    da = pytest.importorskip("dask.array")
    parts = [da.from_array(X[:400], chunks=(200, 3)), da.zeros((0, 3)), da.from_array(X[400:], chunks=(200, 3))]
    with_empty, without = (KMeans(4, random_state=0).fit(da.concatenate(p)) for p in (parts, parts[::2]))
    np.testing.assert_array_equal(with_empty.cluster_centers_, without.cluster_centers_)
    np.testing.assert_array_equal(with_empty.labels_.compute(), without.labels_.compute())
