"""Data frames with mixed columns: the default family of each column, and the encoding of its values."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.frames import is_missing, open_frame
from coterie.core.stored import stored
from coterie.errors import InputError, ParameterError
from coterie.families.family import Family
from coterie.families.product import Product

NUMBER = None  # in the list of categories, for numeric columns
LARGE_COUNT = 30.0  # mean above which a Poisson distribution is nearly Gaussian
MIN_DISPERSION = 0.5  # variance / mean; it is 1 for Poisson, and random variation does not halve it
MAX_LEVELS = 10  # maximum number of different values of a numeric column that is treated as categorical
MIN_REPEATS = 5  # minimum mean number of occurrences of these values


@stored("frame.Columns")
@dataclass(frozen=True)
class Table:
    """The columns of the data frame for which a product of families was created."""

    names: list[str]
    categories: list[Any]  # for each column the list of its values, or NUMBER
    library: str  # of the data frame

    def encode(self, frame: Any) -> Any:
        """A data frame with these columns only; categories are replaced by their positions in the list."""
        import narwhals.stable.v2 as nw

        table = open_frame(frame)
        missing = [name for name in self.names if name not in table.columns]
        if missing:
            raise InputError(f"X lacks the column {missing[0]!r}: it needs {', '.join(map(repr, self.names))}")
        columns = zip(self.names, self.categories, strict=True)
        codes = {name: _codes(name, table[name], categories) for name, categories in columns}
        return nw.from_dict(codes, backend=table.implementation).to_native()

    def decode(self, X: np.ndarray) -> Any:
        """Encoded rows as a data frame."""
        import narwhals.stable.v2 as nw

        columns = {}
        for j, (name, categories) in enumerate(zip(self.names, self.categories, strict=True)):
            if categories is not NUMBER and not np.isin(X[:, j], np.arange(len(categories))).all():
                raise InputError(
                    f"column {name!r} has {len(categories)} categories, but its family draws other values than their "
                    "numbers: use Categorical for this column"
                )
            columns[name] = X[:, j] if categories is NUMBER else [categories[int(code)] for code in X[:, j]]
        return nw.from_dict(columns, backend=self.library).to_native()


def product_of(frame: Any, families: dict[str, Any] | None = None) -> Product:
    """A product with a family for each column: that of `families`, or the default for the values of the column.

    Text, categorical and boolean columns are Categorical. Integer columns are Bernoulli if all values are 0 or 1,
    Poisson if they vary like counts (`looks_like_counts`), and otherwise Categorical if they have few values
    (`has_few_values`). Other numeric columns are Gaussian. Columns with the same family form one group. Columns with
    the family None are left out.
    """
    from coterie.families import Gaussian, as_family

    table = open_frame(frame)
    choices = dict(families or {})
    unknown = [name for name in choices if name not in table.columns]
    if unknown:
        raise ParameterError(f"families names the column {unknown[0]!r}, which the frame does not have")
    names = [name for name in table.columns if choices.get(name, name) is not None]
    if not names:
        raise ParameterError("families excludes all columns: at least one column needs a family")
    groups: dict[Any, tuple[Family, list[int]]] = {}
    categories = []
    for j, name in enumerate(names):
        choice = choices[name] if name in choices else _default_family(name, table[name])
        family = Gaussian("diag") if isinstance(choice, str) and choice == "gaussian" else as_family(choice)
        key = type(family) if name not in choices or isinstance(choices[name], str) else id(choices[name])
        groups.setdefault(key, (family, []))[1].append(j)
        categories.append(_values(table[name]) if _is_category(table[name]) else NUMBER)
    return Product(list(groups.values()), Table(names, categories, table.implementation.value))


def _is_category(column: Any) -> bool:
    import narwhals.stable.v2 as nw

    return column.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Object)


def _default_family(name: str, column: Any) -> str:
    import narwhals.stable.v2 as nw

    if _is_category(column):
        return "categorical"
    if not column.dtype.is_numeric():
        raise InputError(
            f"column {name!r} has the type {column.dtype}, for which there is no family: convert it to numbers or "
            "categories, or leave it out with families={" + repr(name) + ": None}"
        )
    values = column.drop_nulls().cast(nw.Float64).to_numpy()
    values = values[~np.isnan(values)]
    # pandas converts integer columns with missing values to float.
    is_integer = column.dtype.is_integer() or (len(values) < len(column) and bool((values == np.floor(values)).all()))
    if not is_integer:
        return "gaussian"
    if ((values == 0) | (values == 1)).all():
        return "bernoulli"
    if looks_like_counts(values):
        return "poisson"
    return "categorical" if has_few_values(values) else "gaussian"


def is_categorical(column: Any) -> bool:
    """Whether the default family of a column of a data frame is Categorical."""
    import narwhals.stable.v2 as nw

    series = nw.from_native(column, series_only=True)
    return _default_family(series.name, series) == "categorical"


def looks_like_counts(values: np.ndarray) -> bool:
    """Whether integers could be counts of several clusters.

    The variance of a Poisson count equals its mean; the variance of a mixture of Poisson counts is larger, never
    smaller. Numbers with a much smaller variance are grades or codes. For means of 30 and more, a Poisson distribution
    is nearly a Gaussian whose variance equals its mean; a Gaussian with any variance is at least as good there.
    """
    mean = float(values.mean())
    return bool(values.min() >= 0) and mean < LARGE_COUNT and float(values.var()) >= MIN_DISPERSION * mean


def has_few_values(values: np.ndarray) -> bool:
    """Whether there are few different numbers, and each occurs often, as for grades, codes or years.

    A Gaussian component could shrink to one of them, where the likelihood is unbounded but has no meaning.
    """
    return len(np.unique(values)) <= min(MAX_LEVELS, len(values) // MIN_REPEATS)


def _values(column: Any) -> list[Any]:
    values = [value for value in column.unique().to_list() if not is_missing(value)]
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def _codes(name: str, column: Any, categories: list[Any] | None) -> np.ndarray:
    """The column as numbers (n,), NaN for missing values."""
    import narwhals.stable.v2 as nw

    if categories is NUMBER:
        if _is_category(column):
            example = next((value for value in column.to_list() if not is_missing(value)), None)
            raise InputError(
                f"column {name!r} was numeric in the fit, but now contains {example!r}: convert it to numbers first"
            )
        return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
    positions = {value: float(i) for i, value in enumerate(categories)}
    codes = np.empty(len(column))
    for i, value in enumerate(column.to_list()):
        if value in positions:
            codes[i] = positions[value]
        elif is_missing(value):
            codes[i] = np.nan
        else:
            raise InputError(
                f"column {name!r} has the value {value!r}, which is not one of its {len(categories)} categories in the "
                "fit: drop these rows, or include them in the fit"
            )
    return codes
