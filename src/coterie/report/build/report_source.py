"""The table that a report is about."""

from dataclasses import dataclass

from coterie.data.tables.reader import Table
from coterie.preparation.fit_preparation import PreparedTable


@dataclass(frozen=True)
class ReportSource:
    """A prepared table, and the options that the report needs."""

    table: Table
    prepared: PreparedTable
    k: str  # number of clusters as requested: a number, a range or auto
    command: str  # command line that gives the same result
    seed: int
    threads: int | None = None
    weight: str | None = None  # column of row weights
    row_id: str | None = None  # column of row names
