"""Text that spreadsheet programs would run as a formula, made plain text."""

import polars as pl

from coterie.data.tables import delimited_text as text

# A leading quote makes spreadsheet programs show a cell as text. Some take wide forms of the signs for the signs.
FORMULA = r"^(\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n])"
QUOTE = "'"
WORDS = (pl.String, pl.Categorical, pl.Enum)


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with a quote before each text, and name of a column, that begins like a formula; numbers stay."""
    names = pl.Series("", frame.columns, dtype=pl.String)
    return frame.with_columns(
        _quoted(column.cast(pl.String)) for column in frame if column.dtype.base_type() in WORDS
    ).rename(dict(zip(frame.columns, _quoted(names).to_list(), strict=True)))


def _quoted(column: pl.Series) -> pl.Series:
    risky = column.str.contains(FORMULA) & text.not_numbers(column)
    return column.zip_with(~risky.fill_null(False), QUOTE + column)
