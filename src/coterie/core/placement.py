"""The cluster of this process, and which of its workers holds which part of the rows."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.core.stats import FAN_IN

MAX_LOAD = 1.25  # rows of a worker per thread, relative to the mean, up to which rows stay where they are
MAX_RUNS = 8  # runs of consecutive parts per worker, up to which rows stay where they are


def current_client() -> Any:
    """Client of the Dask cluster; None without one, as in a process that has not imported `distributed`."""
    if "distributed" not in sys.modules:
        return None
    try:
        return import_module("distributed").get_client()  # waits for another thread that imports it
    except ValueError:
        return None


def choose_workers(sizes: Sequence[int], threads: Mapping[str, int], current: Sequence[str | None]) -> list[str]:
    """The worker of each part, for parts of these numbers of rows; `threads` are those of each worker.

    Parts stay where they are (`current`) if the rows are balanced and a worker has few runs of consecutive parts.
    Otherwise each worker gets one run: then its sums are few nodes of the tree of `tree_sum`.
    """
    names = list(threads)
    stay = [name for name in current if name is not None and name in threads]
    if len(stay) == len(sizes):
        loads = [sum(n for n, name in zip(sizes, stay, strict=True) if name == each) / threads[each] for each in names]
        n_runs = 1 + sum(a != b for a, b in pairwise(stay))
        if max(loads) * sum(threads.values()) <= MAX_LOAD * sum(sizes) and n_runs <= MAX_RUNS * len(names):
            return stay
    return [names[i] for i in _runs(np.asarray(sizes, float), np.array(list(threads.values()), float))]


def _runs(sizes: np.ndarray, threads: np.ndarray) -> np.ndarray:
    """The index of the worker of each part; runs begin at multiples of a power of the fan-in, if parts are many."""
    unit = 1
    while unit * FAN_IN * FAN_IN * len(threads) <= len(sizes):
        unit *= FAN_IN
    ends = np.cumsum(sizes)
    firsts = np.arange(0, len(sizes), unit)
    lasts = np.minimum(firsts + unit, len(sizes)) - 1
    middles = (ends[firsts] - sizes[firsts] + ends[lasts]) / 2
    limits = np.cumsum(threads) / threads.sum() * ends[-1]
    return np.repeat(np.minimum(np.searchsorted(limits, middles), len(threads) - 1), lasts - firsts + 1)
