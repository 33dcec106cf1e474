"""Time to an answer: a whole default fit of each library, the first and later ones, and how good its result is.

Libraries do different amounts of work here, as their users meet them: read time and cost together. The cost is what a
method minimises, and 1 / the geometric mean of the density of the rows for a mixture. Density-based methods have none.
`objective_against_time` draws the cost for several lengths of the search.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest
from benchmarks.harness import Options, main
from benchmarks.report import NONE, Result, Table

K = 6
FORMS = {"full": "VVV", "diag": "VVI", "tied": "EEE", "spherical": "VII"}  # as mclust calls them
MIXTURES = tuple(f"GaussianMixture {form}" for form in FORMS)
METHODS = ("KMeans", *MIXTURES, "AgglomerativeClustering", "DBSCAN", "HDBSCAN", "KMedoids", "FuzzyCMeans")
SMALL = ("iris", "wine", "breast_cancer", "digits")
LARGE = {  # rows, columns, separation
    "blobs 5k x 8": (5_000, 8, data.SEPARATED),
    "cloud 20k x 16": (20_000, 16, 0.0),
    "blobs 100k x 16": (100_000, 16, data.SEPARATED),
    "blobs 1M x 16": (1_000_000, 16, data.OVERLAPPING),
}
WALKS = "walks 150 x 60"  # series
ALL_PAIRS = ("AgglomerativeClustering", "DBSCAN", "HDBSCAN", "KMedoids")  # not on more than 5,000 rows
FITS = 3
MCLUST = Path(__file__).with_name("mclust_times.json")  # made by mclust_times.R


def cases(tables: tuple[str, ...]) -> Iterator[Case]:
    for table in tables:
        for method in METHODS:
            if not (method in ALL_PAIRS and table in LARGE and LARGE[table][0] > 5_000):
                yield {"label": f"{method}, {table}", "method": method, "table": table, "dtype": "float64"}
    method = "TimeSeriesKMeans"
    yield {"label": f"{method}, {WALKS}", "method": method, "table": WALKS, "dtype": "float64"}


def rows(table: str) -> np.ndarray:
    """A table with standardised columns, or series."""
    if table == WALKS:
        return np.random.default_rng(0).normal(size=(150, 60)).cumsum(axis=1)
    if table in LARGE:
        n, d, separation = LARGE[table]
        return data.blobs(n, d, K, separation, dtype="float64")
    X = getattr(import_module("sklearn.datasets"), f"load_{table}")().data
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def of_estimators(package: str, lacks: tuple[str, ...] = ()) -> Any:
    """A fit by the estimator of that name; both libraries have the same names, with defaults of their own."""

    def fit(X: np.ndarray, plan: tuple[str, int]) -> Any:
        name, _, form = plan[0].partition(" ")
        if name in lacks:
            raise NotImplementedError(f"no {name}")
        home = package if package == "coterie" else "sklearn.mixture" if form else "sklearn.cluster"
        options: dict[str, Any] = {"covariance_type": form} if form else {}
        if name not in ALL_PAIRS or name == "KMedoids":
            options["random_state"] = plan[1]
        sizes = () if name in ("DBSCAN", "HDBSCAN") else (K,)
        return getattr(import_module(home), name)(*sizes, **options).fit(X)

    return fit


def only(method: str, fit: Callable[[np.ndarray, int], Any]) -> Any:
    """A library with one method; `fit` gets the rows and a seed."""

    def checked(X: np.ndarray, plan: tuple[str, int]) -> Any:
        if plan[0] != method:
            raise NotImplementedError(f"{method} only")
        return fit(X, plan[1])

    return checked


def fasterpam(X: np.ndarray, seed: int) -> Any:
    import kmedoids
    from scipy.spatial.distance import cdist

    return kmedoids.fasterpam(cdist(X, X), K, random_state=seed)


def cmeans(X: np.ndarray, seed: int) -> Any:
    import skfuzzy

    return skfuzzy.cmeans(X.T, K, 2.0, error=1e-4, maxiter=300, seed=seed)  # it has no defaults for the last two


def hdbscan(X: np.ndarray, seed: int) -> Any:
    import hdbscan

    return hdbscan.HDBSCAN().fit(X)


def tslearn(X: np.ndarray, seed: int) -> Any:
    from tslearn.clustering import TimeSeriesKMeans

    return TimeSeriesKMeans(K, metric="dtw", random_state=seed).fit(X)


COMPETITORS = (
    Competitor("coterie", "coterie", of_estimators("coterie")),
    Competitor("scikit-learn", "sklearn", of_estimators("sklearn", ("KMedoids", "FuzzyCMeans", "TimeSeriesKMeans"))),
    Competitor("kmedoids", "kmedoids", only("KMedoids", fasterpam)),
    Competitor("scikit-fuzzy", "skfuzzy", only("FuzzyCMeans", cmeans)),
    Competitor("hdbscan", "hdbscan", only("HDBSCAN", hdbscan)),
    Competitor("tslearn", "tslearn", only("TimeSeriesKMeans", tslearn)),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: every fit has a seed of its own; the first includes the imports."""
    X, seconds, costs = rows(case["table"]), [], []
    warnings.simplefilter("ignore")
    for seed in range(FITS + 1):
        begin = perf_counter()
        fitted = competitor.fit(X, (case["method"], seed))
        seconds.append(perf_counter() - begin)
        costs.append(cost(case["method"], X, fitted))
    return {"first": seconds[0], "seconds": seconds[1:], "check": median(costs)}


