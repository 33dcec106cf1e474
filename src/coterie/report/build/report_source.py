"""The table that a report is about, and what is needed to reproduce the result."""

import hashlib
import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import coterie
from coterie.core.formatting import count
from coterie.data.tables.read_errors import DATA_FRAME, STANDARD_INPUT
from coterie.data.tables.reader import Table
from coterie.preparation.fit_preparation import PreparedTable
from coterie.report.html.report import Absent, Reproduce

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")


@dataclass(frozen=True)
class ReportSource:
    """A prepared table, and the options that the report needs."""

    table: Table
    prepared: PreparedTable
    k: str  # number of clusters as requested: a number, a range or auto
    command: str | Absent  # command line that gives the same result
    reading: dict[str, Any]  # options with which the file was read: its sheet, header row or query
    seed: int
    threads: int | None = None
    weight: str | None = None  # column of row weights
    row_id: str | None = None  # column of row names
    map: str = "auto"  # the map of the report: ``axes``, ``neighbours`` or ``auto``
    in_python: bool = False  # whether remedies name parameters of Python instead of options of the command line


def reproducibility(source: ReportSource, python: str | Absent) -> Reproduce:
    versions = {"coterie": coterie.__version__, "Python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    return Reproduce(python, source.command, fingerprint(source.table), versions)


def fingerprint(table: Table) -> str:
    """Rows, columns and SHA-256 of the file, or of the table from standard input, memory or a database."""
    if table.path in (STANDARD_INPUT, DATA_FRAME) or not table.path.is_file():
        hasher, subject = hashlib.sha256(), "SHA-256 of the table as CSV"
        for i, batch in enumerate(table.raw_batches()):
            hasher.update(batch.write_csv(include_header=i == 0).encode())
        digest = hasher.hexdigest()
    else:
        with table.path.open("rb") as file:
            digest, subject = hashlib.file_digest(file, "sha256").hexdigest(), "SHA-256 of the file"
    return f"{table.name}: {count(table.n_rows, 'row')}, {count(len(table.columns), 'column')}; {subject} {digest}"
