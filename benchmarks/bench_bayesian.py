"""Variational Gaussian mixtures: ten iterations from the same responsibilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, quietly, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result, shape

CASES: list[Case] = [
    {"label": f"{shape(n, d, k)}, {form}, {dtype}", "n": n, "d": d, "k": k, "form": form, "dtype": dtype}
    for n, d, k, form, dtype in [
        (200_000, 16, 20, "full", "float64"),
        (200_000, 16, 20, "full", "float32"),
        (200_000, 16, 20, "tied", "float64"),
        (200_000, 16, 20, "diag", "float64"),
        (200_000, 16, 20, "spherical", "float64"),
    ]
]
QUICK_CASES: list[Case] = [{"label": "quick", "n": 5_000, "d": 8, "k": 6, "form": "full", "dtype": "float64"}]
ITERATIONS = 10


def coterie(X: np.ndarray, labels: np.ndarray, k: int, form: str) -> np.ndarray:
    from coterie import BayesianGaussianMixture

    model = BayesianGaussianMixture(k, covariance_type=form, init_params=labels, max_iter=ITERATIONS, tol=0.0)
    return quietly(model, X).means_


def scikit_learn(X: np.ndarray, labels: np.ndarray, k: int, form: str) -> np.ndarray:
    from sklearn.mixture import BayesianGaussianMixture

    class FromLabels(BayesianGaussianMixture):
        def _initialize_parameters(self, X: np.ndarray, random_state: Any, xp: Any = None) -> None:
            self._initialize(X, (labels[:, None] == np.arange(k)).astype(X.dtype))

    model = FromLabels(n_components=k, covariance_type=form, max_iter=ITERATIONS, tol=0.0)
    return quietly(model, X).means_


COMPETITORS = (
    Competitor("coterie", "coterie", lambda X, plan: coterie(X, *plan)),
    Competitor("scikit-learn", "sklearn", lambda X, plan: scikit_learn(X, *plan)),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    X = data.blobs(case["n"], case["d"], case["k"], data.OVERLAPPING, dtype=case["dtype"])
    start = data.random_rows(X, case["k"]).astype(np.float64)
    squares = (start**2).sum(axis=1) - 2 * X @ start.T
    plan = squares.argmin(axis=1), case["k"], case["form"]
    return timed(lambda: competitor.fit(X, plan), 2, lambda means: float(np.abs(means).sum()))


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    title = f"Variational Gaussian mixtures, {ITERATIONS} iterations"
    return contest("bench_bayesian:measure", title, cases, COMPETITORS, options, rounds=2, check="size of the means")


if __name__ == "__main__":
    main("bayesian", run)
