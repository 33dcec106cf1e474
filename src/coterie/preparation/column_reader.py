"""The first step of a model of the command line, if columns are categories, are read by a rule or are transformed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from coterie.core.packages import required
from coterie.errors import InputError


class ColumnReader(TransformerMixin, BaseEstimator):
    """Read columns of a table as numbers, transform them, and encode categories as zeros and ones.

    Its parameters are all that is stored: plain texts, lists and dictionaries.

    Parameters
    ----------
    names : sequence of str
        Numeric columns of the result, in order.
    readings : mapping of str to dict or None, default=None
        How columns of the result are read: see `coterie.data.tables.readings`. A column without a reading is the column
        of the table of that name.
    transforms : mapping of str to str or None, default=None
        ``log``, ``log1p`` or ``sqrt`` by the name of a column of the result.
    as_frame : bool, default=False
        Whether the result is a Polars frame that contains categories as they are, rather than an array of numbers.
    categories : mapping of str to sequence of str or None, default=None
        The values of categorical columns of the table. Each value is a column of the result, after the numeric columns.
    allow_missing : bool, default=False
        Whether a row without a category has zeros in the columns of its values. Otherwise it is an error.

    Attributes
    ----------
    feature_names_in_ : array of str
        Columns of the table.
    n_features_in_ : int
    """

    def __init__(
        self, names: Sequence[str] = (), readings: Mapping[str, Mapping[str, Any]] | None = None,
        transforms: Mapping[str, str] | None = None, as_frame: bool = False,
        categories: Mapping[str, Sequence[str]] | None = None, allow_missing: bool = False,
    ) -> None:  # fmt: skip
        self.names = names
        self.readings = readings
        self.transforms = transforms
        self.as_frame = as_frame
        self.categories = categories
        self.allow_missing = allow_missing

    def fit(self, X: Any = None, y: Any = None) -> "ColumnReader":
        """Set the names of the columns of the table; the rules are parameters."""
        readings = self.readings or {}
        columns = dict.fromkeys(readings[name]["column"] if name in readings else name for name in self.names)
        columns |= dict.fromkeys(self.categories or ())
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        self.n_features_in_ = len(columns)
        return self

    def transform(self, X: Any) -> Any:
        """The columns of the frame `X` as an array; an array of numbers is only transformed, not read."""
        if not hasattr(X, "columns"):
            values, width = np.array(X, dtype=np.float64), len(self.get_feature_names_out())
            if values.ndim != 2 or values.shape[1] != width:
                raise InputError(f"X must be a frame, or an array with {width} columns; got {values.shape}.")
            return self._transform(values)
        frame = self._read(X)
        if self.as_frame:
            return frame
        numbers = frame.cast(dict.fromkeys(self.names, float)).fill_null(np.nan).to_numpy(order="c")
        return np.hstack([self._transform(numbers.reshape(len(X), len(self.names))), *self._one_hot(X)])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of the result."""
        return np.array([*self.names, *indicator_names(self.names, self.categories or {})], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _read(self, X: Any) -> Any:
        with required("this model reads columns of text, which needs one more package. Run: pip install polars"):
            import polars as pl

            from coterie.data.tables.frame_table import as_polars
            from coterie.data.tables.readings import Reading, convert
        frame = as_polars(X)
        columns, readings = [], self.readings or {}
        for name in self.names:
            reading = Reading.from_dict(dict(readings[name])) if name in readings else None
            column = frame[name if reading is None else reading.column]
            if reading is not None:
                column, is_invalid = convert(column, reading)
                if is_invalid.any():
                    row = int(is_invalid.arg_max() or 0)
                    raise InputError(
                        f"X has {frame[reading.column][row]!r} in row {row} (from 0) of column {reading.column!r}, "
                        f"which is not a {reading.kind}. Correct the value, or replace it by None."
                    )
            columns.append(column.alias(name))
        return pl.DataFrame(columns)

    def _one_hot(self, X: Any) -> Iterator[np.ndarray]:
        """Zeros and ones of each categorical column."""
        from coterie.data.tables.frame_table import as_polars
        from coterie.preparation.one_hot import one_hot, without_marks

        for name, values in (self.categories or {}).items():
            column = without_marks(as_polars(X)[name], values)
            if column.null_count() and not self.allow_missing:
                row = int(column.is_null().arg_max() or 0)
                raise InputError(
                    f"X has no value in row {row} (from 0) of column {name!r}, and the model was fitted to complete "
                    "rows. Fill the cell, or leave out the row."
                )
            yield one_hot(column, values)

    def _transform(self, values: np.ndarray) -> np.ndarray:
        from coterie.preparation.transforms import TRANSFORMS

        for name, transform in (self.transforms or {}).items():
            j = list(self.names).index(name)
            is_invalid = ~TRANSFORMS[transform].is_valid(values[:, j])
            if is_invalid.any():
                value = values[int(np.argmax(is_invalid)), j]
                raise InputError(
                    f"column {name!r} has the value {value:g}, which has no {TRANSFORMS[transform].title}."
                )
            values[:, j] = TRANSFORMS[transform].forward(values[:, j])
        return values


def indicator_names(numbers: Iterable[str], categories: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Names of one-hot columns, ``colour=red``; a name that is taken gets a number."""
    names = dict.fromkeys(numbers)
    for plain in (f"{column}={value}" for column, values in categories.items() for value in values):
        name = next(name for name in chain([plain], (f"{plain} ({i})" for i in count(2))) if name not in names)
        names[name] = None
    return tuple(names)[len(names) - sum(map(len, categories.values())) :]
