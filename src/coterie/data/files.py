"""Rows of files that are read part by part, in every pass, where the parts are processed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.formatting import count, format_bytes
from coterie.core.in_memory import FILES, FILES_REMEDY
from coterie.core.protocols import Chunk, Engine
from coterie.data import frames, temporary_arrays
from coterie.data.memory import MemorySource, as_row_values, as_weights, joined, part_bounds
from coterie.data.tables.numeric_rows import NamedRows, named
from coterie.errors import InputError, ParameterError

if TYPE_CHECKING:
    from coterie.data.tables.table_file import FileRows, TableFile

COPIES = 6  # memory of a part that is read, in multiples of its rows: columns as decoded, as numbers, rows, and buffers


class Requirements(NamedTuple):
    """Bytes that reading needs, beside what the method needs."""

    memory: int
    disk: int

    def __str__(self) -> str:
        disk = f" and {format_bytes(self.disk)} on disk in {temporary_arrays.folder()}" if self.disk else ""
        return f"{format_bytes(self.memory)} of memory{disk}"


@dataclass(frozen=True)
class FilePart:
    """A part of the rows of files; calling it reads these rows. Picklable."""

    source: FileSource  # without files and values of rows: what is read, and what is done to it
    pieces: tuple[FileRows, ...]
    part: int
    first: int  # number of the first row
    w: np.ndarray[Any, Any] | None
    y: np.ndarray[Any, Any] | None

    @property
    def rows(self) -> int:
        return sum(piece.stop - piece.start for piece in self.pieces)

    def __call__(self) -> Chunk:
        columns, weight, power = self.source.columns, self.source.weight, self.source.weight_power
        X = np.empty((self.rows, len(columns)), self.source.dtype)
        w: Any = self.w if weight is None else np.empty(len(X))
        names, stop = (*columns, *([] if weight is None else [weight])), 0
        for piece in self.pieces:
            frame = piece.read(names)
            start, stop = stop, stop + frame.height
            frames.copy_columns(frame[:, : len(columns)], X[start:stop])
            if weight is not None:
                frames.copy_columns(frame[:, len(columns) :], w[start:stop, None])
                _check_weights(w[start:stop], weight, piece)
        for function in self.source.functions:
            X = function(X)
        return Chunk(X, np.ldexp(w, power) if power else w, self.part, self.y, self.first)


def _check_weights(w: np.ndarray[Any, Any], name: str, piece: FileRows) -> None:
    is_invalid = ~(np.isfinite(w) & (w >= 0))
    if is_invalid.any():
        row = piece.start + int(is_invalid.argmax())
        raise InputError(
            f'"{piece.location.url}" has the weight {w[is_invalid][0]} in column {name!r} of row {row}: '
            "weights must be finite and not negative"
        )


@dataclass(frozen=True)
class FileSource:
    """Rows of one or more files, one below the other, in the parts of the same rows in memory.

    Create it by `scan_files`, and pass it as `X`. With ``cache="none"`` every pass reads the files again: a part is
    read by the thread, or on the worker, that processes it. With another `cache`, the rows are read once, and stay in
    memory or in a temporary file as long as this object exists.
    """

    files: tuple[TableFile, ...]
    columns: list[str]
    dtype: np.dtype[Any]
    cache: str = "none"  # "memory", "disk" or "none"
    w: np.ndarray[Any, Any] | None = None
    y: np.ndarray[Any, Any] | None = None
    functions: tuple[Callable[[Any], Any], ...] = ()  # applied to the rows of each part, in this order
    chunk_rows: int | None = None  # rows of a part, if the caller decides
    weight: str | None = None  # column of the weights, which is read with the rows; `w` is then None
    weight_power: int = 0  # weights of this column are multiplied by this power of two

    engine = "threads"

    @cached_property
    def shape(self) -> tuple[int, int]:
        return int(self._starts[-1]), len(self.columns)

    @cached_property
    def _starts(self) -> np.ndarray[Any, Any]:
        """Number of the first row of every file, then the number of rows."""
        return np.cumsum([0, *(file.n_rows for file in self.files)])

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        n, d = self.shape
        return n * d * self.dtype.itemsize

    @property
    def requirements(self) -> Requirements:
        """Memory and disk space that reading the rows needs, before they are read."""
        largest = max(stop - start for start, stop in pairwise(self._bounds()))
        if self.cache == "none":
            largest = max(largest, *(file.largest_group for file in self.files))
        parts = machine.thread_count(None) * COPIES * largest * self.shape[1] * self.dtype.itemsize
        matrix = {"memory": (self.nbytes, 0), "disk": (0, self.nbytes), "none": (0, 0)}[self.cache]
        return Requirements(parts + matrix[0], matrix[1])

    def __repr__(self) -> str:
        n, d = self.shape
        return (
            f"FileSource({count(len(self.files), 'file')}, {count(n)} x {count(d, 'column')}, {self.dtype}, "
            f"cache={self.cache!r}: {self.requirements})"
        )

    def cached_rows(self) -> NamedRows:
        """All rows, read by the first call: in memory, or in a temporary file with ``cache="disk"``."""
        if "_rows" in vars(self):
            for file in self.files:
                file.location.check(file.version)
        return self._rows

    @cached_property
    def _rows(self) -> NamedRows:
        return named(_read_all(self), self.columns)

    def __getitem__(self, rows: Any) -> Any:
        """An error: this is not an array. `pick` reads some rows."""
        return self.__array__()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """An error: a method that needs an array needs all rows in memory."""
        raise InputError(f"X {FILES}, but this method needs all rows in memory: {FILES_REMEDY}")

    # the source

    def parts(self) -> Sequence[FilePart]:
        return [self._part(i, start, stop) for i, (start, stop) in enumerate(pairwise(self._bounds()))]

    def _bounds(self) -> list[int]:
        return part_bounds(*self.shape, self.dtype.itemsize, self.chunk_rows)

    def _part(self, part: int, start: int, stop: int) -> FilePart:
        pieces = []
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        for file, begin in zip(self.files[first:], self._starts[first:], strict=False):
            if begin >= stop:
                break
            low, high = max(start - int(begin), 0), min(stop - int(begin), file.n_rows)
            if low < high:
                pieces.append(file.rows(low, high))
        w, y = (None if values is None else values[start:stop] for values in (self.w, self.y))
        return FilePart(self._without_rows, tuple(pieces), part, start, w, y)

    @cached_property
    def _without_rows(self) -> FileSource:
        return replace(self, files=(), w=None, y=None)

    def pick(self, rows: Any) -> Chunk:
        index = np.arange(self.shape[0])[rows] if isinstance(rows, slice) else np.asarray(rows)
        w, y = (None if values is None else values[index] for values in (self.w, self.y))
        X, from_files = self._take(index)
        return Chunk(X, w if from_files is None else from_files, 0, y)

    gather = pick

    def _take(self, index: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
        """Rows by index, and their weights if these are in the files, from the parts that contain them."""
        order = np.argsort(index, kind="stable")
        bounds = self._bounds()
        cuts = np.searchsorted(index[order], bounds)
        X = temporary_arrays.empty((len(index), self.shape[1]), self.dtype)
        w = None if self.weight is None else np.empty(len(index))

        def fill(targets: np.ndarray[Any, Any]) -> None:
            wanted = index[targets]
            start = int(wanted[0])
            chunk = self._part(0, start, int(wanted[-1]) + 1)()
            X[targets] = chunk.X[wanted - start]
            if w is not None:
                w[targets] = chunk.weights[wanted - start]

        calls = [(order[low:high],) for low, high in pairwise(cuts) if low < high]
        machine.run_in_threads(fill, calls, None)
        return X, w

    def subset(self, rows: Any) -> MemorySource:
        chunk = self.pick(rows)
        return MemorySource(chunk.X, chunk.w, self.columns, y=chunk.y)

    def map_rows(self, function: Callable[[Any], Any], engine: Engine) -> FileSource:
        """The same files; the function is applied to every part that is read."""
        return replace(self, functions=(*self.functions, function))

    def allocate(self, fill: Any, dtype: Any) -> list[Any]:
        """Values of all rows, on disk if memory is short; every pass writes them, so rather in memory than the rows."""
        whole = temporary_arrays.empty((self.shape[0],), dtype, share=2)
        whole[:] = fill
        return [whole[start:stop] for start, stop in pairwise(self._bounds())]

    def join(self, pieces: list[Any]) -> np.ndarray[Any, Any]:
        return joined(pieces)


def file_source(source: FileSource, sample_weight: Any, y: Any) -> FileSource:
    """A source that is read in every pass, with weights and known labels."""
    if sample_weight is not None and source.weight is not None:
        raise ParameterError(
            f"sample_weight is given, but X has its weights in column {source.weight!r}: use one of them"
        )
    n = source.shape[0]
    w, y = as_weights(sample_weight, n), as_row_values(y, n)
    return replace(source, w=source.w if w is None else w, y=source.y if y is None else y)


def _read_all(source: FileSource) -> np.ndarray[Any, Any]:
    """All rows in one array, in memory or on disk; too little of either is an error before the files are read."""
    if source.cache == "memory":
        machine.check_memory(source.nbytes, "the rows of X", "use cache='disk' or cache='none'")
        X = np.empty(source.shape, source.dtype)
    else:
        try:
            X = temporary_arrays.mapped_zeros(source.shape, source.dtype)
        except InputError as error:
            raise InputError(f"{error}; or read the files in every pass: scan_files(..., cache='none')") from error
    for file, (start, stop) in zip(source.files, pairwise(source._starts), strict=True):
        if not frames.copy_batches(file.batches(source.columns), X[start:stop]):
            raise InputError(f'"{file.location.url}" changed while it was read: call again')
        file.location.check(file.version)
    return X
