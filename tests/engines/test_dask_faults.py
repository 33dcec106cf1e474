"""Faults of a Dask cluster of real processes: the fit continues with the same bits, or stops with one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

import zoo  # noqa: E402
from coterie import KMeans  # noqa: E402
from coterie.engines import dask_placement  # noqa: E402
from coterie.engines.dask_placement import DaskPlacement  # noqa: E402
from coterie.errors import ClusterError  # noqa: E402

PART_ROWS = 150  # eight parts of zoo.SMALL


@contextmanager
def cluster(n_workers=2, restarts=True, **options):
    """A client of worker processes; a worker that ends is replaced if `restarts`."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", silence_logs=50, **options,
        ) as workers,
        distributed.Client(workers) as client,
    ):  # fmt: skip
        if not restarts:
            for nanny in workers.workers.values():
                nanny.instantiate = stay_ended  # the nanny calls it when its worker has ended
        yield client


async def stay_ended():
    return None


def lazy(X=zoo.SMALL):
    return da.from_array(X, chunks=(PART_ROWS, -1))


def model(**options):
    return KMeans(6, init="k-means++", tol=0, random_state=0, **options)


@pytest.fixture(scope="module")
def expected():
    """The fit without a cluster, which has the bits of threads."""
    fitted = model().fit(lazy())
    assert fitted.n_iter_ >= 4
    return fitted, fitted.labels_.compute()


def assert_same(fitted, expected):
    before, labels = expected
    np.testing.assert_array_equal(fitted.cluster_centers_, before.cluster_centers_)
    np.testing.assert_array_equal(fitted.history_, before.history_)
    np.testing.assert_array_equal(fitted.labels_.compute(), labels)


def kill(client, name=None):
    """End a worker as `kill -9` does, or the operating system if memory is short."""
    pids = client.run(os.getpid, on_error="ignore")
    os.kill(pids[name] if name else next(iter(pids.values())), signal.SIGKILL)


@pytest.fixture
def passes(monkeypatch):
    """Functions to call before a pass, by its number."""
    actions, count, ask = {}, iter(range(10**6)), DaskPlacement.ask

    def watched(self, order, parts):
        action = actions.get(next(count))
        if action is not None:
            action()
        return ask(self, order, parts)

    monkeypatch.setattr(DaskPlacement, "ask", watched)
    return actions


def stored(client):
    """The number of values that the workers store."""
    return sum(map(len, client.has_what().values()))


def assert_nothing_stored(client):
    deadline = time.monotonic() + 5
    while stored(client) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert stored(client) == 0


def test_a_worker_that_is_killed_and_restarted_changes_no_bit_and_nothing_is_left_behind(expected, passes):
    with cluster() as client:
        passes[3] = passes[9] = lambda: kill(client)  # in the initialisation, and in the iterations
        fitted = model().fit(lazy())
        assert_same(fitted, expected)
        del fitted
        assert_nothing_stored(client)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 4, 8, 10, 12])
def test_a_worker_may_end_before_any_pass(expected, passes, number):
    with cluster(restarts=False) as client:
        passes[number] = lambda: kill(client)
        assert_same(model().fit(lazy()), expected)


@pytest.mark.slow
def test_a_worker_may_end_during_a_pass(expected, passes):
    with cluster() as client:
        for number in range(2, 14, 4):
            passes[number] = lambda: threading.Timer(0.005, kill, (client,)).start()
        assert_same(model().fit(lazy()), expected)


@pytest.mark.slow
def test_a_worker_that_joins_late_takes_the_rows_of_one_that_ends(expected, passes):
    with cluster(n_workers=1) as client:
        (first,) = client.run(os.getpid)

        def replace():
            client.cluster.scale(2)
            client.wait_for_workers(2, timeout=30)
            kill(client, first)

        passes[8] = replace
        assert_same(model().fit(lazy()), expected)


