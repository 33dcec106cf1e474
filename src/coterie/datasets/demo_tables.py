"""Small demo tables: a real one that is part of the package, and synthetic ones."""

import csv
import errno
import io
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.writing import exists, real_path, write_whole
from coterie.datasets.synthetic_tables import SYNTHETIC
from coterie.errors import ParameterError

PENGUINS_LICENCE = (
    "CC0 1.0. Gorman, Williams and Fraser (2014), doi:10.1371/journal.pone.0090081; "
    "tidied by Horst, Hill and Gorman in the palmerpenguins package."
)
SYNTHETIC_LICENCE = "CC0 1.0. Synthetic, generated with a fixed seed."
DEMOS = MappingProxyType(
    {
        "penguins": "344 penguins of three species: bills, flippers, weights, with missing values; a real table",
        "customers": "12,000 customers of a shop: five groups in six numeric columns; also an id, a city and a segment",
        "blobs": "10,000 rows of eight columns in six round clusters, as Parquet",
        "moons": "1,000 rows on two half circles, which K-means cannot separate",
        "series": "180 time series of up to 64 values with one of three shapes, as Parquet; for -a kmeans-dtw",
    }
)
AS_PARQUET = ("blobs", "series")
SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True)
class DemoTable:
    """A demo table, column by column.

    Attributes
    ----------
    name : str
        Name of the table.
    columns : tuple of str
        Column names, in the order of the file.
    data : dict of ndarray
        Columns by name. Missing numbers are NaN, missing text is empty.
    licence : str
        Licence and origin of the table.
    """

    name: str
    columns: tuple[str, ...]
    data: dict[str, NDArray[Any]]
    licence: str

    def __len__(self) -> int:
        return len(self.data[self.columns[0]])

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.data[column]


def load_demo(name: str) -> DemoTable:
    """Load a demo table.

    Parameters
    ----------
    name : str
        One of ``DEMOS``; ``"penguins"`` has 344 rows, with missing values.

    Returns
    -------
    DemoTable

    Examples
    --------
    >>> from coterie.datasets import load_demo
    >>> penguins = load_demo("penguins")
    >>> len(penguins), penguins.columns[:3]
    (344, ('species', 'island', 'bill_length_mm'))
    >>> float(penguins["bill_length_mm"][0])
    39.1
    """
    _check(name)
    if name in SYNTHETIC:
        columns = SYNTHETIC[name]().columns
        return DemoTable(name, tuple(columns), columns, SYNTHETIC_LICENCE)
    header, *rows = csv.reader(_bundled(name).decode().splitlines())
    fields = zip(*rows, strict=True)
    data = {column: _typed(values) for column, values in zip(header, fields, strict=True)}
    return DemoTable(name, tuple(header), data, PENGUINS_LICENCE)


def demo_file(name: str) -> Path:
    """Return the default file name of a demo table.

    Parameters
    ----------
    name : str
        One of ``DEMOS``.

    Returns
    -------
    Path

    Examples
    --------
    >>> from coterie.datasets import demo_file
    >>> str(demo_file("blobs"))
    'blobs.parquet'
    """
    _check(name)
    return Path(f"{name}{'.parquet' if name in AS_PARQUET else '.csv'}")


def write_demo(name: str, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a demo table to a file.

    If writing fails, no incomplete file is left at `path`.

    Parameters
    ----------
    name : str
        One of ``DEMOS``.
    path : path-like
        File to write, ``.csv`` or ``.parquet``; Parquet requires Polars.
    overwrite : bool, default=False
        Overwrite an existing file.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    FileExistsError
        If `path` exists and `overwrite` is False.

    Examples
    --------
    >>> from coterie.datasets import write_demo
    >>> path = write_demo("moons", "moons.csv")  # doctest: +SKIP
    """
    _check(name)
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise ParameterError(f'cannot write "{target}": the file name must end in {" or ".join(SUFFIXES)}.')
    if target.exists() and not overwrite:
        raise exists(target)
    if not real_path(target).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target))
    content = _as_parquet(load_demo(name)) if suffix == ".parquet" else _as_csv(name)
    write_whole(target, content, overwrite)
    return target


def _check(name: str) -> None:
    if name not in DEMOS:
        close = get_close_matches(name.lower(), DEMOS, n=1, cutoff=0.7)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise ParameterError(f'no demo table "{name}".{hint} There are: {", ".join(DEMOS)}.')


def _bundled(name: str) -> bytes:
    return (resources.files("coterie.datasets") / "tables" / f"{name}.csv").read_bytes()


def _as_csv(name: str) -> bytes:
    if name not in SYNTHETIC:
        return _bundled(name)
    table, text = load_demo(name), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    columns = [["" if value != value else value for value in table[column].tolist()] for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def _as_parquet(table: DemoTable) -> bytes:
    import polars as pl

    file = io.BytesIO()
    frame = pl.DataFrame({column: table[column] for column in table.columns}).fill_nan(None)
    frame.with_columns(pl.col(pl.String).replace("", None)).write_parquet(file)
    return file.getvalue()


def _typed(values: Sequence[str]) -> NDArray[Any]:
    """Integers where every field is one, else floats where every field is a number or empty, else text."""
    try:
        return np.array([int(value) for value in values])
    except ValueError:
        pass
    try:
        return np.array([float(value) if value else np.nan for value in values])
    except ValueError:
        return np.array(values)
