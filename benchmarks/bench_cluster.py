"""K-means on a Dask cluster of this machine beside threads, dask-ml and Spark: seconds per iteration.

All measurements of a row are of one run, in turns, so that its ratios hold on a busy machine, too. The last row is the
fit of a folder that is larger than memory: 20 GB in /var/tmp, or 0.2 GB with ``--quick``. ``COTERIE_BENCH_FOLDER`` is a
folder of Parquet files to use instead.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from benchmarks import bench_files, data
from benchmarks.harness import Options, main
from benchmarks.report import NONE, Ratio, Result, Table

ITERATIONS = 8
LIMIT = 2_000_000_000  # bytes that the fit of a folder larger than memory may allocate


@contextmanager
def cluster(n_workers: int, threads: int = 1) -> Iterator[Any]:
    """A client of worker processes."""
    from distributed import Client, LocalCluster

    options = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1", "silence_logs": 50}
    with LocalCluster(n_workers=n_workers, threads_per_worker=threads, **options) as workers, Client(workers) as client:
        yield client


def iteration_times(X: Any, start: np.ndarray, iterations: int = ITERATIONS, **options: Any) -> list[float]:
    """Seconds of each iteration after the first, which loads kernels."""
    from coterie import KMeans

    stamps: list[float] = []
    model = KMeans(
        len(start), init=start, max_iter=iterations + 1, tol=0, callback=lambda _: stamps.append(time.perf_counter()),
        **options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return np.diff(stamps[1:]).tolist()


def blocks(X: np.ndarray, n_parts: int) -> Any:
    import dask.array as da

    bounds = np.linspace(0, len(X), n_parts + 1).astype(int)
    return da.from_array(X, chunks=(tuple(np.diff(bounds).tolist()), -1))


# the rows of the table


def beside_threads(options: Options) -> tuple[list[list[str]], list[Ratio]]:
    """K-means of a Dask array on two workers, and of the same rows in two threads."""
    n, d, k = (60_000, 16, 64) if options.quick else (1_000_000, 16, 64)
    X = data.blobs(n, d, k, data.OVERLAPPING)
    start = data.random_rows(X, k)
    times: dict[str, list[float]] = {"threads": [], "dask": [], "frame": []}
    with cluster(2):
        lazy = blocks(X, 16)
        frame = _frame(X, 16)
        for _ in range(options.turns(5)):
            times["threads"].append(min(iteration_times(X, start, n_jobs=2)))
            times["dask"].append(min(iteration_times(lazy, start)))
            if frame is not None:
                times["frame"].append(min(iteration_times(frame, start)))
    what = f"{n:,} x {d}, K = {k}, 16 parts, 2 workers"
    rows = [
        [name, f"{np.median(times[key]):.3g}", f"threads {np.median(times['threads']):.3g}", _ratios(times, key)]
        for name, key in ((what, "dask"), ("the same, a Dask DataFrame", "frame"))
        if times[key]
    ]
    return rows, [Ratio(f"{what}: cluster beside threads", min(times["dask"]), "threads", min(times["threads"]))]


def _ratios(times: dict[str, list[float]], key: str) -> str:
    """The median of the ratios of all turns, and their range: the speed of a machine may differ between turns."""
    ratios = np.divide(times[key], times["threads"])
    return f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def _frame(X: np.ndarray, n_parts: int) -> Any:
    if find_spec("pandas") is None or find_spec("dask.dataframe") is None:
        return None
    import dask.dataframe as dd
    import pandas as pd

    return dd.from_pandas(pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]), npartitions=n_parts)


def by_parts(options: Options) -> list[list[str]]:
    """The time of an iteration for more and more parts of the same rows, and the cost model of docs/scale.md."""
    X = data.blobs(60_000, 8, 8, data.OVERLAPPING)
    start = data.random_rows(X, 8)
    counts = (10, 100) if options.quick else (10, 100, 500, 5000)
    rows, cases = [], []
    for n_workers in (2,) if options.quick else (1, 2, 4):
        with cluster(n_workers) as client:
            for n_parts in counts:
                lazy = blocks(X, n_parts)
                begin = time.perf_counter()
                times = iteration_times(lazy, start, 12)
                total = time.perf_counter() - begin
                cases.append((n_workers, n_parts, min(times)))
                rows.append(
                    [f"60,000 x 8, K = 8, {n_parts} parts, {n_workers} workers", f"{min(times):.3g}",
                     f"median {np.median(times):.3g}", f"whole fit {total:.3g} s"]
                )  # fmt: skip
            del client
    return [*rows, *cost_model(cases)]


def cost_model(cases: list[tuple[int, int, float]]) -> list[list[str]]:
    """Least squares of ``t = a + b W + e P / min(W, cores)``, relative to t, for W workers and P parts."""
    workers, parts, seconds = np.array(cases).T
    shares = parts / np.minimum(workers, os.cpu_count() or 1)
    terms = np.stack([np.ones_like(workers), workers, shares], axis=1)[
        :, [0, *([1] if len(set(workers)) > 1 else []), 2]
    ]
    values, *_ = np.linalg.lstsq(terms / seconds[:, None], np.ones_like(seconds), rcond=None)
    error = np.abs(terms @ values / seconds - 1).max()
    names = ["a", "b", "e"] if len(values) == 3 else ["a + b W", "e"]
    text = ", ".join(f"{name} = {1e3 * value:.3g} ms" for name, value in zip(names, values, strict=True))
    return [["cost model t = a + b W + e P / min(W, cores)", text, f"largest error {error:.0%}", NONE]]


def moved_bytes(options: Options) -> list[list[str]]:
    """Bytes that workers receive from each other after the rows are placed, relative to the bytes of the rows."""
    X = data.blobs(60_000 if options.quick else 500_000, 16, 16, data.OVERLAPPING)
    received: list[int] = []
    with cluster(2) as client:
        from coterie import KMeans

        def note(_: Any) -> None:
            received.append(sum(client.run(_received).values()))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KMeans(16, init=data.random_rows(X, 16), max_iter=6, tol=0, callback=note).fit(blocks(X, 32))
    share = (received[-1] - received[0]) / X.nbytes
    what = f"{len(X):,} x 16, 32 parts: bytes between workers in 6 iterations / bytes of X"
    return [[what, f"{share:.2%}", NONE, NONE]]


def _received(dask_worker: Any) -> int:
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def after_a_loss(options: Options) -> list[list[str]]:
    """The longest iteration of a fit in which a worker is killed."""
    X = data.blobs(60_000 if options.quick else 1_000_000, 16, 64, data.OVERLAPPING)
    start, stamps = data.random_rows(X, 64), []
    with cluster(2) as client:
        from coterie import KMeans

        pids = list(client.run(os.getpid).values())

        def kill(progress: Any) -> None:
            stamps.append(time.perf_counter())
            if progress.iteration == 4:
                os.kill(pids[0], signal.SIGKILL)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KMeans(64, init=start, max_iter=8, tol=0, callback=kill).fit(blocks(X, 16))
    times = np.diff(stamps)
    return [[f"{len(X):,} x 16, 16 parts: iteration in which a worker is killed", f"{times.max():.3g}",
             f"median {np.median(times):.3g}", NONE]]  # fmt: skip


def beside_dask_ml(options: Options) -> tuple[list[list[str]], list[Ratio]]:
    """dask-ml on the same cluster: all iterations, divided by their number."""
    if find_spec("dask_ml") is None:
        return [["dask-ml", "skipped: dask-ml is not installed", NONE, NONE]], []
    n = 60_000 if options.quick else 1_000_000
    X = data.blobs(n, 16, 64, data.OVERLAPPING)
    start = data.random_rows(X, 64)
    with cluster(2):
        lazy = blocks(X, 16).persist()
        ours = min(iteration_times(lazy, start))
        theirs = (_dask_ml_seconds(lazy, start, 7) - _dask_ml_seconds(lazy, start, 2)) / 5
    what = f"{n:,} x 16, K = 64, 16 parts: dask-ml"
    cells = [what, f"{ours:.3g}", f"dask-ml {theirs:.3g}", f"{theirs / ours:.1f}"]
    return [cells], [Ratio(what, ours, "dask-ml", theirs)]


def _dask_ml_seconds(lazy: Any, start: np.ndarray, iterations: int) -> float:
    from dask_ml.cluster import KMeans

    begin = time.perf_counter()
    KMeans(len(start), init=start, max_iter=iterations, tol=0).fit(lazy)
    return time.perf_counter() - begin


def beside_spark(options: Options) -> tuple[list[list[str]], list[Ratio]]:
    """Spark MLlib with local[2]; the rows are cached before the fit."""
    missing = [name for name in ("pyspark", "polars") if find_spec(name) is None] or ["java"] * (not which("java"))
    if missing:
        return [["Spark MLlib", f"skipped: {missing[0]} is not installed", NONE, NONE]], []
    n = 60_000 if options.quick else 1_000_000
    X = data.blobs(n, 16, 64, data.OVERLAPPING)
    with cluster(2):
        ours = min(iteration_times(blocks(X, 16), data.random_rows(X, 64)))
    theirs = _spark_seconds(X)
    what = f"{n:,} x 16, K = 64: Spark MLlib, local[2]"
    cells = [what, f"{ours:.3g}", f"Spark {theirs:.3g}", f"{theirs / ours:.1f}"]
    return [cells], [Ratio(what, ours, "Spark", theirs)]


def _spark_seconds(X: np.ndarray) -> float:
    """Seconds of one iteration: the difference of fits of 5 and of 15 iterations, when its code is compiled."""
    import polars as pl
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    settings = {"spark.driver.memory": "4g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        columns = [f"c{j}" for j in range(X.shape[1])]
        for i, part in enumerate(np.array_split(X, 2)):  # one file for each core
            pl.DataFrame(part, schema=columns).write_parquet(Path(folder, f"{i}.parquet"))
        rows = VectorAssembler(inputCols=columns, outputCol="features").transform(spark.read.parquet(folder))
        rows = rows.select("features").cache()
        rows.count()
        for iterations in (15, 5, 15):  # the first loads and compiles code
            begin = time.perf_counter()
            model = KMeans(k=64, maxIter=iterations, tol=0.0, initMode="random", seed=1).fit(rows)
            seconds[iterations] = time.perf_counter() - begin
            assert model.summary.numIter == iterations, "Spark stopped early"
    spark.stop()
    return (seconds[15] - seconds[5]) / 10


def larger_than_memory(options: Options) -> list[list[str]]:
    """The fit of a Parquet folder that is read in every pass, beside one read of it."""
    given = os.environ.get("COTERIE_BENCH_FOLDER")
    with tempfile.TemporaryDirectory(prefix="benchmarks-", dir="/var/tmp") as folder:
        if given is None:
            bench_files.write_folder(Path(folder), 1_600_000 if options.quick else 156_000_000)
        case = bench_files.measured(given or folder, "none", 1, 2, LIMIT)
    size = f"{case['bytes'] / 1e9:.3g} GB of Parquet files in {LIMIT / 1e9:g} GB of memory"
    what = f"{case['rows']:,} x 16, {size}, K = 64, threads, cache='none'"
    memory = f"read {case['read']:.3g}, peak memory {case['memory'] / 1e9:.2f} GB"
    return [[what, f"{case['iteration']:.3g}", memory, f"{case['iteration'] / case['read']:.2f}"]]


def run(options: Options) -> Result:
    rows: list[list[str]] = []
    ratios: list[Ratio] = []
    sections: list[Callable[[Options], Any]] = [
        beside_threads, by_parts, moved_bytes, after_a_loss, beside_dask_ml, beside_spark, larger_than_memory,
    ]  # fmt: skip
    for section in sections:
        result = section(options)
        lines, more = result if isinstance(result, tuple) else (result, [])
        for line in lines:
            print(" | ".join(line), file=sys.stderr, flush=True)
        rows += lines
        ratios += more
    header = ["what", "coterie, s per iteration", "beside", "ratio"]
    return Result([Table("K-means on a cluster of this machine", header, rows, [])], ratios, {})


if __name__ == "__main__":
    main("cluster", run)
