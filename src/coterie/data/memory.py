"""Rows in memory, or memory-mapped."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from coterie.core.arguments import as_floats
from coterie.core.protocols import Chunk, Engine, Part
from coterie.data import temporary_arrays
from coterie.data.frames import frame_to_array, is_frame
from coterie.data.tables.numeric_rows import NamedRows
from coterie.errors import InputError

SMALL_PART = 1 << 20  # bytes of a part below which starting a thread takes longer than computing the part
LARGE_PART = 1 << 23  # bytes of a part above which larger parts are not faster
PART_ROWS = 256  # minimum number of rows of a part
BLOCK_ROWS = 1 << 16  # rows that are converted at once


class ArraySource:
    """Source with rows in an array `X`, and values of each row in `w` and `y`, which can be None."""

    X: Any
    w: Any
    y: Any

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.X.shape
        return n, d

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    def pick(self, rows: Any) -> Chunk:
        raise NotImplementedError

    def gather(self, rows: Any) -> Chunk:
        return self.pick(rows)

    def _row_values(self, rows: Any) -> Iterator[Any]:
        return (None if values is None else values[rows] for values in (self.w, self.y))


@dataclass(frozen=True)
class MemorySource(ArraySource):
    """Rows of an array in equal parts, which depend only on the shape of the array."""

    X: Any  # (n, d) C-ordered, or CSR
    w: np.ndarray[Any, Any] | None = None
    columns: list[str] | None = None
    chunk_rows: int | None = None  # rows of a part, if the caller decides
    y: np.ndarray[Any, Any] | None = None  # (n,) or (n, k)

    engine = "threads"

    def parts(self) -> Sequence[Part]:
        return [partial(self._load, i, *bounds) for i, bounds in enumerate(pairwise(self._bounds()))]

    def _bounds(self) -> list[int]:
        return part_bounds(*self.shape, self.dtype.itemsize, self.chunk_rows)

    def _load(self, part: int, start: int, stop: int) -> Chunk:
        w, y = self._row_values(slice(start, stop))
        return Chunk(_slice_rows(self.X, start, stop), w, part, y, start)

    def pick(self, rows: Any) -> Chunk:
        w, y = self._row_values(rows)
        return Chunk(self.X[rows], w, 0, y)

    def subset(self, rows: Any) -> "MemorySource":
        w, y = self._row_values(rows)
        return MemorySource(_take_rows(self.X, np.asarray(rows)), w, self.columns, y=y)

    def map_rows(self, function: Callable[[Any], Any], engine: Engine) -> "MemorySource":
        """One copy of the values, on disk if memory is short; sparse rows share the indices."""
        bounds = self._bounds()
        if sparse.issparse(self.X):
            values, bounds = np.empty(len(self.X.data), self.dtype), self.X.indptr[bounds]
            X: Any = sparse.csr_array((values, self.X.indices, self.X.indptr), shape=self.shape)
        else:
            X = values = temporary_arrays.empty(self.shape, self.dtype)
        engine.map(partial(_write_mapped, function), self, [values[start:stop] for start, stop in pairwise(bounds)])
        return replace(self, X=X)

    def allocate(self, fill: Any, dtype: Any) -> list[Any]:
        whole = np.full(self.shape[0], fill, dtype)
        return [whole[start:stop] for start, stop in pairwise(self._bounds())]

    def join(self, pieces: list[Any]) -> np.ndarray[Any, Any]:
        return joined(pieces)


def _write_mapped(function: Callable[[Any], Any], chunk: Chunk, values: np.ndarray[Any, Any]) -> None:
    X = function(chunk.X)
    values[:] = X.data if sparse.issparse(X) else X


def joined(pieces: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Results of parts in one array; those that `allocate` returned are not copied."""
    whole = pieces[0].base
    return whole if isinstance(whole, np.ndarray) and _are_parts_of(whole, pieces) else np.concatenate(pieces)


def _are_parts_of(whole: np.ndarray[Any, Any], pieces: list[np.ndarray[Any, Any]]) -> bool:
    """Whether the pieces are consecutive views that cover `whole`."""
    starts = accumulate(map(len, pieces), initial=0)
    return sum(map(len, pieces)) == len(whole) and all(
        piece.__array_interface__ == whole[start : start + len(piece)].__array_interface__
        for piece, start in zip(pieces, starts, strict=False)
    )


