"""Weights in a column of files are read with the rows: the same bits as `sample_weight` in memory."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from coterie import GaussianMixture, KMeans
from coterie.data import as_source, scan_files
from coterie.errors import InputError, ParameterError
from fake_cluster import FakeCluster
from many_parts import many_parts

rng = np.random.default_rng(0)
X = rng.normal(size=(900, 3)) + 5 * rng.integers(3, size=900)[:, None]
W = rng.random(900) * (rng.random(900) < 0.8)


@pytest.fixture
def write(tmp_path):
    def write(w=W):
        frame = pl.DataFrame(X, schema=["a", "b", "c"]).insert_column(1, pl.Series("w", w))
        for i, part in enumerate(frame.iter_slices(400)):
            part.write_parquet(tmp_path / f"{i}.parquet")
        return tmp_path

    return write


@pytest.mark.parametrize("engine", ["threads", FakeCluster()], ids=["threads", "cluster"])
@pytest.mark.parametrize(
    "estimator", [KMeans(3, init="k-means||", random_state=0), GaussianMixture(3, random_state=0)], ids=["kmeans", "em"]
)
def test_weights_in_files_give_the_bits_of_weights_in_memory(write, monkeypatch, estimator, engine):
    many_parts(monkeypatch, X)
    source = scan_files(write(), weight="w")
    assert (source.columns, source.cache, source.shape) == (["a", "b", "c"], "none", (900, 3))
    estimator.set_params(engine=engine)
    there = estimator.fit(source)
    labels, score = np.asarray(there.labels_), there.score(source)
    here = estimator.set_params(engine="threads").fit(X, sample_weight=W)
    np.testing.assert_array_equal(labels, here.labels_)
    assert score == here.score(X, sample_weight=W)


def test_rows_that_are_picked_have_their_weights(write):
    rows = [850, 3, 399, 400]
    np.testing.assert_array_equal(as_source(scan_files(write(), weight="w")).pick(rows).w, W[rows])


def test_weights_out_of_range_are_divided_by_their_scale(write):
    plain, large = (KMeans(3, init=X[:3]).fit(scan_files(write(w), weight="w")) for w in (W, np.ldexp(W, 300)))
    np.testing.assert_array_equal(large.cluster_centers_, plain.cluster_centers_)
    assert large.inertia_ == np.ldexp(plain.inertia_, 300)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_an_invalid_weight_is_named_with_its_file_and_row(write, value):
    w = W.copy()
    w[405] = value
    with pytest.raises(InputError, match=r"1\.parquet\" has the weight .* in column 'w' of row 5: weights must be"):
        KMeans(3).fit(scan_files(write(w), weight="w"))


def test_options_that_contradict_the_column_of_weights_are_rejected(write):
    folder = write()
    with pytest.raises(ParameterError, match="weights in column 'w': use one of them"):
        KMeans(3).fit(scan_files(folder, weight="w"), sample_weight=W)
    with pytest.raises(ParameterError, match="needs cache='none'"):
        scan_files(folder, weight="w", cache="memory")
    with pytest.raises(ParameterError, match="is also one of columns"):
        scan_files(folder, weight="w", columns=["a", "w"])
    with pytest.raises(InputError, match="has no column 'v'"):
        scan_files(folder, weight="v")
