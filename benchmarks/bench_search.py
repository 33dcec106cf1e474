"""How far from the best known sum of squares, and in what time: restarts beside the searches.

Needs the tables with published results in ``../shared/data``. The best known value of a table and a number of clusters
is the lower of the published one and the one found by long searches, so a search can come out below it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks import load
from benchmarks.harness import Options, main
from benchmarks.report import Result, Table

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
SEEDS = 2
FEW = 5_000  # rows x clusters up to which a global search must leave nothing
HEADER = ["method", "mean excess, %", "worst, %", f"worst, n K <= {FEW}", "best known reached", "ms", "ms of all cores"]
ROUNDING = 1e-3  # %, of values printed to five digits
Cell = tuple[str, int]  # table, number of clusters
Runs = dict[Cell, list[tuple[float, float, float]]]  # excess in %, seconds, and seconds of all cores together


def sklearn(n_init: int) -> Callable[..., np.ndarray]:
    def fit(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        from sklearn.cluster import KMeans

        return KMeans(k, n_init=n_init, random_state=seed).fit(X).cluster_centers_

    return fit


def ours(**options: Any) -> Callable[..., np.ndarray]:
    def fit(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        from coterie import KMeans

        return KMeans(k, random_state=seed, **options).fit(X).cluster_centers_

    return fit


def faiss(n_init: int) -> Callable[..., np.ndarray]:
    def fit(X: np.ndarray, k: int, seed: int) -> np.ndarray:
        from faiss import Kmeans

        options = {"niter": 100, "nredo": n_init, "seed": seed + 1, "max_points_per_centroid": len(X)}
        model = Kmeans(X.shape[1], k, min_points_per_centroid=1, **options)
        model.train(X.astype(np.float32))
        return model.centroids

    return fit


def breathing(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from bkmeans import BKMeans

    return BKMeans(n_clusters=k, random_state=seed).fit(X).cluster_centers_


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "scikit-learn n_init=1": sklearn(1),
    "scikit-learn n_init=10": sklearn(10),
    "scikit-learn n_init=100": sklearn(100),
    "faiss nredo=1": faiss(1),
    "faiss nredo=10": faiss(10),
    "bkmeans": breathing,
    "coterie n_init=1": ours(n_init=1),
    "coterie n_init=10": ours(n_init=10),
    "coterie": ours(),
    "coterie search='thorough'": ours(search="thorough"),
}


def best_known() -> dict[Cell, float]:
    """The best value of every table and number of clusters from 5 on; five printed digits only where no more are."""
    known: dict[Cell, float] = {}
    coarse: dict[Cell, float] = {}
    for result in json.loads((FOLDER / "published.json").read_text(encoding="utf-8")):
        if result["id"].startswith("mssc.") and all(key.isdigit() for key in result["value"]):
            for k, value in result["value"].items():
                printed = isinstance(value, dict)
                into, cell = coarse if printed else known, (result["dataset"], int(k))
                into[cell] = min(into.get(cell, np.inf), value["fopt"] if printed else value)
    for table, values in json.loads((FOLDER / "best_found.json").read_text(encoding="utf-8"))["values"].items():
        for k, value in values.items():
            known[table, int(k)] = min(known.get((table, int(k)), np.inf), value)
    for cell, value in coarse.items():
        if cell not in known or value < known[cell] * (1 - 1e-4):
            known[cell] = value
    return {cell: known[cell] for cell in sorted(known) if cell[1] >= 5}


def rows_of(table: str) -> np.ndarray:
    index = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
    entry = next(entry for entry in index if f"{entry['group']}/{entry['name']}" == table)
    return np.loadtxt(FOLDER / entry["files"][0], delimiter=",", skiprows=1, ndmin=2)


def cost(X: np.ndarray, centers: np.ndarray) -> float:
    """In float64 and without expanding the square: one judge for all."""
    nearest = np.full(len(X), np.inf)
    for center in centers.astype(np.float64):
        nearest = np.minimum(nearest, ((X - center) ** 2).sum(axis=1))
    return float(nearest.sum())


def measure(fit: Callable[..., np.ndarray], cells: dict[Cell, float], seeds: int) -> Runs:
    """What one method makes of every cell, once a seed."""
    tables = {table: rows_of(table) for table, _ in cells}
    for table, k in (next(iter(cells)), max(cells, key=lambda cell: len(tables[cell[0]]) * cell[1])):
        fit(tables[table], k, 0)  # compiled before anybody's watch
    found: Runs = {cell: [] for cell in cells}
    for (table, k), best in cells.items():
        for seed in range(seeds):
            begin, busy = perf_counter(), process_time()
            centers = fit(tables[table], k, seed)
            times = perf_counter() - begin, process_time() - busy
            found[table, k].append((100 * (cost(tables[table], centers) / best - 1), *times))
    return found


def summary_row(name: str, runs: Runs) -> list[str]:
    excess = {cell: [max(0.0, e) for e, _, _ in each] for cell, each in runs.items()}
    few = [e for (table, k), each in excess.items() if len(rows_of(table)) * k <= FEW for e in each]
    every = [e for each in excess.values() for e in each]
    reached = sum(fmean(each) <= ROUNDING for each in excess.values())
    return [
        name,
        f"{fmean(every):.3f}",
        f"{max(every):.2f}",
        f"{max(few, default=0.0):.3f}",
        f"{reached} of {len(excess)}",
        *(f"{1e3 * fmean(run[which] for each in runs.values() for run in each):.0f}" for which in (1, 2)),
    ]


def run(options: Options) -> Result:
    if not (FOLDER / "published.json").is_file():
        return Result([Table("Quality of K-means searches", ["skipped"], [["no ../shared/data"]])])
    cells = best_known()
    if options.quick:
        cells = {cell: value for cell, value in cells.items() if cell[0] in ("r/iris", "r/ruspini")}
    found: dict[str, Runs] = {}
    notes = [f"{len(cells)} pairs of table and K >= 5; values below the best known count as 0."]

    def measure_all() -> None:
        for name, fit in METHODS.items():
            try:
                found[name] = measure(fit, cells, options.turns(SEEDS))
            except ModuleNotFoundError as error:
                notes.append(f"{name}: {error.name} is not installed")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # congressional votes have duplicate rows, and everybody says so
        foreign = load.foreign_cores(measure_all)
    if foreign and foreign > load.TOLERATED:
        notes.append(f"**Disturbed**: other processes used {foreign:.1f} cores; times are not comparable.")
    rows = [summary_row(name, runs) for name, runs in found.items()]
    detail = [
        [table, str(k), f"{best:.6g}", *(f"{fmean(e for e, _, _ in found[name][table, k]):.3f}" for name in found)]
        for (table, k), best in cells.items()
    ]
    tables = [
        Table("Excess over the best known sum of squares", HEADER, rows, notes),
        Table("Mean excess of every pair, %", ["table", "K", "best known", *found], detail),
    ]
    raw = {name: {f"{table} {k}": each for (table, k), each in runs.items()} for name, runs in found.items()}
    return Result(tables, raw=raw)


if __name__ == "__main__":
    main("search", run)
