"""The fields that all results of a table share."""

from dataclasses import dataclass

from coterie.preparation import SkippedColumn

__all__ = ["SkippedColumn", "TableResult"]


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """The table of a result, and how it was prepared.

    Attributes
    ----------
    source : str
        Name of the input file.
    rows, rows_used : int
        Number of rows in the file, and of rows that were used.
    n_columns : int
        Number of columns in the file.
    columns, categories : tuple of str
        Numeric columns and categorical columns that were used.
    skipped : tuple of SkippedColumn
        Columns that were not used, with reasons.
    scale : str
        How the columns were scaled: ``standard``, ``robust``, ``minmax`` or ``none``.
    missing : str
        Description of how missing values were handled.
    seed : int
        Seed of the random generator.
    weight : str or None
        Column of row weights, if any; means and shares are then weighted.
    notes : tuple of str
        Decisions that were made automatically.
    warnings : tuple of str
        Warnings about the data or the fit.
    report : str or None
        HTML report, if one was written.
    report_size : int or None
        Size of the report in bytes.
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
