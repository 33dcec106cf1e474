"""Fits of a generated Parquet folder that is read in every pass, from a temporary file, and in memory.

Each case runs in its own process, on as many threads as there are cores. The time of an iteration is compared with that
of one read of all rows. ``--quick`` writes a tenth of the rows. The needs of a larger folder follow from these: time
grows with the rows, memory for parts does not, and each row needs the memory of its label and bounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks.harness import Options, main
from benchmarks.memory import STATUS
from benchmarks.report import Result, Table

ROWS, COLUMNS, K, FILES = 8_000_000, 16, 64, 8  # 1 GB of float64
ITERATIONS, READS = 4, 3
CACHES = ("none", "disk", "memory")
TARGET_GB = 20


def write_folder(folder: Path, rows: int) -> int:
    """Write the rows to several Parquet files, and return their size."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    centers = 4 * rng.normal(size=(K, COLUMNS))
    for i in range(FILES):
        n = rows // FILES
        X = centers[rng.integers(K, size=n)] + rng.normal(size=(n, COLUMNS))
        pl.DataFrame(X, schema=[f"x{j}" for j in range(COLUMNS)]).write_parquet(folder / f"{i}.parquet")
    return sum(path.stat().st_size for path in folder.iterdir())


def resident() -> dict[str, int]:
    """Bytes of memory of this process: its own pages, and pages of files, which the system can drop."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return {name: 1024 * int(lines[name].split()[0]) for name in ("RssAnon", "RssFile")}


def measure(
    folder: str, cache: str, n_reads: int = READS, iterations: int = ITERATIONS, limit: int | None = None
) -> dict[str, Any]:
    """Worker: seconds of a read and of an iteration, and the peak of memory beside what the imports need.

    With `limit`, the process can allocate at most that many bytes; pages of files do not count.
    """
    import resource
    import threading

    import numpy as np

    from coterie import KMeans
    from coterie.data import scan_files
    from coterie.engines.local import Threads

    if limit is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    warm = np.random.default_rng(0).normal(size=(4096, COLUMNS))
    KMeans(K, init="random", n_init=1, max_iter=2, tol=1e9).fit(warm)
    at_start, peak, done = resident()["RssAnon"], 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, resident()["RssAnon"])

    watcher = threading.Thread(target=watch)
    watcher.start()
    reads = []
    for _ in range(n_reads):
        start = perf_counter()
        Threads().sum(_count, scan_files(folder, cache="none"))
        reads.append(perf_counter() - start)
    source, times = scan_files(folder, cache=cache), []
    start = perf_counter()
    KMeans(
        K, init=4 * np.random.default_rng(1).normal(size=(K, COLUMNS)), max_iter=iterations, tol=0,
        callback=lambda progress: times.append(perf_counter()),
    ).fit(source)  # fmt: skip
    total = perf_counter() - start
    done.set()
    watcher.join()
    iteration = min(after - before for before, after in pairwise(times))
    return {
        "read": min(reads), "iteration": iteration, "fit": total, "memory": peak - at_start,
        "stated": source.requirements.memory, "disk": source.requirements.disk, "rows": source.shape[0],
        "bytes": source.nbytes,
    }  # fmt: skip


def _count(chunk: Any) -> int:
    return len(chunk.X)


def measured(folder: str, *arguments: Any) -> dict[str, Any]:
    """The result of `measure` in a process of its own."""
    call = f"measure{(folder, *arguments)!r}"
    code = f"from benchmarks.bench_files import measure; import json; print(json.dumps({call}))"
    command = [sys.executable, "-W", "ignore", "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(output.stdout.splitlines()[-1])
    return result


def run(options: Options) -> Result:
    rows = ROWS // 10 if options.quick else ROWS
    raw: dict[str, Any] = {}
    with TemporaryDirectory(prefix="benchmarks-", dir="/var/tmp") as folder:
        size = write_folder(Path(folder), rows)
        for cache in CACHES:
            raw[cache] = measured(folder, cache)
    read = min(case["read"] for case in raw.values())
    lines = [
        [
            cache, f"{case['iteration']:.2f} s", f"{case['iteration'] / read:.2f}", f"{case['fit']:.1f} s",
            f"{case['memory'] / 1e6:.0f} MB", f"{case['stated'] / 1e6:.0f} MB", f"{case['disk'] / 1e6:.0f} MB",
        ]
        for cache, case in raw.items()
    ]  # fmt: skip
    factor = TARGET_GB * 1e9 / (8 * rows * COLUMNS)
    per_row = 8 * rows * factor  # the labels and bounds of K-means
    notes = [
        f"One read of all rows: {read:.2f} s; the files have {size / 1e9:.2f} GB.",
        f"{TARGET_GB} GB would take {factor * raw['none']['iteration']:.0f} s an iteration with cache='none', "
        f"{(raw['none']['memory'] - 8 * rows) / 1e9:.2f} GB of memory for parts, and {per_row / 1e9:.1f} GB for labels "
        "and bounds, which are in a temporary file if memory is short.",
    ]
    title = f"K-means of {rows / 1e6:g}M x {COLUMNS} rows in {FILES} Parquet files, k = {K}"
    header = ["cache", "iteration", "iteration / read", "fit", "peak memory", "stated memory", "disk"]
    return Result([Table(title, header, lines, notes)], raw=raw)


if __name__ == "__main__":
    main("files", run)
