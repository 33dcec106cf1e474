"""Open many files as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie import machine
from coterie.core.arguments import one_of
from coterie.core.formatting import first_names
from coterie.core.packages import required
from coterie.data import frames, temporary_arrays
from coterie.data.files import FileSource
from coterie.data.locations import Location, find_files
from coterie.errors import InputError, ParameterError

if TYPE_CHECKING:
    from coterie.data.tables.table_file import TableFile

CACHES = ("auto", "memory", "disk", "none")


def scan_files(
    paths: Any,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
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
    weight : str or None, default=None
        The column with the weights of the rows, which is not one of `columns`. It is read with the rows in every pass,
        and takes the place of `sample_weight`. `cache` must then be 'none', or 'auto', which is 'none'.
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
    if weight is not None:
        if cache not in ("auto", "none"):
            raise ParameterError(f"weight={weight!r} needs cache='none', which reads it in every pass; got {cache!r}")
        cache = "none"
    with required("reading files needs one more package. Run: pip install polars"):
        from coterie.data.tables.table_file import open_file
    locations = find_files(paths, storage_options)
    open_one = partial(open_file, in_parts=cache == "none")
    files = machine.run_in_threads(open_one, [(location,) for location in locations], None)
    if not any(file.n_rows for file in files):
        raise InputError(f"{_description(locations)} no rows.")
    first = next(file for file in files if file.n_rows)  # columns of vectors have no width in files without rows
    names = list(first.schema) if columns is None else [str(name) for name in columns]
    if weight is not None:
        names = _without_weight(names, weight, columns is None)
    source = FileSource(
        tuple(files), names, np.dtype(_common_dtype(files, names, weight, columns is None)), weight=weight
    )
    if cache == "auto":
        cache = "memory" if temporary_arrays.is_small(source.shape, source.dtype) else "disk"
    return replace(source, cache=cache)


def _description(locations: Sequence[Location]) -> str:
    names = first_names([location.url for location in locations], 3)
    return f"{names} {'has' if len(locations) == 1 else 'have'}"


def _without_weight(names: list[str], weight: str, use_all: bool) -> list[str]:
    """The columns of the rows, which the column of the weights is not one of."""
    others = [name for name in names if name != weight]
    if not use_all and len(others) < len(names):
        raise ParameterError(f"weight={weight!r} is also one of columns: a column has either weights or values")
    if not others:
        raise ParameterError(f"weight={weight!r} is the only column: the rows have no values")
    return others


def _common_dtype(
    files: Sequence[TableFile], columns: list[str], weight: str | None, use_all: bool
) -> type[np.floating[Any]]:
    """dtype of the rows: float32 if all columns of all files are. Each file must have the columns, as numbers."""
    import polars as pl

    dtypes = set()
    files = [file for file in files if file.n_rows]
    first = files[0]
    for file in files:
        weights = [] if weight is None else [weight]
        _check_names(file, first, [*columns, *weights], use_all)
        schema = pl.DataFrame(schema={name: file.schema[name] for name in columns})
        try:
            frames.common_dtype(pl.DataFrame(schema={name: file.schema[name] for name in weights}))
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
