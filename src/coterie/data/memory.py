"""Rows that are already in memory, or memory-mapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from coterie.core.arguments import as_floats
from coterie.core.protocols import Chunk, Engine, Part
from coterie.data import scratch
from coterie.data.frames import frame_to_array, is_frame
from coterie.data.tables.numeric_rows import NamedRows
from coterie.errors import InputError

SMALL_PART = 1 << 20  # bytes below which handing a part to a thread costs more than the part
LARGE_PART = 1 << 23  # bytes beyond which a part gains nothing by being larger
PART_ROWS = 256  # rows a part has at least
BLOCK_ROWS = 1 << 16  # rows that are converted together


@dataclass(frozen=True)
class MemorySource:
    """Rows of an array, cut into equal parts by the shape of the array alone."""

    X: Any  # (n, d) C-ordered, or CSR
    w: np.ndarray[Any, Any] | None = None
    columns: list[str] | None = None
    chunk_rows: int | None = None  # rows of a part, where the caller must decide
    y: np.ndarray[Any, Any] | None = None  # (n,) or (n, k)

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
        return "threads"

    def parts(self) -> Sequence[Part]:
        return [partial(self._load, i, *bounds) for i, bounds in enumerate(pairwise(self._bounds()))]

    def _bounds(self) -> list[int]:
        n, d = self.shape
        if self.chunk_rows is not None:
            return [*range(0, n, self.chunk_rows), n]
        count = part_count(n, d, self.dtype.itemsize)
        return [n * i // count for i in range(count + 1)]

    def _load(self, part: int, start: int, stop: int) -> Chunk:
        w, y = (None if values is None else values[start:stop] for values in (self.w, self.y))
        return Chunk(_rows(self.X, start, stop), w, part, y)

    def pick(self, rows: Any) -> Chunk:
        w, y = (None if values is None else values[rows] for values in (self.w, self.y))
        return Chunk(self.X[rows], w, 0, y)

    def subset(self, rows: Any) -> MemorySource:
        w, y = (None if values is None else values[rows] for values in (self.w, self.y))
        return MemorySource(_taken(self.X, np.asarray(rows)), w, self.columns, y=y)

    def changed(self, function: Callable[[Any], Any], engine: Engine) -> MemorySource:
        """One copy of the values, on disk if memory is short; where values of sparse rows stand is shared."""
        cuts = self._bounds()
        if sparse.issparse(self.X):
            values, cuts = np.empty(len(self.X.data), self.dtype), self.X.indptr[cuts]
            X: Any = sparse.csr_array((values, self.X.indices, self.X.indptr), shape=self.shape)
        else:
            X = values = scratch.space(self.shape, self.dtype)
        engine.map(partial(_put, function), self, [values[start:stop] for start, stop in pairwise(cuts)])
        return replace(self, X=X)

    def room(self, fill: Any, dtype: Any) -> list[Any]:
        whole = np.full(self.shape[0], fill, dtype)
        return [whole[start:stop] for start, stop in pairwise(self._bounds())]

    def join(self, pieces: list[Any]) -> np.ndarray[Any, Any]:
        whole = pieces[0].base
        if isinstance(whole, np.ndarray) and _is_cut_into(whole, pieces):
            return whole  # they came from `room`: no copy, and no second array beside them
        return np.concatenate(pieces)


def _put(function: Callable[[Any], Any], chunk: Chunk, values: np.ndarray[Any, Any]) -> None:
    changed = function(chunk.X)
    values[:] = changed.data if sparse.issparse(changed) else changed


def _is_cut_into(whole: np.ndarray[Any, Any], pieces: list[np.ndarray[Any, Any]]) -> bool:
    """Whether the pieces, one after the other, are all there is of `whole`."""
    starts = accumulate(map(len, pieces), initial=0)
    return sum(map(len, pieces)) == len(whole) and all(
        piece.__array_interface__ == whole[start : start + len(piece)].__array_interface__
        for piece, start in zip(pieces, starts, strict=False)
    )


def part_count(n: int, d: int, itemsize: int) -> int:
    """How many parts n rows make: up to 8 small ones, then a multiple of 8, so that threads end together."""
    size = n * d * itemsize
    wanted = -(-size // SMALL_PART) if size < 8 * SMALL_PART else -(-size // (8 * LARGE_PART)) * 8
    return max(1, min(wanted, n // PART_ROWS))


def memory_source(X: Any, sample_weight: Any = None, y: Any = None) -> MemorySource:
    if X is None:
        raise InputError("X is None: give a table of rows and columns")
    columns = X.columns if isinstance(X, NamedRows) else None
    if is_frame(X):
        X, columns = frame_to_array(X)
    if not sparse.issparse(X):
        X = _numbers(X)
    if X.dtype.kind == "c":
        raise InputError("Complex data not supported: pass real and imaginary parts as separate columns of X")
    try:
        X = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", ensure_all_finite=False, input_name="X"
        )
    except ValueError as error:  # of scikit-learn, whose words users know: no rows, no columns, not two dimensions
        raise InputError(str(error)) from None
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()  # sorts too
    return MemorySource(X, as_weights(sample_weight, X.shape[0]), columns, y=as_many(y, X.shape[0]))


def _numbers(X: Any) -> Any:
    """`X` as an array of numbers; if they must be others, or in another order, made block by block."""
    X = np.asarray(X)
    if X.dtype.kind in "US":
        raise InputError(f"X holds text (such as {X.ravel()[:1].tolist()}): convert it to numbers, or encode it, first")
    if X.dtype.kind == "O":
        try:
            return X.astype(np.float64)
        except ValueError as error:
            raise InputError(f"X holds values that are not numbers: {error}. Convert or encode them first") from None
        except TypeError as error:
            raise TypeError(f"X holds values that are not numbers: {error}") from None
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return X
    wanted = np.float32 if X.dtype.newbyteorder("=") == np.float32 else np.float64
    return X if X.dtype == wanted and X.dtype.isnative and X.flags.c_contiguous else _converted(X, wanted)


def _taken(X: Any, which: np.ndarray[Any, Any]) -> Any:
    """Some rows, given by number."""
    if sparse.issparse(X):
        return X[which]
    rows = scratch.space((len(which), X.shape[1]), X.dtype)
    for start in range(0, len(which), BLOCK_ROWS):
        rows[start : start + BLOCK_ROWS] = X[which[start : start + BLOCK_ROWS]]
    return rows


def _converted(X: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """A copy, on disk if memory is short, as X may be."""
    rows = scratch.space(X.shape, dtype)
    for start in range(0, len(X), BLOCK_ROWS):
        rows[start : start + BLOCK_ROWS] = X[start : start + BLOCK_ROWS]
    return rows


def as_weights(sample_weight: Any, n: int) -> np.ndarray[Any, Any] | None:
    """Weights as float64 (n,), or None where none were given."""
    if sample_weight is None:
        return None
    try:
        w = as_floats(sample_weight)
    except (TypeError, ValueError):
        raise InputError("sample_weight must be numbers, one for each row of X") from None
    w = np.full(n, float(w)) if w.ndim == 0 else np.ascontiguousarray(w)
    if w.shape != (n,):
        raise InputError(f"sample_weight must be one number for each of the {n} rows of X; its shape is {w.shape}")
    bad = ~np.isfinite(w) | (w < 0)
    if bad.any():
        raise InputError(
            "sample_weight must not be negative, NaN or infinite; "
            f"{int(bad.sum())} are, the first at row {int(bad.argmax())}"
        )
    if not w.any():
        raise InputError("sample_weight is zero for every row: at least one row must count")
    return w


def as_many(y: Any, n: int) -> np.ndarray[Any, Any] | None:
    """What is known of the rows' clusters, as an array with an entry for each of the n rows."""
    if y is None:
        return None
    known: np.ndarray[Any, Any] = np.asarray(y)
    if known.ndim == 0 or len(known) != n:
        raise InputError(f"known_labels must have an entry for each of the {n} rows of X; its shape is {known.shape}")
    return known


def _rows(X: Any, start: int, stop: int) -> Any:
    """Rows `start` to `stop`, without copying their values."""
    if not sparse.issparse(X):
        return X[start:stop]
    first, last = X.indptr[start], X.indptr[stop]
    some = sparse.csr_array(
        (stop - start, X.shape[1]), dtype=X.dtype
    )  # with the arrays given it would look through them
    some.data, some.indices, some.indptr = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
    return some
