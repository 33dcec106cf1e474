"""Rows of a Dask array; one part is one block of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np

from coterie.core.errors import InputError
from coterie.core.protocols import Chunk
from coterie.data.memory import as_weights


@dataclass(frozen=True)
class DaskSource:
    X: Any  # (n, d), every block holds whole rows
    w: Any  # (n,) with the same blocks, or None

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.X.shape
        return n, d

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    @property
    def engine(self) -> str:
        return "dask"

    def parts(self) -> Sequence[Any]:
        blocks = self.X.to_delayed().ravel()
        weights = [None] * len(blocks) if self.w is None else self.w.to_delayed().ravel()
        chunk = dask.delayed(_chunk, pure=True)
        return [chunk(X, w, i) for i, (X, w) in enumerate(zip(blocks, weights, strict=True))]

    def pick(self, rows: Any) -> Chunk:
        X, w = dask.compute(self.X[rows], None if self.w is None else self.w[rows])
        return Chunk(np.ascontiguousarray(X), w, 0)

    def room(self, fill: Any, dtype: Any) -> list[Any]:
        return [None] * self.X.numblocks[0]

    def join(self, pieces: list[Any]) -> Any:
        """Lazy rows: a (n,) or (n, k) Dask array whose blocks are those of X."""
        meta = pieces[0].compute()
        shapes = [(n, *meta.shape[1:]) for n in self.X.chunks[0]]
        blocks = [da.from_delayed(piece, shape, meta.dtype) for piece, shape in zip(pieces, shapes, strict=True)]
        return da.concatenate(blocks)


def dask_source(X: Any, sample_weight: Any = None) -> DaskSource:
    """`X` in blocks of whole rows; on a cluster its blocks stay in the workers' memory."""
    if not isinstance(X, da.Array):
        raise InputError(
            f"X is a Dask {type(X).__name__}; pass a Dask array (for a frame: X.to_dask_array(lengths=True))"
        )
    if X.ndim != 2 or np.isnan(X.shape[0]):
        raise InputError(
            f"X must be a Dask array of two known dimensions; its shape is {X.shape} "
            "(X.compute_chunk_sizes() finds them)"
        )
    if X.dtype != np.float32:
        X = X.astype(np.float64)
    X = X.rechunk({1: -1})
    w = sample_weight
    if w is not None:
        w = da.from_array(as_weights(np.asarray(w), X.shape[0]), chunks=(X.chunks[0],))
    if _on_cluster():
        X, w = dask.persist(X, w)
    return DaskSource(X, w)


def _chunk(X: Any, w: Any, part: int) -> Chunk:
    return Chunk(np.ascontiguousarray(X), w, part)


def _on_cluster() -> bool:
    try:
        from distributed import get_client

        get_client()
    except (ImportError, ValueError):
        return False
    return True
