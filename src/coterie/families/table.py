"""Tables of mixed columns: which family a column gets, and its values as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.errors import InputError, ParameterError
from coterie.core.stored import stored
from coterie.families.family import Family
from coterie.families.product import Product

NUMBER = None  # in place of categories, of columns that hold numbers
LARGE_COUNT = 30.0  # the mean from which counts are all but Gaussian
LEAST_DISPERSION = 0.5  # variance / mean: that of a Poisson is 1, and half of it is out of reach of chance
FEW = 10  # different numbers that can be categories
OFTEN = 5  # times that each is there on average, if they are


@stored("frame.Columns")
@dataclass(frozen=True)
class Table:
    """The columns of a frame that a product of families was made for."""

    names: list[str]
    categories: list[Any]  # of each column the list of its values, or NUMBER
    library: str  # whose frame it was

    def encode(self, frame: Any) -> Any:
        """The frame with nothing but numbers, these columns alone; categories as their places in the list."""
        import narwhals.stable.v2 as nw

        table = _opened(frame)
        lacking = [name for name in self.names if name not in table.columns]
        if lacking:
            raise InputError(f"X lacks the column {lacking[0]!r}: it needs {', '.join(map(repr, self.names))}")
        columns = zip(self.names, self.categories, strict=True)
        coded = {name: _coded(name, table[name], known) for name, known in columns}
        return nw.from_dict(coded, backend=table.implementation).to_native()

    def decode(self, X: np.ndarray) -> Any:
        """Rows of such numbers as a frame."""
        import narwhals.stable.v2 as nw

        columns = {}
        for j, (name, known) in enumerate(zip(self.names, self.categories, strict=True)):
            columns[name] = X[:, j] if known is NUMBER else [known[int(code)] for code in X[:, j]]
        return nw.from_dict(columns, backend=self.library).to_native()


def product_of(frame: Any, families: dict[str, Any] | None = None) -> Product:
    """A family for each column: as `families` says, else by what the column holds.

    Text, categories and yes/no are Categorical. Whole numbers are Bernoulli if they are zeros and ones, Poisson if they
    vary as counts do (`looks_counted`), and else Categorical if they have few values (`few_values`). Other numbers are
    Gaussian. Columns of one family are one group. A column whose family is None is left out.
    """
    from coterie.families import Gaussian, as_family

    table = _opened(frame)
    told = dict(families or {})
    unknown = [name for name in told if name not in table.columns]
    if unknown:
        raise ParameterError(f"families names the column {unknown[0]!r}, which the frame does not have")
    names = [name for name in table.columns if told.get(name, name) is not None]
    if not names:
        raise ParameterError("families leaves no column: at least one needs a family")
    groups: dict[Any, tuple[Family, list[int]]] = {}
    categories = []
    for j, name in enumerate(names):
        choice = told[name] if name in told else _guess(name, table[name])
        family = Gaussian("diag") if isinstance(choice, str) and choice == "gaussian" else as_family(choice)
        key = type(family) if name not in told or isinstance(told[name], str) else id(told[name])
        groups.setdefault(key, (family, []))[1].append(j)
        categories.append(_values(table[name]) if _is_category(table[name]) else NUMBER)
    return Product(list(groups.values()), Table(names, categories, table.implementation.value))


def _opened(frame: Any) -> Any:
    import narwhals.stable.v2 as nw

    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(
            f"X must be a pandas, Polars or Arrow table; got {type(frame).__name__} "
            "(polars.read_parquet and its kin read files, .collect() computes a LazyFrame)"
        ) from None


def _is_category(column: Any) -> bool:
    import narwhals.stable.v2 as nw

    return column.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Object)


def _guess(name: str, column: Any) -> str:
    import narwhals.stable.v2 as nw

    if _is_category(column):
        return "categorical"
    if not column.dtype.is_numeric():
        raise InputError(
            f"column {name!r} holds {column.dtype}, for which there is no family: make numbers or categories of it, "
            "or leave it out by families={" + repr(name) + ": None}"
        )
    values = column.drop_nulls().cast(nw.Float64).to_numpy()
    values = values[~np.isnan(values)]
    # pandas turns whole numbers into floats where some are missing
    whole = column.dtype.is_integer() or (len(values) < len(column) and bool((values == np.floor(values)).all()))
    if not whole:
        return "gaussian"
    if ((values == 0) | (values == 1)).all():
        return "bernoulli"
    if looks_counted(values):
        return "poisson"
    return "categorical" if few_values(values) else "gaussian"


def taken_as_categories(column: Any) -> bool:
    """Whether `product_of` makes a Categorical of a column of a frame."""
    import narwhals.stable.v2 as nw

    own = nw.from_native(column, series_only=True)
    return _guess(own.name, own) == "categorical"


def looks_counted(values: np.ndarray) -> bool:
    """Whether whole numbers could be counts of several groups.

    A Poisson count varies by as much as its mean, and counts of groups with means of their own vary by more, never by
    less: numbers that vary by far less are grades or codes. From a mean of 30 up a Poisson is all but a Gaussian whose
    variance is its mean; a Gaussian of any variance loses nothing there, and is right for weights, too.
    """
    mean = float(values.mean())
    return bool(values.min() >= 0) and mean < LARGE_COUNT and float(values.var()) >= LEAST_DISPERSION * mean


def few_values(values: np.ndarray) -> bool:
    """Whether there are few different numbers, each many times: grades, codes, years.

    A Gaussian component would shrink to one of them, at an endless likelihood that says nothing of clusters.
    """
    return len(np.unique(values)) <= min(FEW, len(values) // OFTEN)


def _values(column: Any) -> list[Any]:
    found = [value for value in column.unique().to_list() if not _is_missing(value)]
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=str)


def _coded(name: str, column: Any, known: list[Any] | None) -> np.ndarray:
    """Numbers (n,), NaN where there is none."""
    import narwhals.stable.v2 as nw

    if known is NUMBER:
        if _is_category(column):
            found = next((value for value in column.to_list() if not _is_missing(value)), None)
            raise InputError(f"column {name!r} held numbers in the fit, and now {found!r}: convert it first")
        return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
    places = {value: float(place) for place, value in enumerate(known)}
    codes = np.empty(len(column))
    for i, value in enumerate(column.to_list()):
        if value in places:
            codes[i] = places[value]
        elif _is_missing(value):
            codes[i] = np.nan
        else:
            raise InputError(
                f"column {name!r} has the value {value!r}, which is none of its {len(known)} categories in the fit: "
                "drop those rows, or fit again with such rows"
            )
    return codes


def _is_missing(value: Any) -> bool:
    return value is None or value != value
