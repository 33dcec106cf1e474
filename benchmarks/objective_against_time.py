"""Objective against CPU time: coterie with searches of several lengths, scikit-learn with several numbers of starts.

`python -m benchmarks.objective_against_time FILE` draws one panel for each table and writes FILE, a picture. A point is
the mean over seeds of CPU time, and of the objective in excess of the best that any fit found. Fits of both libraries
run in turns in one process with one thread.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import data
from benchmarks.bench_answer import LARGE, SMALL, K, rows

TABLES = (*SMALL, *list(LARGE)[:2])
STARTS = (1, 3, 10, 30)
BUDGETS = (10, 50, 200)  # of thorough searches of K-means
SEEDS = 5
VISIBLE = 0.01  # minimum height of a panel: less is rounding
KMEANS = "K-means"
Fit = Callable[[np.ndarray, int], Any]  # the model fitted with this seed
Points = dict[str, list[tuple[float, float]]]  # CPU seconds and objectives, by library


def fitted(estimator: Any, options: dict[str, Any], X: np.ndarray, seed: int) -> Any:
    return estimator(K, random_state=seed, **options).fit(X)


def kmeans_fits() -> Iterator[tuple[str, Fit]]:
    from sklearn.cluster import KMeans as Peer

    from coterie import KMeans

    searches = [{"search": "none"}, {}, *({"search": "thorough", "search_budget": budget} for budget in BUDGETS)]
    for search in searches:
        yield "coterie", partial(fitted, KMeans, {"n_jobs": 1, **search})
    for count in STARTS:
        yield "scikit-learn", partial(fitted, Peer, {"n_init": count})


def mixture_fits() -> Iterator[tuple[str, Fit]]:
    from sklearn.mixture import GaussianMixture as Peer

    from coterie import GaussianMixture

    for search in ("none", "auto", "thorough"):
        yield "coterie", partial(fitted, GaussianMixture, {"covariance_type": "diag", "n_jobs": 1, "search": search})
    for count in STARTS:
        yield "scikit-learn", partial(fitted, Peer, {"covariance_type": "diag", "n_init": count})


def inertia(model: Any, X: np.ndarray) -> float:
    return data.inertia(X, model.cluster_centers_)


def surprise(model: Any, X: np.ndarray) -> float:
    """Minus the mean log-likelihood of a row."""
    return -float(model.score(X))


METHODS = {KMEANS: (kmeans_fits, inertia), "Gaussian mixture, diagonal": (mixture_fits, surprise)}


def measured(X: np.ndarray, fits: list[tuple[str, Fit]], objective: Callable[[Any, np.ndarray], float]) -> Points:
    """Mean CPU seconds and excess over the best objective, for each fit."""
    seconds, objectives = np.empty((2, len(fits), SEEDS))
    for _, fit in fits:
        fit(X, 0)  # loads what is to be loaded
    for seed in range(SEEDS):
        for i, (_, fit) in enumerate(fits):
            begin = process_time()
            model = fit(X, seed)
            seconds[i, seed] = process_time() - begin
            objectives[i, seed] = objective(model, X)
    excess = objectives.mean(axis=1) - objectives.min()
    if objective is inertia:
        excess = 100 * excess / objectives.min()
    points: Points = {}
    for (library, _), cpu, above in zip(fits, seconds.mean(axis=1), excess, strict=True):
        points.setdefault(library, []).append((cpu, above))
    return points


def draw(points: dict[str, dict[str, Points]], file: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(3.0 * len(TABLES), 2.7 * len(points)), layout="constrained")
    axes = figure.subplots(len(points), len(TABLES), squeeze=False)
    for row, (method, tables) in zip(axes, points.items(), strict=True):
        for ax, (table, libraries) in zip(row, tables.items(), strict=True):
            for (library, values), style in zip(libraries.items(), ("o-", "s--"), strict=True):
                cpu, above = np.array(values).T
                ax.plot(1e3 * cpu, above, style, label=library, markersize=4)
            ax.set(xscale="log", title=f"{method},\n{table}")
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_ylim(bottom=-0.03 * ax.get_ylim()[1], top=max(VISIBLE, ax.get_ylim()[1]))
        row[0].set_ylabel("above the best, %" if method == KMEANS else "log-likelihood of a row below the best")
    axes[0, 0].legend(frameon=False)
    figure.supxlabel("CPU time of a fit, ms")
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Picture of objective against CPU time.")
    arguments.add_argument("file", type=Path)
    file = arguments.parse_args().file
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        results = {
            method: {table: measured(rows(table), list(fits()), objective) for table in TABLES}
            for method, (fits, objective) in METHODS.items()
        }
    for method, tables in results.items():
        for table, points in tables.items():
            for library, values in points.items():
                print(method, table, library, *(f"{1e3 * cpu:.3g} ms {above:.4g}" for cpu, above in values), sep="  ")
    draw(results, file)
