"""Small demo tables: a real one that is part of the package, and synthetic ones."""

import csv
import errno
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coterie.core.writing import exists, real_path, write_whole
from coterie.datasets.generators import make_blobs, make_moons
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


# Synthetic demo tables, generated with fixed seeds.

Columns: TypeAlias = dict[str, NDArray[Any]]


class SyntheticTable(NamedTuple):
    """Columns of a table, and the true cluster of each row."""

    columns: Columns
    groups: NDArray[np.int64]


# Customers of a shop. For each group: its name in marketing, its share, and the means of its columns.
CUSTOMERS = 12_000
GROUPS = {
    "gold": (0.29, 12.0, 24.0, 58.0, 4.0, 62.0, 14.0),
    "value": (0.25, 34.0, 13.0, 31.0, 9.0, 34.0, 68.0),
    "dormant": (0.20, 260.0, 2.0, 52.0, 6.0, 46.0, 24.0),
    "fashion": (0.15, 24.0, 17.0, 92.0, 38.0, 21.0, 33.0),
    "occasional": (0.11, 95.0, 4.0, 235.0, 7.0, 55.0, 9.0),
}
CITIES = ("Lyon", "Porto", "Gdansk", "Turin", "Ghent", "Malmo", "Graz", "Bilbao", "Brno", "Cork")
SEGMENT_ACCURACY = 0.8  # share of customers in the right segment; the others are in a random one


def customers() -> SyntheticTable:
    """Customers of a shop: five groups in six numeric columns, and an id, a city and an imprecise segment."""
    rng = np.random.default_rng(20)
    shares, *means = np.array(list(GROUPS.values())).T
    y = rng.choice(len(shares), CUSTOMERS, p=shares / shares.sum())
    recency, orders, basket, returns, tenure, discount = (mean[y] for mean in means)
    segments = np.where(rng.random(CUSTOMERS) < SEGMENT_ACCURACY, y, rng.integers(len(shares), size=CUSTOMERS))
    columns = {
        "customer_id": rng.permutation(CUSTOMERS) + 100_001,
        "city": rng.choice(CITIES, CUSTOMERS, p=np.arange(len(CITIES), 0, -1) / 55),
        "segment": np.array(list(GROUPS))[segments],
        "recency_days": rng.gamma(9.0, recency / 9.0).round().astype(np.int64),
        "orders_per_year": rng.gamma(16.0, orders / 16.0).round(1),
        "avg_basket": (basket * np.exp(rng.normal(-0.02, 0.2, CUSTOMERS))).round(2),
        "returns_pct": (100 * _share(returns, 60.0, rng)).round(1),
        "tenure_months": rng.gamma(12.0, tenure / 12.0).round().astype(np.int64),
        "discount_pct": (100 * _share(discount, 50.0, rng)).round(1),
    }
    return SyntheticTable(columns, y)


def blobs() -> SyntheticTable:
    """Six round clusters, in float32."""
    X, y = make_blobs(10_000, 8, centers=6, cluster_std=1.5, random_state=21, dtype=np.float32)
    return SyntheticTable({f"x{j}": X[:, j] for j in range(X.shape[1])}, y)


def moons() -> SyntheticTable:
    """Two interleaving half circles, which cannot be described by centers."""
    X, y = make_moons(1_000, noise=0.06, random_state=22)
    columns = {"x": X[:, 0].round(4), "y": X[:, 1].round(4), "moon": np.array(["upper", "lower"])[y]}
    return SyntheticTable(columns, y)


SERIES, SHORTEST, LONGEST = 180, 48, 64
SHAPES = ("plateau", "rise", "fall")


def series() -> SyntheticTable:
    """Cylinder, bell and funnel: series with an event of random start, duration and height, and one of three shapes.

    Each row is a series. Series have different lengths: missing values at the end of a row are not part of it.

    References
    ----------
    N. Saito (1994), *Local feature extraction and its applications using a library of bases*, Yale.
    """
    rng = np.random.default_rng(23)
    y = rng.permutation(np.arange(SERIES) % len(SHAPES))
    rows = np.full((SERIES, LONGEST), np.nan)
    for row, shape in zip(rows, y.tolist(), strict=True):
        length = int(rng.integers(SHORTEST, LONGEST + 1))
        row[:length] = _event(length, SHAPES[shape], rng)
    columns: Columns = {"course": np.array(SHAPES)[y]}
    return SyntheticTable(columns | {f"t{j:02}": rows[:, j] for j in range(LONGEST)}, y)


def _share(percent: NDArray[np.float64], concentration: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Beta-distributed shares with this mean; a larger `concentration` means a smaller variance."""
    return rng.beta(concentration * percent / 100, concentration * (1 - percent / 100))


def _event(length: int, shape: str, rng: np.random.Generator) -> NDArray[np.float64]:
    start = rng.uniform(0.1, 0.3) * length
    stop = start + rng.uniform(0.3, 0.6) * length
    time = np.arange(length)
    rise = (time - start) / (stop - start)
    profile = {"plateau": np.ones(length), "rise": rise, "fall": 1.0 - rise}[shape]
    height = 6.0 + rng.normal()
    is_event = (time >= start) & (time <= stop)
    return (height * profile * is_event + 0.4 * rng.standard_normal(length)).round(3)


SYNTHETIC: dict[str, Callable[[], SyntheticTable]] = {
    "customers": customers,
    "blobs": blobs,
    "moons": moons,
    "series": series,
}
