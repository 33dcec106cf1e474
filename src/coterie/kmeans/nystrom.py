"""Nyström's features: coordinates for a space that has none, from the products with a few landmark rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie.core.errors import InputError
from coterie.core.protocols import Chunk, Engine
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.kmeans.kernel_functions import Kernel, first_alike
from coterie.kmeans.lloyd import KMeansStats, Lloyd

POOL = 5  # rows for every landmark that landmarks are chosen from
ROUNDS = 16  # in which they are chosen
PART_ROWS = 2048  # rows whose products with all landmarks are held together
KEPT = 1 << 30  # bytes of features that are kept; more are made anew in every pass, with the same bits


@stored("kernel_kmeans.Features", kernel="<kernel.*>", landmarks="real m D", root="real m R")
@dataclass(frozen=True)
class Features:
    r""":math:`\Phi(x) = k(x, Z) K_{ZZ}^{-1/2}`, so that :math:`\Phi(x) \cdot \Phi(y)` is about k(x, y) [1]_.

    .. [1] Williams & Seeger (2001), Using the Nyström method to speed up kernel machines, NIPS 13.
    """

    kernel: Kernel
    landmarks: Any  # Z (m, d), as the kernel wants them
    root: np.ndarray  # (m, r)

    def of(self, X: Any) -> np.ndarray:
        """(n, r), in the type of the rows."""
        found = self.kernel.block(self.kernel.ready(X), self.landmarks) @ self.root
        if not np.isfinite(found).all():
            raise InputError("the kernel gives NaN or infinity for rows of X: scale the columns, or another kernel")
        return found.astype(X.dtype, copy=False)

    def source(self, source: Any, engine: Engine) -> Any:
        """The rows by their features: kept where that takes no more than `KEPT` bytes."""
        mapped = Mapped(replace(source, chunk_rows=PART_ROWS), self)
        n, r = mapped.shape
        if n * r * source.dtype.itemsize > KEPT:
            return mapped
        return replace(mapped.base, X=np.concatenate(engine.map(partial(_features, self), mapped.base)), columns=None)


@dataclass(frozen=True)
class Mapped:
    """A source of features, made whenever a part is read."""

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

    def room(self, fill: Any, dtype: Any) -> list[Any]:
        return self.base.room(fill, dtype)

    def join(self, pieces: list[Any]) -> Any:
        return self.base.join(pieces)


@dataclass(frozen=True)
class FeatureLloyd(Lloyd):
    """Lloyd's steps on features; a start may also be labels, and a step must gain a share `tol` of the objective."""

    labels: Any = None  # (n,) to start from
    gain: float = 0.0

    def init(self, source: Any, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        if self.labels is None:
            return super().init(source, engine, rng)
        labels = self.labels(rng) if callable(self.labels) else self.labels
        known = Mapped(replace(source.base, y=labels), source.features) if isinstance(source, Mapped) else None
        sums = engine.sum(partial(_labelled, self.n_clusters), known or replace(source, y=labels))
        return (sums.sum_x / sums.weight[:, None]).astype(source.dtype)

    def settled(
        self, before: np.ndarray, after: np.ndarray, stats: KMeansStats, history: Sequence[float], stretch: float | None
    ) -> bool:
        return bool(stats.moved == 0 or history[-2] - history[-1] <= self.gain * history[-2])


@dataclass(frozen=True)
class LabelledSums(Stats):
    weight: Any  # (k,)
    sum_x: Any  # (k, r)


def features_of(source: Any, engine: Engine, kernel: Kernel, m: int, rng: np.random.Generator) -> tuple[Features, Any]:
    """Features by `m` landmarks, and the numbers of these rows.

    A pool of rows is drawn by weight, landmarks out of it by what those before leave unexplained of each (randomly
    pivoted Cholesky [1]_, in blocks): rows unlike the others come first, and no two are alike.

    .. [1] Chen, Epperly, Tropp & Webber (2024), Randomly pivoted Cholesky, Commun. Pure Appl. Math. 78.
    """
    counts = np.concatenate(engine.map(_counts, source))
    rows = np.flatnonzero(counts > 0)
    if m < len(rows):
        rows = np.sort(drawn_by_weight(counts, POOL * m, rng))
        pool = replace(source.subset(rows), chunk_rows=len(rows))
        step = partial(_choose, kernel, m, int(rng.integers(2**63)))
        rows = rows[engine.map(step, pool)[0]]  # a step of the engine: with one BLAS thread, as all that must not vary
    else:
        rows = rows[np.unique(first_alike(source.subset(rows).X))]  # equal rows add nothing but rounding
    landmarks = replace(source.subset(rows), chunk_rows=len(rows))
    return engine.map(partial(_whitened, kernel), landmarks)[0], rows


def drawn_by_weight(counts: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Different rows, drawn in proportion to their weights; all that count where they are no more than `most`."""
    keys = rng.standard_exponential(len(counts)) / np.where(counts > 0, counts, 1)
    return np.argsort(np.where(counts > 0, keys, np.inf), kind="stable")[: min(most, np.count_nonzero(counts))]


def chosen(kernel: Kernel, X: Any, m: int, rng: np.random.Generator) -> np.ndarray:
    """At most `m` of the rows, as the kernel wants them: fewer where those explain all others.

    What products of no space leave unexplained says little: there, more are drawn blindly up to `m`.
    """
    left = np.maximum(kernel.diagonal(X), 0)
    least = np.finfo(X.dtype).eps * left.sum()
    factor, rows = np.zeros((X.shape[0], 0)), np.zeros(0, np.int64)
    while len(rows) < m and left.sum() > least:
        until = np.cumsum(left)
        size = min(m - len(rows), max(1, m // ROUNDS))
        some = np.unique(np.searchsorted(until, rng.random(size) * until[-1], side="right").clip(0, len(left) - 1))
        unexplained = kernel.block(X, X[some]) - factor @ factor[some].T
        added = unexplained @ inverse_root(unexplained[some], np.finfo(X.dtype).eps)
        factor, rows = np.hstack([factor, added]), np.append(rows, some)
        left = np.maximum(left - (added**2).sum(axis=1), 0)
        left[some] = 0
    if not kernel.definite:
        rest = np.setdiff1d(np.arange(len(left)), rows)
        rows = np.append(rows, rng.permutation(rest)[: m - len(rows)])
    elif len(rows) == 0:
        rows = np.zeros(1, np.int64)  # the products of all rows are 0: any row explains them
    rows = np.unique(rows)
    return rows[np.unique(first_alike(X[rows]))]


def inverse_root(K: np.ndarray, eps: float) -> np.ndarray:
    """R (m, r) with R Rᵀ the inverse of the symmetric K, as far as its eigenvalues are above rounding."""
    values, vectors = np.linalg.eigh((K + K.T).astype(np.float64) / 2)
    kept = values > max(eps * len(K) * values[-1], 0)
    if not kept.any():
        return np.zeros((len(K), 1))
    return vectors[:, kept] / np.sqrt(values[kept])


def _choose(kernel: Kernel, m: int, seed: int, pool: Chunk) -> np.ndarray:
    return chosen(kernel, kernel.ready(pool.X), m, np.random.default_rng(seed))


def _whitened(kernel: Kernel, landmarks: Chunk) -> Features:
    rows = kernel.ready(landmarks.X)
    K = kernel.block(rows, rows)
    if not np.isfinite(K).all():
        raise InputError("the kernel gives NaN or infinity for rows of X: scale the columns, or take another kernel")
    root = inverse_root(K, np.finfo(K.dtype).eps) * np.sqrt(kernel.factor)
    return Features(kernel, rows.copy(), root)


def _features(features: Features, chunk: Chunk) -> np.ndarray:
    return features.of(chunk.X)


def _load(features: Features, part: Any) -> Chunk:
    chunk = part()
    return chunk._replace(X=features.of(chunk.X))


def _counts(chunk: Chunk) -> np.ndarray:
    return np.ones(chunk.X.shape[0]) if chunk.w is None else chunk.w


def _labelled(k: int, chunk: Chunk) -> LabelledSums:
    w = _counts(chunk)
    X = chunk.X.astype(np.float64) * w[:, None]
    sums = [np.bincount(chunk.y, column, k) for column in X.T]
    return LabelledSums(np.bincount(chunk.y, w, k), np.stack(sums, axis=1))
