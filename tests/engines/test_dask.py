"""A Dask cluster gives what threads give."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from sklearn.base import clone

import zoo

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from coterie import GaussianMixture, KMeans, MiniBatchKMeans  # noqa: E402
from coterie.core import loop  # noqa: E402
from coterie.core.protocols import EStep  # noqa: E402
from coterie.data import as_source  # noqa: E402
from coterie.data.dask import DaskSource, in_blocks  # noqa: E402
from coterie.data.memory import MemorySource, part_bounds  # noqa: E402
from coterie.engines.dask import Dask  # noqa: E402
from coterie.engines.local import Threads  # noqa: E402
from coterie.engines.passes import MemoSet  # noqa: E402
from coterie.errors import InputError, ParameterError  # noqa: E402
from coterie.kmeans.center_model import CenterModel  # noqa: E402
from coterie.kmeans.kernel_lloyd import KernelLloyd  # noqa: E402
from coterie.kmeans.lloyd import Lloyd  # noqa: E402
from many_parts import weights_of_many_digits  # noqa: E402


def client_of(processes):
    """A client of a cluster of two workers. Those in this process are sent everything over the network, too."""
    return distributed.Client(
        n_workers=2, threads_per_worker=1, processes=processes, protocol="tcp", host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    """Workers in this process: others would load scikit-learn, and every compiled kernel, anew."""
    with client_of(processes=False) as client:
        yield client


def fit(model, source, engine, n_init=1):
    return loop.fit(model, source, engine, rng=np.random.default_rng(1), n_init=n_init, max_iter=3)


def sources(X, part_rows, w=None):
    """The rows here and on the cluster, whose workers store them as they do for users."""
    lazy_w = None if w is None else da.from_array(w, chunks=part_rows).persist()
    lazy = da.from_array(X, chunks=(part_rows, -1)).persist()
    return MemorySource(X, w, chunk_rows=part_rows), DaskSource(lazy, lazy_w)


def kind(model, X):
    """What a cluster could treat differently: what it computes, what it sends back, what parts remember."""
    return type(model), getattr(model, "missing", None), getattr(model, "form", None), X.dtype


def one_of_each_kind():
    """The laws run every model on every local engine; a cluster takes seconds a fit.

    A kind is slow if another one with its model, of another covariance form or dtype, is not; K-means has both dtypes.
    Kernel K-means needs the product of every two rows, and rejects Dask arrays.
    """
    dense = [p for p in zoo.MODELS if isinstance(p.values[1], np.ndarray) and not isinstance(p.values[0], KernelLloyd)]
    kinds = {kind(*p.values[:2]): p for p in dense}
    first = {(model, missing): key for key in reversed(kinds) for model, missing in [key[:2]]}
    for key, p in kinds.items():
        is_quick = key in first.values() or key[0] is Lloyd
        yield pytest.param(*p.values, id=p.id, marks=[] if is_quick else pytest.mark.slow)


@pytest.mark.parametrize("model, X, part_rows", list(one_of_each_kind()))
def test_equal_chunks_give_equal_bits_on_threads_and_on_a_cluster(cluster, model, X, part_rows):
    if isinstance(model, CenterModel) and not isinstance(model, Lloyd):  # few passes; the bounds of K-means need many
        model = replace(model, n_clusters=min(model.n_clusters, 4))
    w = np.random.default_rng(0).exponential(size=len(X))
    here, there = sources(X, len(X) // 5 + 1, w)  # five parts: an odd number in the tree that adds statistics
    threads, dask = fit(model, here, Threads(2)), fit(model, there, Dask())
    assert dask.history == threads.history
    for theirs, ours in zip(zoo.leaves(dask.params), zoo.leaves(threads.params), strict=True):
        np.testing.assert_array_equal(theirs, ours)


def test_equal_bits_without_a_cluster_too():
    here, there = sources(zoo.SMALL, 200)
    assert fit(Lloyd(3), there, Dask(), n_init=2).history == fit(Lloyd(3), here, Threads(2), n_init=2).history


def test_the_best_of_two_restarts_is_the_same(cluster):
    here, there = sources(zoo.SMALL, 240, weights_of_many_digits(zoo.SMALL))
    threads, dask = fit(Lloyd(4), here, Threads(2), n_init=2), fit(Lloyd(4), there, Dask(), n_init=2)
    assert (dask.history, dask.run) == (threads.history, threads.run)


def test_labels_come_back_lazy_in_the_blocks_of_the_rows(cluster):
    rows = da.from_array(zoo.LARGE, chunks=(1500, -1))
    model = KMeans(4, random_state=0).fit(rows)
    assert model.labels_.chunks == ((1500,) * 4,)
    labels = model.labels_.compute()
    np.testing.assert_array_equal(labels, model.predict(zoo.LARGE))
    np.testing.assert_array_equal(labels, model.predict(rows).compute())
    np.testing.assert_allclose(model.transform(rows).compute(), model.transform(zoo.LARGE))
    assert model.inertia_ == pytest.approx(-model.score(zoo.LARGE))


@pytest.mark.parametrize("part_rows", [1500, 60])
def test_a_pass_is_one_task_for_each_worker_and_only_statistics_travel(cluster, part_rows, monkeypatch):
    _, there = sources(zoo.LARGE, part_rows)
    engine, model = Dask(), Lloyd(20)
    step = EStep(model.e_step, model.init(there, engine, np.random.default_rng(0)))
    _, memos = engine.scan(step, there, None)
    sent, submit = [], cluster.submit
    monkeypatch.setattr(cluster, "submit", lambda *args, **options: sent.append(args) or submit(*args, **options))
    stats, memos = engine.scan(step, there, memos)
    assert len(sent) == 2
    assert stats.weight.shape == (20,)
    assert len(memos) == there.X.numblocks[0]
    assert all(isinstance(memo, MemoSet) for memo in memos)


def test_workers_exchange_nothing_after_the_rows_are_placed(cluster):
    rows = da.from_array(zoo.LARGE, chunks=(500, -1))
    received = []
    KMeans(4, random_state=0, callback=lambda _: received.append(received_bytes(cluster))).fit(rows)
    assert len(received) > 2
    assert received[-1] == received[0]


def received_bytes(client):
    return sum(client.run(lambda dask_worker: sum(x["total"] for x in dask_worker.transfer_incoming_log)).values())


def test_rows_are_read_once_for_a_fit_and_once_for_a_prediction(cluster, tmp_path):
    rows = da.from_array(zoo.LARGE, chunks=(1500, -1)).map_blocks(partial(note_read, tmp_path), meta=np.empty((0, 0)))
    model = KMeans(4, random_state=0).fit(rows)
    model.labels_.compute()
    assert len(list(tmp_path.iterdir())) == 4
    labels = model.predict(rows)
    np.testing.assert_array_equal(labels.compute(), model.labels_.compute())
    assert len(list(tmp_path.iterdir())) == 8


def note_read(folder, rows):
    """The rows; a file says that they were read, because workers have copies of functions."""
    Path(folder, uuid4().hex).touch()
    return rows


def test_a_frame_is_read_once(cluster, tmp_path):
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    table = pandas.DataFrame(zoo.SMALL, columns=list("abc"))
    frame = frames.from_pandas(table, npartitions=4, sort=False).map_partitions(
        partial(note_read, tmp_path), meta=table
    )
    model = KMeans(3, random_state=0).fit(frame)
    assert len(list(tmp_path.iterdir())) == 4
    ours = KMeans(3, random_state=0).fit(da.from_array(zoo.SMALL, chunks=(300, -1)))
    np.testing.assert_array_equal(model.cluster_centers_, ours.cluster_centers_)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_nothing_is_left_on_the_workers(cluster):
    before = n_stored(cluster)
    rows = da.from_array(zoo.SMALL, chunks=(200, -1))
    model = KMeans(3, random_state=0).fit(rows)
    assert n_stored(cluster) == before + 2  # the labels of each worker
    model.labels_ = None
    assert n_stored(cluster) == before


def test_rows_are_freed_after_an_error(cluster):
    before = n_stored(cluster)

    def fail(progress):
        assert n_stored(cluster) > before + 2
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        KMeans(3, callback=fail).fit(da.from_array(zoo.SMALL, chunks=(200, -1)))
    assert n_stored(cluster) == before


def n_stored(client):
    """The number of values on the workers, as soon as what was released is gone."""
    counts = []
    for _ in range(40):
        counts.append(sum(map(len, client.has_what().values())))
        if len(counts) > 5 and len(set(counts[-5:])) == 1:
            break
        time.sleep(0.05)
    return counts[-1]


def test_weights_and_known_labels_may_be_lazy(cluster):
    rng = np.random.default_rng(0)
    w, y = rng.exponential(size=len(zoo.SMALL)), rng.integers(-1, 3, size=len(zoo.SMALL))
    rows = da.from_array(zoo.SMALL, chunks=(400, -1))
    here, there = (
        KMeans(3, random_state=0).fit(rows, sample_weight=weights) for weights in (w, da.from_array(w, chunks=250))
    )
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    with pytest.raises(InputError, match="1 are, the first at row 7"):
        KMeans(3).fit(rows, sample_weight=da.from_array(np.where(np.arange(len(w)) == 7, -1, w), chunks=250))
    with pytest.raises(InputError, match="zero for every row"):
        KMeans(3).fit(rows, sample_weight=da.zeros(len(w), chunks=250))
    with pytest.raises(InputError, match="sample_weight must have an entry for each of the 1200 rows"):
        KMeans(3).fit(rows, sample_weight=da.ones(7))
    model = GaussianMixture(3, init_params="kmeans", random_state=0, tol=10)
    here, there = (clone(model).fit(rows, known_labels=labels) for labels in (y, da.from_array(y, chunks=250)))
    np.testing.assert_array_equal(there.means_, here.means_)


def test_labels_are_written_where_the_rows_are(cluster, tmp_path):
    polars = pytest.importorskip("polars")
    rows = da.from_array(zoo.LARGE, chunks=(1500, -1))
    model = KMeans(4, random_state=0).fit(rows)
    pattern = tmp_path / "new" / "labels-*.parquet"
    files = model.predict_to(rows, pattern)
    assert [Path(file).name for file in files] == [f"labels-{i:06}.parquet" for i in range(4)]
    written = polars.read_parquet(files)["cluster"].to_numpy()
    np.testing.assert_array_equal(written, model.labels_.compute())
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.predict_to(rows, pattern)
    assert len(model.predict_to(zoo.LARGE[:10], pattern, overwrite=True)) == 1
    assert len(list(pattern.parent.iterdir())) == 1  # files of the first call are not mixed with those of the second
    with pytest.raises(ParameterError, match=r"one \* in the name of the file"):
        model.predict_to(rows, tmp_path / "labels.parquet")


def test_files_are_read_by_the_workers(cluster, tmp_path):
    polars = pytest.importorskip("polars")
    X = np.random.default_rng(0).normal(size=(60_000, 8))
    for i, rows in enumerate(np.array_split(X, 3)):
        polars.DataFrame(rows).write_parquet(tmp_path / f"{i}.parquet")
    pattern = f"{tmp_path}/*.parquet"
    here, there = (
        KMeans(4, init="k-means||", random_state=0, tol=1e-2, engine=name).fit(pattern) for name in ("auto", "dask")
    )
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    (tmp_path / "1.parquet").write_bytes((tmp_path / "1.parquet").read_bytes()[:1000])
    with pytest.raises(InputError, match=r"1\.parquet"):
        there.predict(pattern)


def test_rows_in_memory_are_sent_to_the_workers(cluster):
    X = np.random.default_rng(0).normal(size=(60_000, 8))
    here, there = (
        KMeans(4, init="k-means||", random_state=0, tol=1e-2, engine=name).fit(X) for name in ("auto", "dask")
    )
    assert len(as_source(X).parts()) >= 3
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    np.testing.assert_array_equal(there.labels_, here.labels_)


def test_weights_and_minibatch_and_narrow_blocks(cluster):
    w = np.random.default_rng(0).exponential(size=len(zoo.SMALL))
    rows = da.from_array(zoo.SMALL, chunks=(400, 2))  # blocks that cut rows are joined
    model = KMeans(3, init="farthest").fit(rows, sample_weight=w)
    same = KMeans(3, init="farthest").fit(zoo.SMALL, sample_weight=w)
    np.testing.assert_allclose(model.cluster_centers_, same.cluster_centers_, rtol=1e-9)
    small = MiniBatchKMeans(3, random_state=0, batch_size=200, max_iter=2).fit(rows)
    assert small.labels_.compute().shape == (1200,)


def test_threads_with_a_dask_array_are_an_error():
    with pytest.raises(ParameterError, match="engine='threads' cannot read a Dask array"):
        KMeans(3, engine="threads").fit(da.from_array(zoo.SMALL, chunks=(400, -1)))


def same_parts(X):
    """A Dask array whose blocks are the parts of `X`."""
    bounds = part_bounds(*X.shape, X.itemsize)
    assert len(bounds) > 2  # else there would be nothing to add up
    return da.from_array(X, chunks=(tuple(np.diff(bounds).tolist()), -1))


def assert_same_mixture(there, here):
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name), err_msg=name)
    np.testing.assert_array_equal(there.history_.lower_bound, here.history_.lower_bound)
    np.testing.assert_array_equal(there.history_.log_likelihood, here.history_.log_likelihood)
    for name in ("log_likelihood_", "lower_bound_", "n_iter_", "n_parameters_", "converged_"):
        assert getattr(there, name) == getattr(here, name), name
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)


@pytest.mark.parametrize(
    "structure, given",
    [("VVV", "labels and weight"), ("VEV", "weight"), ("EEE", "rows"), ("VVI", "labels"), ("EII", "labels and weight")],
)
def test_a_mixture_of_a_dask_array_is_that_of_the_array(cluster, structure, given):
    X, rng = zoo.LARGE, np.random.default_rng(0)
    y = rng.integers(-1, 3, size=len(X)) if "labels" in given else None
    w = rng.exponential(size=len(X)) if "weight" in given else None
    model = GaussianMixture(3, covariance_type=structure, init_params="kmeans", tol=1.0, random_state=0)
    here, there = (clone(model).fit(rows, sample_weight=w, known_labels=y) for rows in (X, same_parts(X)))
    assert here.n_iter_ > 1
    assert_same_mixture(there, here)


@pytest.mark.parametrize("method", ["auto", "hierarchical", "labels"])
def test_a_mixture_of_a_dask_array_starts_where_that_of_the_array_does(cluster, method):
    X = zoo.LARGE[:, :24].copy()
    init = np.arange(len(X)) % 3 if method == "labels" else method
    model = GaussianMixture(3, covariance_type="EEI", init_params=init, tol=1.0, random_state=0)
    assert_same_mixture(clone(model).fit(same_parts(X)), clone(model).fit(X))


def test_a_mixture_answers_for_dask_rows_as_for_others(cluster):
    rows = da.from_array(zoo.LARGE, chunks=(1500, -1))
    model = GaussianMixture(4, covariance_type="diag", init_params="k-means++", tol=9.0, random_state=0).fit(rows)
    for answer in ("predict", "predict_proba", "score_samples", "uncertainty", "entropy"):
        ours, theirs = getattr(model, answer)(zoo.LARGE), getattr(model, answer)(rows)
        assert theirs.chunks[0] == (1500,) * 4
        np.testing.assert_allclose(theirs.compute(), ours, rtol=1e-9, atol=1e-12)
    for criterion in ("score", "bic", "aic", "icl"):
        assert getattr(model, criterion)(rows) == pytest.approx(getattr(model, criterion)(zoo.LARGE), rel=1e-12)
    assert model.log_likelihood_ == pytest.approx(model.score(zoo.LARGE) * len(zoo.LARGE), rel=1e-12)


def test_missing_values_of_a_dask_array_are_supported(cluster):
    rows = np.where(np.random.default_rng(1).random((6000, 24)) < 0.002, np.nan, zoo.LARGE[:, :24])
    model = GaussianMixture(
        2, covariance_type="EEE", init_params="k-means++", missing="ignore", tol=1.0, max_iter=50, random_state=0
    )
    lazy = same_parts(rows)
    here, there = clone(model).fit(rows), clone(model).fit(lazy)
    assert_same_mixture(there, here)
    np.testing.assert_allclose(there.impute(lazy).compute(), here.impute(rows), rtol=1e-9)


@pytest.mark.parametrize("shape", [(10, 3), (40_000, 4), (300_001, 5)])
def test_rows_in_memory_are_cut_as_threads_cut_them(shape):
    X = np.zeros(shape)
    assert in_blocks(X).chunks[0] == tuple(part().X.shape[0] for part in MemorySource(X).parts())
