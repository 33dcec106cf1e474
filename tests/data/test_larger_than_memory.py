"""Rows that do not fit into memory: what a fit of them takes of it."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

CHILD = """
import os, sys, threading, time
import numpy as np
from coterie import SphericalKMeans, machine
from coterie.data import opened

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
rows, reading = watched(opened, sys.argv[1])
before = anonymous()
print(reading, watched(model.fit, rows)[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_table_larger_than_memory_is_fitted_in_little_of_it(tmp_path):
    """410 MB of rows, and as many at unit length, where 100 MB are free: batches, labels and bounds, nothing n x d."""
    path = tmp_path / "large.parquet"
    i, columns = pl.col("i"), range(32)
    numbers = [(1.0 + (i * (2 * j + 3)) % 1009 + (i % 4) * 100.0 * (j % 3)).alias(f"x{j}") for j in columns]
    pl.LazyFrame({"i": pl.int_range(1_600_000, eager=True)}).select(numbers).sink_parquet(path, row_group_size=20_000)
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch"), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, text=True, env=environment)
    path.unlink()
    assert run.returncode == 0, run.stderr
    reading, fitting = map(int, run.stdout.split())
    assert reading < 300
    assert fitting < 150
    assert os.listdir(tmp_path / "scratch") == []
