"""Kernel K-means: whole fits from the same random partition; and Nyström's features where n² is too much."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result, shape


def case(n: int, d: int, k: int, dtype: str) -> Case:
    return {"label": f"{shape(n, d, k)}, {dtype}", "n": n, "d": d, "k": k, "dtype": dtype}


CASES = [
    case(2_000, 10, 10, "float64"),
    case(5_000, 10, 10, "float64"),
    case(5_000, 10, 10, "float32"),
    case(5_000, 100, 20, "float64"),
]
LARGE = [case(50_000, 10, 10, "float64"), case(200_000, 20, 20, "float32")]
QUICK_CASES, QUICK_LARGE = [case(1_000, 10, 5, "float64")], [case(5_000, 10, 5, "float64")]
LANDMARKS = 300
SEED = 0


def coterie(X: np.ndarray, k: int, gamma: float) -> np.ndarray:
    from coterie import KernelKMeans

    start = np.random.RandomState(SEED).randint(k, size=len(X))  # as tslearn draws it
    return KernelKMeans(k, gamma=gamma, approximation="exact", init=start).fit(X).labels_


def tslearn(X: np.ndarray, k: int, gamma: float) -> np.ndarray:
    from tslearn.clustering import KernelKMeans

    options = {"kernel_params": {"gamma": gamma}, "max_iter": 300, "random_state": SEED, "n_jobs": -1}
    return KernelKMeans(k, kernel="rbf", **options).fit(X[:, :, None]).labels_


def coterie_features(X: np.ndarray, k: int, gamma: float) -> np.ndarray:
    from coterie import KernelKMeans

    options = {"approximation": "nystrom", "n_landmarks": LANDMARKS, "random_state": SEED}
    return KernelKMeans(k, gamma=gamma, **options).fit(X).labels_


def sklearn_features(X: np.ndarray, k: int, gamma: float) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.kernel_approximation import Nystroem

    features = Nystroem(gamma=gamma, n_components=LANDMARKS, random_state=SEED).fit_transform(X)
    return KMeans(k, n_init=1, random_state=SEED).fit(features).labels_


EXACT = (
    Competitor("coterie", "coterie", lambda X, plan: coterie(X, *plan)),
    Competitor("tslearn", "tslearn", lambda X, plan: tslearn(X, *plan)),
)
FEATURES = (
    Competitor("coterie:features", "coterie", lambda X, plan: coterie_features(X, *plan)),
    Competitor("scikit-learn", "sklearn", lambda X, plan: sklearn_features(X, *plan)),
)
COMPETITORS = EXACT + FEATURES


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    X = data.blobs(case["n"], case["d"], case["k"], data.OVERLAPPING, dtype=case["dtype"])
    gamma = 1 / float(X.var(axis=0, dtype=np.float64).sum())
    return timed(lambda: competitor.fit(X, (case["k"], gamma)), 2, lambda labels: objective(X, labels, gamma))


def objective(X: np.ndarray, labels: np.ndarray, gamma: float, most: int = 4_000) -> float:
    """Mean squared distance in feature space of rows to the mean of their cluster; of many rows, on a sample."""
    rows = np.random.default_rng(SEED).permutation(len(X))[:most]
    X, labels = X[rows].astype(np.float64), labels[rows]
    squares = (X**2).sum(axis=1)
    K = np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))
    within = sum(K[np.ix_(labels == j, labels == j)].sum() / np.sum(labels == j) for j in np.unique(labels))
    return float(1 - within / len(X))


def run(options: Options) -> Result:
    exact, features = (
        contest("bench_kernel:measure", title, quick if options.quick else cases, competitors, options, check="J")
        for title, quick, cases, competitors in [
            ("Kernel K-means (rbf) from one random partition", QUICK_CASES, CASES, EXACT),
            (f"Nyström, {LANDMARKS} landmarks, then K-means", QUICK_LARGE, LARGE, FEATURES),
        ]
    )
    return Result([*exact.tables, *features.tables], [*exact.ratios, *features.ratios], exact.raw | features.raw)


if __name__ == "__main__":
    main("kernel", run)
