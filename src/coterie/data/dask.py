"""Rows of a Dask array or DataFrame; each block of rows is one part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np

from coterie.core.protocols import Chunk, Engine
from coterie.data.frames import check_columns, common_dtype
from coterie.data.memory import ArraySource, as_row_values, as_weights, part_count
from coterie.errors import InputError


@dataclass(frozen=True)
class DaskSource(ArraySource):
    """Rows of a Dask array."""

    X: Any  # (n, d), each block has whole rows, at least one
    w: Any  # (n,) with the same blocks, or None
    y: Any = None  # (n,) or (n, k) with the same blocks, or None
    columns: list[str] | None = None
    sizes: tuple[int, ...] | None = None  # rows of the user's blocks, 0 for blocks that X omits; None: those of X

    engine = "dask"

    def parts(self) -> Sequence[Any]:
        blocks = self.X.to_delayed().ravel()
        weights, labels = (
            [None] * len(blocks) if values is None else values.to_delayed().ravel() for values in (self.w, self.y)
        )
        chunk = dask.delayed(_chunk, pure=True)
        return [chunk(X, w, i, y) for i, (X, w, y) in enumerate(zip(blocks, weights, labels, strict=True))]

    def pick(self, rows: Any) -> Chunk:
        X, w, y = dask.compute(self.X[rows], *self._row_values(rows))
        return _chunk(X, w, 0, y)

    def subset(self, rows: Any) -> DaskSource:
        X = self.X[rows]
        w, y = (None if v is None else v.rechunk((X.chunks[0], *v.chunks[1:])) for v in self._row_values(rows))
        X, w, y = _persist(*(_without_empty_blocks(values, X.chunks[0]) for values in (X, w, y)))
        return DaskSource(X, w, y, self.columns)

    def map_rows(self, function: Callable[[Any], Any], engine: Engine) -> DaskSource:
        """Lazy, block by block; on a cluster, the workers store a copy of all rows."""
        X = self.X.map_blocks(function, dtype=self.dtype, meta=self.X._meta)
        return replace(self, X=_persist(X)[0])

    def allocate(self, fill: Any, dtype: Any) -> list[Any]:
        return [None] * self.X.numblocks[0]

    def join(self, pieces: list[Any]) -> Any:
        """A lazy Dask array (n,) or (n, k) with the blocks of X."""
        meta = pieces[0].compute()
        shapes = [(n, *meta.shape[1:]) for n in self.X.chunks[0]]
        blocks = [da.from_delayed(piece, shape, meta.dtype) for piece, shape in zip(pieces, shapes, strict=True)]
        whole = da.concatenate(blocks)
        return whole if self.sizes is None else whole.rechunk({0: self.sizes})


def dask_source(X: Any, sample_weight: Any = None, y: Any = None) -> DaskSource:
    """`X` in blocks of whole rows; on a cluster, the workers store the blocks."""
    X, columns = _as_array(X)
    if X.ndim != 2 or np.isnan(X.shape[0]):
        raise InputError(
            f"X has shape {X.shape}: it must be a Dask array with two known dimensions. "
            "X.compute_chunk_sizes() computes unknown ones"
        )
    if X.dtype != np.float32:
        X = X.astype(np.float64)
    X = X.rechunk({1: -1})
    n = X.shape[0]
    if n == 0:
        raise InputError(f"X has no rows: its shape is {X.shape}, but at least one row is required")
    w = None if sample_weight is None else _like_rows(as_weights(np.asarray(sample_weight), n), X)
    y = None if y is None else _like_rows(as_row_values(y, n), X)
    sizes = X.chunks[0]
    X, w, y = _persist(*(_without_empty_blocks(values, sizes) for values in (X, w, y)))
    return DaskSource(X, w, y, columns, sizes if 0 in sizes else None)


def _without_empty_blocks(values: Any, sizes: tuple[int, ...]) -> Any:
    """Remove blocks without rows, which filters can cause: they would change the numbers of parts, which are seeds."""
    if values is None or 0 not in sizes:
        return values
    return values.blocks[np.flatnonzero(sizes).tolist()]


def _as_array(X: Any) -> tuple[Any, list[str] | None]:
    """The array, and the names of its columns if `X` is a data frame, of which the rows are then counted."""
    if isinstance(X, da.Array):
        return X, None
    if not hasattr(X, "to_dask_array"):
        raise InputError(f"X is a Dask {type(X).__name__}, which is not supported: pass a Dask array or DataFrame")
    check_columns(X._meta)
    return X.astype(common_dtype(X._meta)).to_dask_array(lengths=True), [str(name) for name in X.columns]


def in_blocks(X: np.ndarray[Any, Any]) -> Any:
    """Rows in memory as a Dask array with the parts of `MemorySource`, so that a fit gives the same bits.

    On a cluster, the workers store its blocks as long as the array exists.
    """
    n, d = X.shape
    count = part_count(n, d, X.itemsize)
    blocks = [X[start:stop] for start, stop in pairwise(n * i // count for i in range(count + 1))]
    client = _client()
    if client is None:
        return da.from_array(X, chunks=(tuple(map(len, blocks)), (d,)))
    futures = client.scatter(blocks)
    return da.concatenate(
        [da.from_delayed(future, (len(block), d), X.dtype) for future, block in zip(futures, blocks, strict=True)]
    )


def _persist(*values: Any) -> Any:
    """On a cluster, compute the values and store them in the memory of the workers."""
    return values if _client() is None else dask.persist(*values)


def _like_rows(values: Any, X: Any) -> Any:
    return da.from_array(values, chunks=(X.chunks[0], *values.shape[1:]))


def _chunk(X: Any, w: Any, part: int, y: Any) -> Chunk:
    return Chunk(np.ascontiguousarray(X), w, part, y)


def _client() -> Any:
    """Client of the cluster; None without a cluster."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None