def cost(method: str, X: np.ndarray, fitted: Any) -> float:
    if method in MIXTURES:
        return float(np.exp(-fitted.score(X)))
    if method == "KMedoids":
        return float(getattr(fitted, "loss", None) or fitted.inertia_)
    if method in ("DBSCAN", "HDBSCAN"):
        return 0.0
    centers = fitted[0] if isinstance(fitted, tuple) else getattr(fitted, "cluster_centers_", None)
    if centers is None:
        centers = np.array([X[fitted.labels_ == j].mean(axis=0) for j in range(K)])
    if method == "TimeSeriesKMeans":
        from coterie.distances import pairwise

        return float((pairwise(X, centers.reshape(K, -1), metric="dtw").min(axis=1) ** 2).sum())
    if method != "FuzzyCMeans":
        return data.inertia(X, centers)
    squares = ((X[:, None] - centers) ** 2).sum(axis=2)
    return float((1 / (1 / np.maximum(squares, 1e-300)).sum(axis=1)).sum())


def mclust_table(raw: dict[str, Any]) -> Table:
    """Stored times of mclust beside ours: it has one thread and starts from a model-based tree."""
    stored = json.loads(MCLUST.read_text())
    lines = []
    for table in SMALL:
        for form, name in FORMS.items():
            theirs = stored["fits"][f"{table} {name}"]
            reports = raw.get(f"GaussianMixture {form}, {table}", {}).get("coterie", {}).get("reports")
            ours = NONE
            if reports:
                seconds = min(min(report["seconds"]) for report in reports)
                ours = _with_log_likelihood(seconds, -np.log(reports[0]["check"]))
            lines.append([f"{form}, {table}", ours, _with_log_likelihood(**theirs)])
    title = f"mclust {stored['mclust']}, R {stored['R']}: ms (mean log-likelihood), K = {K}"
    return Table(title, ["", "coterie", "mclust, stored"], lines)


def _with_log_likelihood(seconds: float, log_likelihood: float | None) -> str:
    return f"{1e3 * seconds:.3g} ({'none' if log_likelihood is None else f'{log_likelihood:.3f}'})"


def run(options: Options) -> Result:
    tables = SMALL[:1] if options.quick else (*SMALL, *LARGE)
    result = contest(
        "bench_answer:measure", "time to an answer", list(cases(tables)), COMPETITORS, options, check="cost"
    )
    return Result([*result.tables, mclust_table(result.raw)], result.ratios, result.raw)


if __name__ == "__main__":
    main("answer", run)
