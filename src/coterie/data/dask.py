"""Rows of a Dask array or DataFrame; each block of rows is one part."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.core import flatten

from coterie.core.frames import check_columns
from coterie.core.placement import choose_workers, current_client
from coterie.core.protocols import Chunk, Engine
from coterie.data.frames import common_dtype
from coterie.data.memory import ArraySource, as_row_values, as_weights, part_bounds
from coterie.errors import InputError


@dataclass(frozen=True)
class DaskSource(ArraySource):
    """Rows of a Dask array. On a cluster, each block is computed once, by the worker that stores it.

    The workers store the blocks as long as the source exists.
    """

    X: Any  # (n, d), each block has whole rows, at least one
    w: Any  # (n,) with the same blocks, or None
    y: Any = None  # (n,) or (n, k) with the same blocks, or None
    columns: list[str] | None = None
    sizes: tuple[int, ...] | None = None  # rows of the user's blocks, 0 for blocks that X omits; None: those of X
    near: list[Any] | None = None  # futures of chunks of which these rows are computed

    engine = "dask"

    def parts(self) -> Sequence[Any]:
        """The chunk of each part, as a delayed value."""
        X, w, y = (None if array is None else array.to_delayed().ravel() for array in (self.X, self.w, self.y))
        return _chunk_tasks(X, w, y, _first_rows(self.X.chunks[0]))

    def chunk_futures(self, client: Any, threads: dict[str, int]) -> list[Any]:
        """The chunks, computed once by the workers of a cluster with these numbers of threads, and stored there.

        They are computed where the rows are, if that is balanced.
        """
        futures: list[Any] | None = vars(self).get("_futures")
        if futures is None:
            keys = list(flatten(self.X.__dask_keys__())) if self.near is None else [f.key for f in self.near]
            places = client.sync(client.scheduler.who_has, keys=keys)
            current = [next(iter(places.get(key) or ()), None) for key in keys]
            parts = self.parts()
            futures = _computed_on(client, parts, choose_workers(self.X.chunks[0], threads, current))
            vars(self)["_futures"] = futures
            vars(self)["_restricted"] = _task_keys(parts)
        return futures

    def release(self) -> None:
        """Free the memory of the chunks on the workers."""
        vars(self).pop("_futures", None)

    def restricted_tasks(self) -> set[Any]:
        """Keys of the tasks that were sent to certain workers since the last call."""
        keys: set[Any] = vars(self).pop("_restricted", set())
        return keys

    def _stored(self) -> tuple[Any, Any, Any, list[Any] | None]:
        """X, w and y, and the futures of their chunks. On a cluster they are stored first: no block is read twice."""
        client = current_client()
        threads = {} if client is None else client.nthreads()
        if not threads:
            return self.X, self.w, self.y, None
        futures = self.chunk_futures(client, threads)
        arrays = {name: getattr(self, name) for name in ("X", "w", "y")}
        X, w, y = (None if v is None else _field(futures, name, v._meta, v.chunks) for name, v in arrays.items())
        return X, w, y, futures

    def pick(self, rows: Any) -> Chunk:
        arrays = self._stored()[:3]
        X, w, y = dask.compute(*(None if values is None else values[rows] for values in arrays))
        return _chunk(X, w, 0, y)

    def subset(self, rows: Any) -> "DaskSource":
        X, w, y = self._stored()[:3]
        X, w, y = X[rows], None if w is None else w[rows], None if y is None else y[rows]
        w, y = (None if v is None else v.rechunk((X.chunks[0], *v.chunks[1:])) for v in (w, y))
        X, w, y = (_without_empty_blocks(values, X.chunks[0]) for values in (X, w, y))
        return DaskSource(X, w, y, self.columns)

    def map_rows(self, function: Callable[[Any], Any], engine: Engine) -> "DaskSource":
        """Lazy, block by block; on a cluster, the workers store a copy of all rows."""
        X, w, y, near = self._stored()
        X = X.map_blocks(function, dtype=self.dtype, meta=self.X._meta)
        return replace(self, X=X, w=w, y=y, near=near)

    def allocate(self, fill: Any, dtype: Any) -> list[Any]:
        return [None] * self.X.numblocks[0]

    def join(self, pieces: list[Any]) -> Any:
        """A lazy Dask array (n,) or (n, k) with the blocks of X."""
        meta = pieces[0][:0].compute()
        shapes = [(n, *meta.shape[1:]) for n in self.X.chunks[0]]
        blocks = [da.from_delayed(piece, shape, meta.dtype) for piece, shape in zip(pieces, shapes, strict=True)]
        whole = da.concatenate(blocks)
        return whole if self.sizes is None else whole.rechunk({0: self.sizes})


def dask_source(X: Any, sample_weight: Any = None, y: Any = None) -> DaskSource:
    """`X` in blocks of whole rows; on a cluster, the workers store the blocks when they are first needed."""
    X, columns, futures, keys = _as_array(X)
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
    w = None if sample_weight is None else _weights(sample_weight, X)
    y = None if y is None else _like_rows(y if _is_lazy(y) else as_row_values(y, n), X, "known_labels")
    sizes = X.chunks[0]
    X, w, y = (_without_empty_blocks(values, sizes) for values in (X, w, y))
    source = DaskSource(X, w, y, columns, sizes if 0 in sizes else None)
    if futures is not None and w is None and y is None and 0 not in sizes:
        vars(source)["_futures"] = futures
    vars(source)["_restricted"] = keys
    return source


def _without_empty_blocks(values: Any, sizes: tuple[int, ...]) -> Any:
    """Remove blocks without rows, which filters can cause: they would change the numbers of parts, which are seeds."""
    if values is None or 0 not in sizes:
        return values
    return values.blocks[np.flatnonzero(sizes).tolist()]


def _as_array(X: Any) -> tuple[Any, list[str] | None, list[Any] | None, set[Any]]:
    """The array, the names of its columns if `X` is a data frame, and its chunks if workers have stored them.

    The last value are the keys of the tasks of these chunks.
    """
    if isinstance(X, da.Array):
        return X, None, None, set()
    if not hasattr(X, "to_dask_array"):
        raise InputError(f"X is a Dask {type(X).__name__}, which is not supported: pass a Dask array or DataFrame")
    check_columns(X._meta)
    columns, frame = [str(name) for name in X.columns], X.astype(common_dtype(X._meta))
    client = current_client()
    if client is None or not client.nthreads():
        return frame.to_dask_array(lengths=True), columns, None, set()
    # The number of rows of a partition is known when it is read, so the workers store it at once.
    array = frame.to_dask_array()
    blocks = array.to_delayed().ravel()
    parts = _chunk_tasks(blocks, None, None, [0] * len(blocks))
    places = choose_workers([1] * len(parts), client.nthreads(), [None] * len(parts))
    futures = _computed_on(client, parts, places)
    sizes = tuple(client.gather(client.map(_n_rows, futures, pure=False)))
    futures = [
        client.submit(_with_first, future, first, workers=[place], allow_other_workers=True, pure=False)
        for future, first, place in zip(futures, _first_rows(sizes), places, strict=True)
    ]
    keys = _task_keys(parts) | {future.key for future in futures}
    return _field(futures, "X", array._meta, (sizes, (len(columns),))), columns, futures, keys


def in_blocks(X: np.ndarray[Any, Any]) -> Any:
    """Rows in memory as a Dask array with the parts of `MemorySource`, so that a fit gives the same bits.

    On a cluster, the workers store its blocks as long as the array exists.
    """
    n, d = X.shape
    blocks = [X[start:stop] for start, stop in pairwise(part_bounds(n, d, X.itemsize))]
    client = current_client()
    if client is None:
        return da.from_array(X, chunks=(tuple(map(len, blocks)), (d,)))
    futures = client.scatter(blocks)
    return da.concatenate(
        [da.from_delayed(future, (len(block), d), X.dtype) for future, block in zip(futures, blocks, strict=True)]
    )


def _chunk_tasks(X: Any, w: Any, y: Any, firsts: Sequence[int]) -> list[Any]:
    """Chunks of blocks of rows, weights and values, as delayed values; `firsts` are the numbers of their first rows."""
    chunk, nothing = dask.delayed(_chunk, pure=True), [None] * len(X)
    blocks = zip(X, nothing if w is None else w, nothing if y is None else y, firsts, strict=True)
    return [chunk(rows, weights, i, values, first) for i, (rows, weights, values, first) in enumerate(blocks)]


def _first_rows(sizes: Sequence[int]) -> list[int]:
    return [0, *accumulate(sizes)][:-1]


def _task_keys(parts: Sequence[Any]) -> set[Any]:
    """Keys of all tasks of delayed values: all blocks of an array share the graph of the array."""
    layers = {name: layer for part in parts for name, layer in part.dask.layers.items()}
    return {key for layer in layers.values() for key in layer}


def _computed_on(client: Any, parts: Sequence[Any], workers: list[str]) -> list[Any]:
    """Futures of delayed values, each computed on its worker; if that ends, on any other."""
    futures: list[Any] = [None] * len(parts)
    for worker in dict.fromkeys(workers):
        indices = [i for i, name in enumerate(workers) if name == worker]
        computed = client.compute([parts[i] for i in indices], workers=[worker], allow_other_workers=True)
        for i, future in zip(indices, computed, strict=True):
            futures[i] = future
    return futures


def _field(futures: list[Any], name: str, meta: Any, chunks: tuple[tuple[int, ...], ...]) -> Any:
    """A field of stored chunks as a Dask array with these blocks."""
    key = f"{name}-of-{uuid4().hex}"
    rest = (0,) * (len(chunks) - 1)
    graph: dict[Any, Any] = {(key, i, *rest): (getattr, future.key, name) for i, future in enumerate(futures)}
    graph.update((future.key, future) for future in futures)
    return da.Array(graph, key, chunks, meta=meta)


def _is_lazy(values: Any) -> bool:
    return hasattr(values, "__dask_graph__")


def _weights(sample_weight: Any, X: Any) -> Any:
    """Weights as a Dask array with the blocks of X; those of a Dask array stay lazy, and are checked by the workers."""
    n = X.shape[0]
    if not _is_lazy(sample_weight):
        return _like_rows(as_weights(sample_weight, n), X, "sample_weight")
    w = _like_rows(sample_weight, X, "sample_weight").astype(np.float64)
    is_invalid = ~da.isfinite(w) | (w < 0)
    n_invalid, first, largest = dask.compute(is_invalid.sum(), is_invalid.argmax(), w.max())
    if n_invalid:
        raise InputError(
            f"sample_weight must not be negative, NaN or infinite; {int(n_invalid)} are, the first at row {int(first)}"
        )
    if not largest:
        raise InputError("sample_weight is zero for every row: at least one weight must be positive")
    return w


def _like_rows(values: Any, X: Any, name: str) -> Any:
    """Values of rows as a Dask array with the blocks of X."""
    if not _is_lazy(values):
        return da.from_array(values, chunks=(X.chunks[0], *values.shape[1:]))
    values = values.to_dask_array(lengths=True) if hasattr(values, "to_dask_array") else values
    if values.ndim == 0 or values.shape[0] != X.shape[0]:
        raise InputError(
            f"{name} must have an entry for each of the {X.shape[0]} rows of X; its shape is {values.shape}"
        )
    return values.rechunk((X.chunks[0], *values.shape[1:]))


def _n_rows(chunk: Chunk) -> int:
    return len(chunk.X)


def _chunk(X: Any, w: Any, part: int, y: Any, first: int = 0) -> Chunk:
    return Chunk(np.ascontiguousarray(X), w, part, y, first)


def _with_first(chunk: Chunk, first: int) -> Chunk:
    return chunk._replace(first=first)
