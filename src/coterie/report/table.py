"""What results over a table have in common."""

from dataclasses import dataclass

from coterie.preparation import SkippedColumn

__all__ = ["SkippedColumn", "TableResult"]


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """The table that a result comes from, and how it was treated.

    Attributes
    ----------
    source : str
        Name of the file read.
    rows, rows_used : int
        Rows in the file, and rows that took part.
    n_columns : int
        Columns in the file.
    columns, categories : tuple of str
        Columns that took part as numbers, and as categories.
    skipped : tuple of SkippedColumn
    scale : str
        How the columns were scaled: ``standard``, ``robust``, ``minmax`` or ``none``.
    missing : str
        What was done about missing values, in words.
    seed : int
    weight : str or None
        Column that says how much each row counts, if any: means and shares are then weighted.
    notes : tuple of str
        What was decided on the reader's behalf.
    warnings : tuple of str
        What the reader should know before trusting the result.
    report : str or None
        Page written about the result, if any.
    report_size : int or None
        Its size in bytes.
    """

    source: str
    rows: int
    rows_used: int
    n_columns: int
    columns: tuple[str, ...]
    categories: tuple[str, ...]
    skipped: tuple[SkippedColumn, ...]
    scale: str
    missing: str
    seed: int
    weight: str | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    report: str | None = None
    report_size: int | None = None
