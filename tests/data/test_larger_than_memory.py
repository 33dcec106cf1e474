"""Rows that do not fit into memory: what a fit of them takes of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

CHILD = """
import os, sys, threading, time
import numpy as np
from coterie import SphericalKMeans, machine
from coterie.data import opened, scan_files

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) // 1000  # MB

def watched(call, *arguments):
    peak, done = anonymous(), threading.Event()
    def watch():
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, anonymous())
    watcher = threading.Thread(target=watch)
    watcher.start()
    result = call(*arguments)
    done.set()
    watcher.join()
    return result, peak - before

machine.free_memory = lambda: 100_000_000
model = SphericalKMeans(4, n_init=1, max_iter=2, tol=1.0, random_state=0)
model.fit(np.random.default_rng(0).normal(size=(5000, 32)))
before = anonymous()
rows, reading = watched(opened, sys.argv[1] if sys.argv[2] == "auto" else scan_files(sys.argv[1], cache=sys.argv[2]))
before = anonymous()
print(reading, watched(model.fit, rows)[1])
"""


def write_rows(folder, n, files):
    """Rows of 32 columns in Parquet files."""
    i = pl.col("i")
    numbers = [(1.0 + (i * (2 * j + 3)) % 1009 + (i % 4) * 100.0 * (j % 3)).alias(f"x{j}") for j in range(32)]
    for k in range(files):
        rows = pl.LazyFrame({"i": pl.int_range(k * n // files, (k + 1) * n // files, eager=True)})
        rows.select(numbers).sink_parquet(folder / f"{k}.parquet", row_group_size=20_000)


def peaks_of(path, cache, tmp_path):
    """MB of memory, at most, while rows are read and while they are fitted, where 100 MB are free."""
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch"), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run([sys.executable, "-c", CHILD, path, cache], capture_output=True, text=True, env=environment)
    shutil.rmtree(tmp_path / "rows")
    assert run.returncode == 0, run.stderr
    assert os.listdir(tmp_path / "scratch") == []
    return map(int, run.stdout.split())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_table_larger_than_memory_is_fitted_in_little_of_it(tmp_path):
    """410 MB of rows, and as many at unit length, where 100 MB are free: batches, labels and bounds, nothing n x d."""
    (tmp_path / "rows").mkdir()
    write_rows(tmp_path / "rows", 1_600_000, 1)
    reading, fitting = peaks_of(tmp_path / "rows" / "0.parquet", "auto", tmp_path)
    assert reading < 300
    assert fitting < 150


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("cache", ["none", "disk"])
def test_a_folder_larger_than_memory_is_fitted_in_little_of_it(tmp_path, cache):
    """1 GB of rows: nothing is read before the fit with cache='none', and its memory does not grow with the rows."""
    (tmp_path / "rows").mkdir()
    write_rows(tmp_path / "rows", 4_000_000, 8)
    reading, fitting = peaks_of(tmp_path / "rows", cache, tmp_path)
    assert reading < (50 if cache == "none" else 300)
    assert fitting < 250
