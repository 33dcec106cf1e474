"""Threads: as many as asked for, the same bits, and at home wherever Python runs."""

from __future__ import annotations

import multiprocessing
import threading
import time

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from coterie import KMeans
from coterie.data.memory import MemorySource
from coterie.engines import as_engine
from coterie.engines.local import Serial, Threads
from coterie.errors import ParameterError
from coterie.machine import thread_count

X = np.random.default_rng(0).normal(size=(120000, 8))  # 7.7 MB: 8 parts
SOURCE = MemorySource(X, chunk_rows=3000)


def fit(n_jobs=None, seed=0):
    return KMeans(12, random_state=seed, n_jobs=n_jobs, max_iter=8, tol=1e9).fit(X)


def result(seed=0):
    model = fit(seed=seed)
    return model.cluster_centers_, model.labels_, model.inertia_


def assert_equal(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("n_jobs", [2, 3, 8, -1, None])
def test_one_seed_gives_one_result_on_any_number_of_threads(n_jobs):
    alone, together = fit(1), fit(n_jobs)
    np.testing.assert_array_equal(alone.cluster_centers_, together.cluster_centers_)
    np.testing.assert_array_equal(alone.labels_, together.labels_)
    np.testing.assert_array_equal(alone.history_, together.history_)


def test_one_thread_gives_what_the_serial_engine_gives():
    def step(chunk):
        return chunk.X.sum(axis=0)

    np.testing.assert_array_equal(Threads(1).sum(step, SOURCE), Serial().sum(step, SOURCE))


def test_steps_run_on_several_threads_and_results_keep_their_order():
    together = threading.Barrier(3, timeout=30)

    def meet(chunk):
        if chunk.part < 3:
            together.wait()  # passes only if three chunks are in work at once
        return chunk.part

    assert Threads(3).map(meet, SOURCE) == list(range(40))


def test_blas_has_one_thread_inside_a_step_and_its_own_again_afterwards():
    def blas():
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas()
        inside = Threads(2).map(lambda chunk: blas(), SOURCE)
        assert all(count == 1 for counts in inside for count in counts)
        assert blas() == before
    assert set(before) == {2}


def test_an_error_in_a_step_reaches_the_caller_and_the_engine_still_works():
    def fail(chunk):
        raise ZeroDivisionError("in a step")

    with pytest.raises(ZeroDivisionError, match="in a step"):
        Threads(2).sum(fail, SOURCE)
    assert len(Threads(2).map(lambda chunk: 1, SOURCE)) == 40


def test_memos_return_to_their_part():
    def step(chunk, memo):
        assert memo is None or memo == chunk.part
        return 1, chunk.part

    for engine in (Serial(), Threads(3)):
        total, memos = engine.scan(step, SOURCE, None)
        assert total == 40
        assert engine.scan(step, SOURCE, memos) == (40, memos)


def test_several_python_threads_fit_at_once():
    wanted = [result(seed) for seed in range(4)]
    found = {}
    workers = [threading.Thread(target=lambda s=s: found.__setitem__(s, result(s))) for s in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    for seed in range(4):
        assert_equal(found[seed], wanted[seed])


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_fits_inside_joblib_workers(backend):
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(result)(seed) for seed in (0, 1))
    for seed in (0, 1):
        assert_equal(found[seed], result(seed))


def _child(queue):
    queue.put(result())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_fits_in_a_child_process(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform does not {method}")
    wanted = result()  # the parent has its threads already
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    found = queue.get(timeout=120)
    child.join(30)
    assert_equal(found, wanted)


def test_an_interrupted_pass_leaves_the_engine_usable():
    def slow(chunk):
        if chunk.part == 0:
            raise KeyboardInterrupt
        time.sleep(0.001)
        return 1

    with pytest.raises(KeyboardInterrupt):
        Threads(2).sum(slow, SOURCE)
    assert Threads(2).sum(lambda chunk: 1, SOURCE) == 40


def test_n_jobs_follows_joblib_and_the_environment(monkeypatch):
    cores = joblib.cpu_count()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count(None) == thread_count(-1) == cores
    assert thread_count(5) == 5
    assert thread_count(-cores - 10) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count(None) == 1
    assert thread_count(4) == 4  # what is asked for outright is given


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", True, np.array([1, 2]), np.array(["a", "b"], object)])
def test_an_invalid_number_of_threads_is_an_error(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs must be"):
        thread_count(n_jobs)


def test_engines_are_chosen_by_name_or_given():
    assert as_engine("auto", SOURCE, 3) == Threads(3)
    assert as_engine("serial", SOURCE) == Serial()
    given = Threads(7)
    assert as_engine(given, SOURCE) is given
    with pytest.raises(ParameterError, match="'auto', 'serial', 'threads', 'dask'"):
        as_engine("gpu!", SOURCE)
    with pytest.raises(ParameterError, match="sum, scan and map"):
        as_engine(3, SOURCE)
