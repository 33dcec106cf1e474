"""Categories of columns, which are stored as text, and their one-hot columns."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.formatting import count
from coterie.data.tables.delimited_text import TEXT_TYPES
from coterie.data.tables.written_numbers import MISSING_WORDS, is_missing_mark
from coterie.preparation.category_meaning import BLANKS, by_meaning, meaning


def without_marks(column: pl.Series, categories: Sequence[str] = ()) -> pl.Series:
    """A column with null where a word means a missing value (``n/a``, ``-``), unless it is a category; and for NaN."""
    if column.dtype.base_type() not in TEXT_TYPES:
        return column.fill_nan(None) if column.dtype.is_float() else column
    text = column.cast(pl.String)
    is_mark = is_missing_mark(text.str.strip_chars(BLANKS), marks=MISSING_WORDS) & text.is_not_null()
    is_missing = is_mark & ~text.is_in(categories).fill_null(False)
    return text.set(is_missing, None) if is_missing.any() else column


def categories_of(column: pl.Series) -> tuple[str, ...]:
    """The values of a column as text, in alphabetical order."""
    return tuple(sorted(without_marks(column).cast(pl.String).drop_nulls().unique().to_list()))


def one_hot(column: pl.Series, categories: Sequence[str]) -> NDArray[np.bool_]:
    """For each row and category whether the row has it (n, categories)."""
    texts = _as_written(column.cast(pl.String), categories)
    columns = [(texts == category).fill_null(False).to_numpy() for category in categories]
    return np.column_stack(columns) if columns else np.zeros((len(column), 0), dtype=bool)


def unknown_warnings(unknown: Mapping[str, int]) -> tuple[str, ...]:
    """Warnings about the number of rows of each column that have a value, but none of its categories."""
    return tuple(
        f'column "{name}": {count(n)} {"has" if n == 1 else "have"} a value that is not in the training data.'
        for name, n in unknown.items()
        if n
    )


def _as_written(texts: pl.Series, categories: Sequence[str]) -> pl.Series:
    """Texts as the categories with the same meaning are written."""
    known = by_meaning(categories)
    unknown = set(texts.unique().drop_nulls().to_list()) - set(categories)
    return texts.replace({text: known[meaning(text)] for text in unknown if meaning(text) in known})
