"""Nyström approximation: coordinates in the feature space of a kernel, from kernel values with landmark rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from coterie.core.protocols import Chunk, Engine
from coterie.core.stats import WeightedSums
from coterie.core.stored import stored
from coterie.kmeans.kernel_functions import Kernel, check_kernel_values, first_equal_rows
from coterie.kmeans.kernel_seeding import draw, draw_distinct
from coterie.kmeans.lloyd import Lloyd

POOL = 5  # candidate rows per landmark
ROUNDS = 16  # rounds in which landmarks are chosen
PART_ROWS = 2048  # rows whose kernel values with all landmarks are in memory at the same time
STORED = 1 << 30  # maximum number of bytes of stored features; more are recomputed identically in every pass


@stored("kernel_kmeans.Features", kernel="<kernel.*>", landmarks="real m D", root="real m R")
@dataclass(frozen=True)
class Features:
    r""":math:`\Phi(x) = k(x, Z) K_{ZZ}^{-1/2}`, so that :math:`\Phi(x) \cdot \Phi(y)` is about k(x, y)."""

    kernel: Kernel
    landmarks: Any  # Z (m, d), prepared by the kernel
    root: np.ndarray  # (m, r)

    def of(self, X: Any) -> np.ndarray:
        """Features (n, r), in the dtype of the rows."""
        features = self.kernel.block(self.kernel.prepare(X), self.landmarks) @ self.root
        return check_kernel_values(features).astype(X.dtype, copy=False)

    def source(self, source: Any, engine: Engine) -> Any:
        """Source of the features, stored if they take at most `STORED` bytes."""
        mapped = FeatureSource(replace(source, chunk_rows=PART_ROWS), self)
        n, r = mapped.shape
        if n * r * source.dtype.itemsize > STORED:
            return mapped
        return replace(mapped.base, X=np.concatenate(engine.map(partial(_features, self), mapped.base)), columns=None)


@dataclass(frozen=True)
class FeatureSource:
    """Source of features that are computed whenever a part is read."""

    base: Any
    features: Features

    @property
    def shape(self) -> tuple[int, int]:
        return self.base.shape[0], self.features.root.shape[1]

    @property
    def dtype(self) -> Any:
        return self.base.dtype

    @property
    def engine(self) -> str:
        return self.base.engine

    def parts(self) -> Sequence[Any]:
        return [partial(_load, self.features, part) for part in self.base.parts()]

    def pick(self, rows: Any) -> Chunk:
        chunk = self.base.pick(rows)
        return chunk._replace(X=self.features.of(chunk.X))

    gather = pick

    def allocate(self, fill: Any, dtype: Any) -> list[Any]:
        return self.base.allocate(fill, dtype)

    def join(self, pieces: list[Any]) -> Any:
        return self.base.join(pieces)


@dataclass(frozen=True)
class FeatureLloyd(Lloyd):
    """Lloyd's algorithm on features, which can start from labels and stops if the objective hardly decreases."""

    labels: Any = None  # (n,) initial labels, or a function that returns them
    gain: float = 0.0  # relative decrease of the objective

    def init(self, source: Any, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        if self.labels is None:
            return super().init(source, engine, rng)
        labels = self.labels(rng) if callable(self.labels) else self.labels
        labelled: Any = (
            FeatureSource(replace(source.base, y=labels), source.features)
            if isinstance(source, FeatureSource)
            else replace(source, y=labels)
        )
        sums = engine.sum(partial(_sums_by_label, self.n_clusters), labelled)
        return (sums.sum_x / sums.weight[:, None]).astype(source.dtype)

    def has_converged(self, before: np.ndarray, after: np.ndarray, stats: Any, history: Any, *rest: Any) -> bool:
        return bool(stats.moved == 0 or history[-2] - history[-1] <= self.gain * history[-2])


def nystrom_features(
    source: Any, engine: Engine, kernel: Kernel, m: int, rng: np.random.Generator
) -> tuple[Features, Any]:
    """Features from `m` landmarks, and the indices of the landmark rows.

    A pool of rows is sampled by weight. Landmarks are sampled from it by their residual after the previous landmarks
    (randomly pivoted Cholesky [1]_, in blocks). Rows unlike the others come first, and no two landmarks are equal.

    .. [1] Chen, Epperly, Tropp & Webber (2024), Randomly pivoted Cholesky, Commun. Pure Appl. Math. 78.
    """
    counts = np.concatenate(engine.map(attrgetter("weights"), source))
    rows = np.flatnonzero(counts > 0)
    if m < len(rows):
        rows = np.sort(draw_distinct(counts, rng, POOL * m))
        pool = replace(source.subset(rows), chunk_rows=len(rows))
        step = partial(_choose_landmarks, kernel, m, int(rng.integers(2**63)))
        rows = rows[engine.map(step, pool)[0]]  # runs in the engine with one BLAS thread, so that the result is fixed
    else:
        rows = rows[np.unique(first_equal_rows(source.subset(rows).X))]  # duplicates would add only rounding
    landmarks = replace(source.subset(rows), chunk_rows=len(rows))
    return engine.map(partial(_whitened, kernel), landmarks)[0], rows


def _choose_landmarks(kernel: Kernel, m: int, seed: int, pool: Chunk) -> np.ndarray:
    """At most `m` of the rows; fewer if these explain all others, unless the kernel may be indefinite."""
    X, rng = kernel.prepare(pool.X), np.random.default_rng(seed)
    residual = np.maximum(kernel.diagonal(X), 0)
    tolerance = np.finfo(X.dtype).eps * residual.sum()
    factor, rows = np.zeros((X.shape[0], 0)), np.zeros(0, np.int64)
    while len(rows) < m and residual.sum() > tolerance:
        new_rows = np.unique(draw(residual, rng, min(m - len(rows), max(1, m // ROUNDS))))
        residual_block = kernel.block(X, X[new_rows]) - factor @ factor[new_rows].T
        added = residual_block @ inverse_root(residual_block[new_rows], np.finfo(X.dtype).eps)
        factor, rows = np.hstack([factor, added]), np.append(rows, new_rows)
        residual = np.maximum(residual - (added**2).sum(axis=1), 0)
        residual[new_rows] = 0
    if not kernel.is_definite:
        others = np.setdiff1d(np.arange(len(residual)), rows)
        rows = np.append(rows, rng.permutation(others)[: m - len(rows)])
    elif len(rows) == 0:
        rows = np.zeros(1, np.int64)  # all kernel values are 0: any row explains them
    rows = np.unique(rows)
    return rows[np.unique(first_equal_rows(X[rows]))]


def inverse_root(K: np.ndarray, eps: float) -> np.ndarray:
    """R (m, r) with R Rᵀ the inverse of the symmetric K, restricted to eigenvalues above rounding."""
    values, vectors = np.linalg.eigh((K + K.T).astype(np.float64) / 2)
    selected = values > max(eps * len(K) * values[-1], 0)
    if not selected.any():
        return np.zeros((len(K), 1))
    return vectors[:, selected] / np.sqrt(values[selected])


def _whitened(kernel: Kernel, landmarks: Chunk) -> Features:
    rows = kernel.prepare(landmarks.X)
    K = check_kernel_values(kernel.block(rows, rows))
    root = inverse_root(K, np.finfo(K.dtype).eps) * np.sqrt(kernel.factor)
    return Features(kernel, rows.copy(), root)


def _features(features: Features, chunk: Chunk) -> np.ndarray:
    return features.of(chunk.X)


def _load(features: Features, part: Any) -> Chunk:
    chunk = part()
    return chunk._replace(X=features.of(chunk.X))


def _sums_by_label(k: int, chunk: Chunk) -> WeightedSums:
    X = chunk.X.astype(np.float64) * chunk.weights[:, None]
    sums = [np.bincount(chunk.y, column, k) for column in X.T]
    return WeightedSums(np.bincount(chunk.y, chunk.weights, k), np.stack(sums, axis=1))
