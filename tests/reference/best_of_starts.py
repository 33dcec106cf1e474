"""Lowest costs of many initialisations on public tables, which the default of each estimator is compared with.

`python tests/reference/best_of_starts.py SECONDS` computes the cells that `best_of_starts.json` lacks, the cheapest
first, and saves the file after each of them. A cell whose 1,000 initialisations would take longer than SECONDS (default
180) has fewer of them. The file says how many, and a later run with more seconds computes such a cell again. Costs have
10 digits.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from coterie import FuzzyCMeans, KMedians, KMedoids, SphericalKMeans
from coterie.core.writing import write_whole
from reference.shared_data import load, read_index

FILE = Path(__file__).with_suffix(".json")
ESTIMATORS = {
    "fuzzy": FuzzyCMeans(),
    "l1": KMedians(),
    "l2": KMedians(metric="l2"),
    "medoids": KMedoids(),
    "spherical": SphericalKMeans(),
}
WORK = {"fuzzy": 20, "l1": 5, "l2": 10, "medoids": 1, "spherical": 1}  # rough duration of a fit, for the order
COUNTS = (3, 7, 12)  # numbers of clusters
STARTS, FEWEST = 1000, 20  # initialisations of a cell, and of one whose initialisations are slow
PILOT = 4  # initialisations whose duration is measured
SECONDS = 180.0
LARGEST = 10_000  # rows


class Cell(NamedTuple):
    """An estimator, a table and a number of clusters."""

    estimator: str
    table: str
    k: int

    def fit(self, **options):
        estimator = ESTIMATORS[self.estimator].set_params(n_clusters=self.k, **options)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*did not converge|only .* clusters have rows")
            return cost(estimator.fit(rows_of(self.table, self.estimator)))

    def best_of(self, starts):
        return self.fit(search="none", n_init=starts, random_state=1)

    def default(self, seed):
        return self.fit(search="auto", n_init="auto", random_state=seed)


def cost(estimator):
    return estimator.objective_ if hasattr(estimator, "objective_") else estimator.inertia_


@cache
def rows_of(table, estimator):
    X = load(table)
    return X[X.any(axis=1)] if estimator == "spherical" else X


def cells():
    """All cells, the cheapest first."""
    work = {}
    for entry in read_index("index.json"):
        if entry["kind"] != "points" or entry["missing"] or entry["n"] > LARGEST:
            continue
        table = f"{entry['group']}/{entry['name']}"
        for name in ESTIMATORS:
            distinct = len(np.unique(rows_of(table, name), axis=0))
            for k in COUNTS:
                if k < distinct // 2:
                    n = entry["n"] * (entry["n"] / 100 if name == "medoids" else 1)
                    work[Cell(name, table, k)] = WORK[name] * n * entry["d"] * k
    return sorted(work, key=work.get)


def read():
    """Stored cells, with the number of initialisations and the lowest cost of each."""
    if not FILE.is_file():
        return {}
    return {Cell(*row[:3]): tuple(row[3:]) for row in json.loads(FILE.read_text(encoding="utf-8"))}


def save(stored):
    rows = [json.dumps([*cell, *values]) for cell, values in sorted(stored.items())]
    write_whole(FILE, ("[\n" + ",\n".join(rows) + "\n]\n").encode(), overwrite=True)


def round_cost(value):
    return float(f"{value:.10g}")


def affordable(cell, seconds):
    """Number of initialisations that take that long."""
    began = time.process_time()
    cell.best_of(PILOT)
    starts = int(PILOT * seconds / max(time.process_time() - began, 1e-6))
    return min(max(starts, FEWEST), STARTS)


def main(seconds=SECONDS):
    stored = read()
    for cell in cells():
        before, best = stored.get(cell, (0, np.inf))
        if before == STARTS:
            continue
        starts = affordable(cell, float(seconds))
        if starts >= min(2 * before, STARTS):
            stored[cell] = starts, min(best, round_cost(cell.best_of(starts)))
            save(stored)
            print(*cell, *stored[cell], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
