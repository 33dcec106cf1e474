"""Data and starts, made once by the parent and read by every worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

OVERLAPPING, SEPARATED = 3.0, 20.0  # typical distance of two blob centres, in standard deviations


def blobs(n: int, d: int, k: int, separation: float, *, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """k spherical Gaussians of unit variance and equal weight."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, d), dtype)
    rng.standard_normal(out=X, dtype=X.dtype.type)
    centers = rng.standard_normal((k, d)) * separation / np.sqrt(2 * d)
    X += centers.astype(dtype)[rng.integers(k, size=n)]
    return X


TAILS = ("normal", "t(3)", "Cauchy", "5 rows x 10^4", "a column x 10^3", "10 groups 100 apart")


def tails(kind: str, n: int, d: int, *, seed: int = 0) -> np.ndarray:
    """Rows of one of `TAILS`, float32."""
    rng = np.random.default_rng(seed)
    if kind == "t(3)":
        return rng.standard_t(3, (n, d)).astype(np.float32)
    if kind == "Cauchy":
        return rng.standard_cauchy((n, d)).astype(np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32)
    if kind == "5 rows x 10^4":
        X[rng.choice(n, 5, replace=False)] *= 1e4
    elif kind == "a column x 10^3":
        X[:, 0] *= 1e3
    elif kind == "10 groups 100 apart":
        X += (100 * rng.standard_normal((10, d))).astype(np.float32)[rng.integers(10, size=n)]
    return X


def random_rows(X: np.ndarray, k: int, seed: int = 0) -> np.ndarray:
    return X[np.random.default_rng(seed).choice(len(X), k, replace=False)]


def spread_rows(X: np.ndarray, k: int, seed: int = 0, sample: int = 20_000) -> np.ndarray:
    """Plain k-means++ on a sample of rows: a realistic start that no competitor has made."""
    rng = np.random.default_rng(seed)
    rows = X[rng.choice(len(X), min(sample, len(X)), replace=False)]
    chosen = [int(rng.integers(len(rows)))]
    nearest = np.full(len(rows), np.inf)
    while len(chosen) < k:
        nearest = np.minimum(nearest, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1, dtype=np.float64))
        chosen.append(int(rng.choice(len(rows), p=nearest / nearest.sum())))
    return rows[chosen]


def inertia(X: np.ndarray, centers: np.ndarray, chunk: int = 8192) -> float:
    """Sum of squared distances to the nearest centre, in float64: one judge for all competitors."""
    shift = centers.mean(axis=0, dtype=np.float64)
    C = centers.astype(np.float64) - shift
    half_norms = 0.5 * (C**2).sum(axis=1)
    total = 0.0
    for i in range(0, len(X), chunk):
        rows = X[i : i + chunk].astype(np.float64) - shift
        total += (rows**2).sum() + 2.0 * (half_norms - rows @ C.T).min(axis=1).sum()
    return float(total)


def mixture_start(X: np.ndarray, k: int, form: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Equal weights, spread rows as means, and precisions (by form) of components as wide as all rows together."""
    rows = X[:: max(1, len(X) // 20_000)].astype(np.float64)
    precision = np.linalg.inv(np.cov(rows.T))
    variances = rows.var(axis=0)
    precisions = {
        "full": np.repeat(precision[None], k, axis=0),
        "tied": precision,
        "diag": np.repeat(1 / variances[None], k, axis=0),
        "spherical": np.full(k, 1 / variances.mean()),
    }[form]
    start = (np.full(k, 1 / k), spread_rows(X, k, seed), precisions)
    return tuple(part.astype(X.dtype) for part in start)


def mean_log_likelihood(
    X: np.ndarray, form: str, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, chunk: int = 8192
) -> float:
    """Of a Gaussian mixture, a row, in float64: one judge for all competitors."""
    k, d = means.shape
    found = np.asarray(covariances, np.float64)
    if form in ("diag", "spherical"):
        found = found.reshape(k, -1, 1) * np.eye(d)
    lower = np.linalg.cholesky(np.broadcast_to(found, (k, d, d)))
    whiten = np.linalg.inv(lower)
    offset = np.log(weights) - 0.5 * d * np.log(2 * np.pi) - np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    total = 0.0
    for i in range(0, len(X), chunk):
        rows = X[i : i + chunk].astype(np.float64)
        joint = np.stack(
            [o - 0.5 * (((rows - m) @ u.T) ** 2).sum(axis=1) for o, m, u in zip(offset, means, whiten, strict=True)]
        )
        total += np.logaddexp.reduce(joint, axis=0).sum()
    return float(total / len(X))


@contextmanager
def shared(**arrays: np.ndarray) -> Iterator[str]:
    """A folder that holds the arrays for as long as the block runs."""
    with TemporaryDirectory(prefix="benchmarks-") as folder:
        for name, array in arrays.items():
            np.save(Path(folder, f"{name}.npy"), array)
        yield folder


def load(folder: str, name: str) -> np.ndarray:
    array: np.ndarray = np.load(Path(folder, f"{name}.npy"))
    return array
