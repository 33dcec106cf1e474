"""Rows of files that are read part by part, in every pass, where the parts are processed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.arguments import one_of
from coterie.core.formatting import count, first_names, format_bytes
from coterie.core.in_memory import FILES, FILES_REMEDY
from coterie.core.protocols import Chunk, Engine
from coterie.data import frames, temporary_arrays
from coterie.data.locations import Location, find_files
from coterie.data.memory import MemorySource, as_row_values, as_weights, joined, part_bounds
from coterie.data.tables.numeric_rows import NamedRows
from coterie.errors import InputError, ParameterError

if TYPE_CHECKING:
    from coterie.data.tables.table_file import FileRows, TableFile

CACHES = ("auto", "memory", "disk", "none")
COPIES = 3  # of a part that is read: the columns as they are decoded, the same columns as numbers, and the rows


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

    pieces: tuple[FileRows, ...]
    columns: tuple[str, ...]
    dtype: np.dtype[Any]
    part: int
    w: np.ndarray[Any, Any] | None = None
    y: np.ndarray[Any, Any] | None = None
    functions: tuple[Callable[[Any], Any], ...] = ()  # applied to the rows, in this order

    def __call__(self) -> Chunk:
        X = np.empty((sum(piece.stop - piece.start for piece in self.pieces), len(self.columns)), self.dtype)
        stop = 0
        for piece in self.pieces:
            frame = piece.read(self.columns)
            start, stop = stop, stop + frame.height
            frames.copy_columns(frame, X[start:stop])
        for function in self.functions:
            X = function(X)
        return Chunk(X, self.w, self.part, self.y)


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
    functions: tuple[Callable[[Any], Any], ...] = ()

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
        return self.named(_read_all(self))

    def named(self, X: np.ndarray[Any, Any]) -> NamedRows:
        """Rows with the names of the columns."""
        rows = X.view(NamedRows)
        rows.columns = self.columns
        return rows

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """An error: a method that needs an array needs all rows in memory."""
        raise InputError(f"X {FILES}, but this method needs all rows in memory: {FILES_REMEDY}")

    # the source

    def parts(self) -> Sequence[FilePart]:
        return [self._part(i, start, stop) for i, (start, stop) in enumerate(pairwise(self._bounds()))]

    def _bounds(self) -> list[int]:
        return part_bounds(*self.shape, self.dtype.itemsize)

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
        return FilePart(tuple(pieces), tuple(self.columns), self.dtype, part, w, y, self.functions)

    def pick(self, rows: Any) -> Chunk:
        index = np.arange(self.shape[0])[rows] if isinstance(rows, slice) else np.asarray(rows)
        w, y = (None if values is None else values[index] for values in (self.w, self.y))
        return Chunk(self._take(index), w, 0, y)

    def _take(self, index: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Rows by index, from the parts that contain them."""
        order = np.argsort(index, kind="stable")
        bounds = self._bounds()
        cuts = np.searchsorted(index[order], bounds)
        X = temporary_arrays.empty((len(index), self.shape[1]), self.dtype)

        def fill(targets: np.ndarray[Any, Any]) -> None:
            wanted = index[targets]
            start = int(wanted[0])
            X[targets] = self._part(0, start, int(wanted[-1]) + 1)().X[wanted - start]

        calls = [(order[low:high],) for low, high in pairwise(cuts) if low < high]
        machine.run_in_threads(fill, calls, None)
        return X

    def subset(self, rows: Any) -> MemorySource:
        chunk = self.pick(rows)
        return MemorySource(chunk.X, chunk.w, self.columns, y=chunk.y)

    def map_rows(self, function: Callable[[Any], Any], engine: Engine) -> FileSource:
        """The same files; the function is applied to every part that is read."""
        return replace(self, functions=(*self.functions, function))

    def allocate(self, fill: Any, dtype: Any) -> list[Any]:
        """Values of all rows, on disk if memory is short."""
        whole = temporary_arrays.empty((self.shape[0],), dtype)
        whole[:] = fill
        return [whole[start:stop] for start, stop in pairwise(self._bounds())]

    def join(self, pieces: list[Any]) -> np.ndarray[Any, Any]:
        return joined(pieces)


