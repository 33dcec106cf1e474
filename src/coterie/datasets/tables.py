"""Small real tables that come with the package, each with a licence that lets anyone use it."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.errors import ParameterError

LICENCES = MappingProxyType(
    {
        "penguins": "CC0 1.0. Gorman, Williams and Fraser (2014), doi:10.1371/journal.pone.0090081; "
        "tidied by Horst, Hill and Gorman in the palmerpenguins package.",
    }
)
DEMOS = tuple(LICENCES)


@dataclass(frozen=True)
class DemoTable:
    """A bundled table, column by column.

    Attributes
    ----------
    name : str
    columns : tuple of str
        Column names, in the order of the file.
    data : dict of ndarray
        Columns by name. A missing number is NaN, a missing text is empty.
    licence : str
        Under which terms the table may be used, and where it comes from.
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
    """Load a bundled table.

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
    header, *rows = csv.reader(_file(name).read_text(encoding="utf-8").splitlines())
    fields = zip(*rows, strict=True)
    data = {column: _typed(values) for column, values in zip(header, fields, strict=True)}
    return DemoTable(name, tuple(header), data, LICENCES[name])


def write_demo(name: str, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Copy a bundled table, whole and unchanged, to `path`.

    Parameters
    ----------
    name : str
        One of ``DEMOS``.
    path : path-like
        File to write.
    overwrite : bool
        Whether to replace a file that is there already.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    FileExistsError
        If `path` exists and `overwrite` is false.
    """
    content = _file(name).read_bytes()
    target = Path(path)
    with target.open("wb" if overwrite else "xb") as file:
        file.write(content)
    return target


def _file(name: str) -> Traversable:
    if name not in LICENCES:
        raise ParameterError(f'no bundled table "{name}". There is: {", ".join(DEMOS)}.')
    return resources.files("coterie.datasets") / "tables" / f"{name}.csv"


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