def part_bounds(n: int, d: int, itemsize: int, chunk_rows: int | None = None) -> list[int]:
    """Numbers of the first rows of the parts of n rows, then n; they depend on the shape only, or are given.

    There are up to 8 small parts, or a multiple of 8 larger ones, so that threads end at the same time.
    """
    if chunk_rows is not None:
        return [*range(0, n, chunk_rows), n]
    size = n * d * itemsize
    count = -(-size // SMALL_PART) if size < 8 * SMALL_PART else -(-size // (8 * LARGE_PART)) * 8
    count = max(1, min(count, n // PART_ROWS))
    return [n * i // count for i in range(count + 1)]


def memory_source(X: Any, sample_weight: Any = None, y: Any = None) -> MemorySource:
    """Check and convert data in memory."""
    if X is None:
        raise InputError("X is None: pass a table of rows and columns")
    columns = X.columns if isinstance(X, NamedRows) else None
    if is_frame(X):
        X, columns = frame_to_array(X)
    if not sparse.issparse(X):
        X = _as_numeric(X)
    if X.dtype.kind == "c":
        raise InputError("Complex data not supported: pass real and imaginary parts as separate columns of X")
    if sparse.issparse(X) or X.ndim != 2 or X.size == 0 or X.dtype.kind != "f":
        X = _checked(X)
    return MemorySource(X, as_weights(sample_weight, X.shape[0]), columns, y=as_row_values(y, X.shape[0]))


def _checked(X: Any) -> Any:
    """Sparse rows in canonical CSR format; `InputError` if there are no rows, no columns, or not two dimensions."""
    try:
        X = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", ensure_all_finite=False, input_name="X"
        )
    except ValueError as error:
        raise InputError(str(error)) from None
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()  # also sorts
    return X


def _as_numeric(X: Any) -> Any:
    """`X` as an array of numbers; if dtype or memory order must change, it is converted in blocks."""
    X = np.asarray(X)
    if X.dtype.kind in "US":
        raise InputError(f"X contains text, such as {X.ravel()[:1].tolist()}: convert or encode it first")
    if X.dtype.kind == "O":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            kind = InputError if isinstance(error, ValueError) else TypeError
            raise kind(f"X contains values that are not numbers: {error}. Convert or encode them first") from None
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        return X
    dtype = np.float32 if X.dtype.newbyteorder("=") == np.float32 else np.float64
    if X.dtype == dtype and X.dtype.isnative and X.flags.c_contiguous:
        return X
    converted = temporary_arrays.empty(X.shape, dtype)
    for start in range(0, len(X), BLOCK_ROWS):
        converted[start : start + BLOCK_ROWS] = X[start : start + BLOCK_ROWS]
    return converted


def _take_rows(X: Any, index: np.ndarray[Any, Any]) -> Any:
    """Rows by index, in a copy that is on disk if memory is short."""
    if sparse.issparse(X):
        return X[index]
    rows = temporary_arrays.empty((len(index), X.shape[1]), X.dtype)
    for start in range(0, len(index), BLOCK_ROWS):
        np.take(X, index[start : start + BLOCK_ROWS], axis=0, out=rows[start : start + BLOCK_ROWS])
    return rows


def as_weights(sample_weight: Any, n: int) -> np.ndarray[Any, Any] | None:
    """Weights as float64 (n,); None if `sample_weight` is None."""
    if sample_weight is None:
        return None
    try:
        w = as_floats(sample_weight)
    except (TypeError, ValueError):
        raise InputError("sample_weight must be numbers, one for each row of X") from None
    w = np.full(n, float(w)) if w.ndim == 0 else np.ascontiguousarray(w)
    if w.shape != (n,):
        raise InputError(f"sample_weight must be one number for each of the {n} rows of X; its shape is {w.shape}")
    is_invalid = ~np.isfinite(w) | (w < 0)
    if is_invalid.any():
        raise InputError(
            "sample_weight must not be negative, NaN or infinite; "
            f"{int(is_invalid.sum())} are, the first at row {int(is_invalid.argmax())}"
        )
    if not w.any():
        raise InputError("sample_weight is zero for every row: at least one weight must be positive")
    return w


def as_row_values(y: Any, n: int) -> np.ndarray[Any, Any] | None:
    """Known labels as an array with one entry for each of the n rows; None if `y` is None."""
    if y is None:
        return None
    values: np.ndarray[Any, Any] = np.asarray(y)
    if values.ndim == 0 or len(values) != n:
        raise InputError(f"known_labels must have an entry for each of the {n} rows of X; its shape is {values.shape}")
    return values


def _slice_rows(X: Any, start: int, stop: int) -> Any:
    """Rows `start` to `stop`, without copying their values."""
    if not sparse.issparse(X):
        return X[start:stop]
    first, last = X.indptr[start], X.indptr[stop]
    rows = sparse.csr_array((stop - start, X.shape[1]), dtype=X.dtype)  # with arrays, SciPy would check all indices
    rows.data, rows.indices, rows.indptr = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
    return rows