def scan_files(
    paths: Any,
    *,
    columns: Sequence[str] | None = None,
    cache: str = "auto",
    storage_options: Mapping[str, Any] | None = None,
) -> FileSource:
    """Open files as one table, without reading their rows; the result can be passed as `X`.

    Parameters
    ----------
    paths : path, address or list of them
        Files, folders, and patterns such as ``"year/*.parquet"``. Addresses (``s3://``, ``https://``, ``gs://``) need
        ``pip install "coterie[cloud]"``, and files in Parquet, Arrow, NDJSON or plain delimited text.
    columns : list of str or None, default=None
        The columns to use, in this order. None uses all columns, in the order of the first file.
    cache : {'auto', 'memory', 'disk', 'none'}, default='auto'
        Where the rows are between two passes. 'none' reads the files again in every pass. 'memory' and 'disk' read them
        once; 'disk' needs a temporary file of 8 bytes per value (4 for float32). 'auto' is 'memory' if the rows take
        less than a quarter of the free memory, otherwise 'disk'. The results are the same.
    storage_options : dict or None, default=None
        Options of the file system of addresses, such as keys: those of `fsspec.filesystem`.

    Returns
    -------
    FileSource
        It shows the number of rows, and the memory and disk space that reading them needs (`requirements`).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> import polars as pl
    >>> from coterie import KMeans
    >>> from coterie.data import scan_files
    >>> rng = np.random.default_rng(0)
    >>> with TemporaryDirectory() as folder:
    ...     for month in range(3):
    ...         rows = rng.normal(size=(100, 2)) + 5 * month
    ...         pl.DataFrame(rows, schema=["a", "b"]).write_parquet(Path(folder, f"{month}.parquet"))
    ...     source = scan_files(folder, cache="none")
    ...     print(source.shape, source.columns)
    ...     labels = KMeans(3, random_state=0).fit(source).labels_
    (300, 2) ['a', 'b']
    >>> labels.shape
    (300,)
    """
    one_of("cache", cache, CACHES)
    try:
        from coterie.data.tables.file_formats import READABLE
        from coterie.data.tables.table_file import open_file
    except ModuleNotFoundError as error:
        raise ParameterError("reading files needs one more package. Run: pip install polars") from error
    locations = find_files(paths, READABLE, storage_options)
    open_one = partial(open_file, in_parts=cache == "none")
    files = machine.run_in_threads(open_one, [(location,) for location in locations], None)
    if not any(file.n_rows for file in files):
        raise InputError(f"{_description(locations)} no rows.")
    first = next(file for file in files if file.n_rows)  # columns of vectors have no width in files without rows
    names = list(first.schema) if columns is None else [str(name) for name in columns]
    source = FileSource(tuple(files), names, np.dtype(_common_dtype(files, names, columns is None)))
    if cache == "auto":
        cache = "memory" if temporary_arrays.is_small(source.shape, source.dtype) else "disk"
    return replace(source, cache=cache)


def file_source(source: FileSource, sample_weight: Any, y: Any) -> FileSource:
    """A source that is read in every pass, with weights and known labels."""
    n = source.shape[0]
    w, y = as_weights(sample_weight, n), as_row_values(y, n)
    return replace(source, w=source.w if w is None else w, y=source.y if y is None else y)


def _description(locations: Sequence[Location]) -> str:
    names = first_names([location.url for location in locations], 3)
    return f"{names} {'has' if len(locations) == 1 else 'have'}"


def _common_dtype(files: Sequence[TableFile], columns: list[str], use_all: bool) -> type[np.floating[Any]]:
    """dtype of the rows: float32 if all columns of all files are. Each file must have the columns, as numbers."""
    import polars as pl

    dtypes = set()
    files = [file for file in files if file.n_rows]
    first = files[0]
    for file in files:
        _check_names(file, first, columns, use_all)
        schema = pl.DataFrame(schema={name: file.schema[name] for name in columns})
        try:
            dtypes.add(frames.common_dtype(schema, "Choose others: scan_files(..., columns=[...])"))
        except InputError as error:
            raise InputError(f'"{file.location.url}": {error}') from None
    return np.float32 if dtypes == {np.float32} else np.float64


def _check_names(file: TableFile, first: TableFile, columns: list[str], use_all: bool) -> None:
    """Raise an error if a file does not have these columns, or, with `use_all`, if it has others."""
    url, other = file.location.url, f', unlike "{first.location.url}"' if use_all and file is not first else ""
    missing = [repr(name) for name in columns if name not in file.schema]
    if missing:
        names = first_names(list(file.schema))
        raise InputError(f'"{url}" has no column {first_names(missing)}{other}: its columns are {names}')
    extra = [repr(name) for name in file.schema if name not in columns] if use_all else []
    if extra:
        raise InputError(
            f'"{url}" has the column {first_names(extra)}{other}: choose columns by scan_files(..., columns=[...])'
        )


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
    start = 0
    for file in source.files:
        stop = start + file.n_rows
        for batch in file.batches(source.columns):
            if start + batch.height > stop:
                break
            frames.copy_columns(batch, X[start : start + batch.height])
            start += batch.height
        if start != stop:
            raise InputError(f'"{file.location.url}" changed while it was read: call again')
        file.location.check(file.version)
    return X