@pytest.mark.slow
def test_rows_of_this_process_are_sent_again(passes):
    X = np.random.default_rng(0).normal(size=(60_000, 8))
    here = KMeans(5, init="k-means||", random_state=0, tol=1e-2).fit(X)
    with cluster() as client:
        passes[8] = lambda: kill(client)
        there = KMeans(5, init="k-means||", random_state=0, tol=1e-2, engine="dask").fit(X)
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    np.testing.assert_array_equal(there.labels_, here.labels_)


@pytest.mark.slow
def test_a_scheduler_that_ends_is_named_with_the_way_to_resume(expected, tmp_path):
    code = "from distributed.cli.dask_scheduler import main; main()"
    arguments = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(tmp_path / "file")]
    scheduler = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.DEVNULL)
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(tmp_path / "file")],
        stderr=subprocess.DEVNULL,
    )

    def end(progress):
        if progress.iteration == 2:
            scheduler.kill()

    try:
        with distributed.Client(scheduler_file=str(tmp_path / "file"), timeout="30s") as client:
            client.wait_for_workers(1, timeout=30)
            with pytest.raises(ClusterError, match=r"scheduler at tcp://127.* ended or was restarted.*`checkpoint`"):
                model(checkpoint=tmp_path / "fit.safetensors", callback=end).fit(lazy())
    finally:
        scheduler.kill()
        worker.kill()
        scheduler.wait()
        worker.wait()
    assert (tmp_path / "fit.safetensors").exists()
    assert_same(model(checkpoint=tmp_path / "fit.safetensors").fit(lazy()), expected)


@pytest.mark.slow
def test_a_cluster_without_workers_is_named(passes, monkeypatch):
    monkeypatch.setattr(dask_placement, "PATIENCE", 0.5)
    with cluster(n_workers=1, restarts=False) as client:
        passes[5] = lambda: kill(client)
        with pytest.raises(ClusterError, match=r"has no workers left: start some, and fit again; with `checkpoint`"):
            model().fit(lazy())


@pytest.mark.slow
def test_workers_without_enough_memory_are_named():
    rows = da.random.default_rng(0).normal(size=(6_000_000, 16), chunks=(3_000_000, 16))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        cluster(memory_limit="350MB"),
        pytest.raises(ClusterError, match="ran out of memory"),
    ):
        KMeans(2, max_iter=1).fit(rows)


@pytest.mark.slow
def test_a_client_that_dies_leaves_nothing_on_the_workers():
    script = """
        import os, sys, dask.array as da, distributed
        from coterie import KMeans
        client = distributed.Client(sys.argv[1])
        def end(progress):
            print(sum(map(len, client.has_what().values())), flush=True)
            os._exit(1)
        KMeans(3, callback=end).fit(da.random.default_rng(0).normal(size=(4000, 3), chunks=(500, 3)))
    """
    with cluster() as client:
        ended = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), client.scheduler.address], capture_output=True, text=True
        )
        assert int(ended.stdout) >= 8
        assert_nothing_stored(client)


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_result_and_frees_the_workers(expected):
    from coterie.errors import FitInterruptedWarning

    def press(progress):
        if progress.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with cluster() as client:
        with pytest.warns(FitInterruptedWarning):
            fitted = model(callback=press).fit(lazy())
        assert 2 <= fitted.n_iter_ < expected[0].n_iter_
        assert len(fitted.labels_.compute()) == len(zoo.SMALL)
        del fitted
        assert_nothing_stored(client)


@pytest.mark.slow
def test_a_file_that_changed_is_named_when_the_rows_of_a_worker_that_ended_are_read_again(passes, tmp_path):
    pl = pytest.importorskip("polars")
    from coterie.errors import InputError

    for i in range(4):
        rows = zoo.SMALL[i * 300 : (i + 1) * 300]
        pl.DataFrame(rows, schema=[f"x{j}" for j in range(rows.shape[1])]).write_parquet(tmp_path / f"{i}.parquet")
    with cluster() as client:

        def change():
            for path in tmp_path.iterdir():
                path.write_bytes(path.read_bytes()[:100])
            for name in list(client.run(os.getpid)):
                kill(client, name)

        passes[5] = change
        with pytest.raises(InputError, match=r"\.parquet"):
            model(engine="dask").fit(tmp_path)
