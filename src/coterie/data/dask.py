"""Rows of a Dask array or DataFrame; one part is one block of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np

from coterie.core.protocols import Chunk, Engine
from coterie.data.frames import number_type, refuse_odd_shapes
from coterie.data.memory import as_many, as_weights, part_count
from coterie.errors import InputError


@dataclass(frozen=True)
class DaskSource:
    X: Any  # (n, d), every block holds whole rows, one at least
    w: Any  # (n,) with the same blocks, or None
    y: Any = None  # (n,) or (n, k) likewise
    columns: list[str] | None = None
    sizes: tuple[int, ...] | None = None  # rows of the user's blocks, 0 where X leaves one out; None: those of X

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
        weights, known = (
            [None] * len(blocks) if values is None else values.to_delayed().ravel() for values in (self.w, self.y)
        )
        chunk = dask.delayed(_chunk, pure=True)
        return [chunk(X, w, i, y) for i, (X, w, y) in enumerate(zip(blocks, weights, known, strict=True))]

    def pick(self, rows: Any) -> Chunk:
        w, y = (None if values is None else values[rows] for values in (self.w, self.y))
        X, w, y = dask.compute(self.X[rows], w, y)
        return Chunk(np.ascontiguousarray(X), w, 0, y)

    def subset(self, rows: Any) -> DaskSource:
        w, y = (None if values is None else values[rows] for values in (self.w, self.y))
        X = self.X[rows]
        w, y = (None if v is None else v.rechunk((X.chunks[0], *v.chunks[1:])) for v in (w, y))
        X, w, y = _kept(*(_without_empty_blocks(values, X.chunks[0]) for values in (X, w, y)))
        return DaskSource(X, w, y, self.columns)

    def changed(self, function: Callable[[Any], Any], engine: Engine) -> DaskSource:
        """Block by block, whenever a block is read: only on a cluster a copy of all rows is kept, by its workers."""
        X = self.X.map_blocks(function, dtype=self.dtype, meta=self.X._meta)
        return replace(self, X=_kept(X)[0])

    def room(self, fill: Any, dtype: Any) -> list[Any]:
        return [None] * self.X.numblocks[0]

    def join(self, pieces: list[Any]) -> Any:
        """Lazy rows: a (n,) or (n, k) Dask array whose blocks are those of X."""
        meta = pieces[0].compute()
        shapes = [(n, *meta.shape[1:]) for n in self.X.chunks[0]]
        blocks = [da.from_delayed(piece, shape, meta.dtype) for piece, shape in zip(pieces, shapes, strict=True)]
        whole = da.concatenate(blocks)
        return whole if self.sizes is None else whole.rechunk({0: self.sizes})


def dask_source(X: Any, sample_weight: Any = None, y: Any = None) -> DaskSource:
    """`X` in blocks of whole rows; on a cluster its blocks stay in the workers' memory."""
    X, columns = _as_array(X)
    if X.ndim != 2 or np.isnan(X.shape[0]):
        raise InputError(
            f"X must be a Dask array of two known dimensions; its shape is {X.shape} "
            "(X.compute_chunk_sizes() finds them)"
        )
    if X.dtype != np.float32:
        X = X.astype(np.float64)
    X = X.rechunk({1: -1})
    n = X.shape[0]
    if n == 0:
        raise InputError(f"X has no rows: its shape is {X.shape}; at least one row is needed")
    w = None if sample_weight is None else _like_rows(as_weights(np.asarray(sample_weight), n), X)
    y = None if y is None else _like_rows(as_many(y, n), X)
    sizes = X.chunks[0]
    X, w, y = _kept(*(_without_empty_blocks(values, sizes) for values in (X, w, y)))
    return DaskSource(X, w, y, columns, sizes if 0 in sizes else None)


def _without_empty_blocks(values: Any, sizes: tuple[int, ...]) -> Any:
    """The values without the blocks that have no rows, which a filter leaves behind.

    The number of a part seeds what is random in it: parts without rows must not change the numbers of the others.
    """
    if values is None or 0 not in sizes:
        return values
    return values.blocks[np.flatnonzero(sizes).tolist()]


def _as_array(X: Any) -> tuple[Any, list[str] | None]:
    """The array, and the names of its columns if it is made of a frame, whose rows are counted for that."""
    if isinstance(X, da.Array):
        return X, None
    if not hasattr(X, "to_dask_array"):
        raise InputError(f"X is a Dask {type(X).__name__}; pass a Dask array, or a DataFrame")
    refuse_odd_shapes(X._meta)
    return X.astype(number_type(X._meta)).to_dask_array(lengths=True), [str(name) for name in X.columns]


def in_blocks(X: np.ndarray[Any, Any]) -> Any:
    """Rows in memory as a Dask array, cut where `MemorySource` cuts them: a fit of it gives the same bits.

    On a cluster its blocks stay in the workers' memory as long as the array is there.
    """
    n, d = X.shape
    count = part_count(n, d, X.itemsize)
    blocks = [X[start:stop] for start, stop in pairwise(n * i // count for i in range(count + 1))]
    client = _client()
    if client is None:
        return da.from_array(X, chunks=(tuple(map(len, blocks)), (d,)))
    sent = client.scatter(blocks)
    return da.concatenate(
        [da.from_delayed(it, (len(block), d), X.dtype) for it, block in zip(sent, blocks, strict=True)]
    )


def _kept(*values: Any) -> Any:
    """On a cluster, the same in the workers' memory."""
    return values if _client() is None else dask.persist(*values)


def _like_rows(values: Any, X: Any) -> Any:
    return da.from_array(values, chunks=(X.chunks[0], *values.shape[1:]))


def _chunk(X: Any, w: Any, part: int, y: Any) -> Chunk:
    return Chunk(np.ascontiguousarray(X), w, part, y)


def _client() -> Any:
    """Of the cluster that computes; None where this process does."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None
