"""What is needed to reproduce a result: command, code, fingerprint of the data, versions."""

import hashlib
import platform
from importlib.metadata import version

import coterie
from coterie.core.formatting import count
from coterie.data.tables.read_errors import STANDARD_INPUT
from coterie.data.tables.reader import Table
from coterie.report.build.report_source import ReportSource
from coterie.report.html.report import Absent, Reproduce

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")


def reproducibility(source: ReportSource, python: str | Absent) -> Reproduce:
    versions = {"coterie": coterie.__version__, "Python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    return Reproduce(python, source.command, fingerprint(source.table), versions)


def fingerprint(table: Table) -> str:
    """Rows, columns and SHA-256 of the file, or of the table from standard input."""
    if table.path == STANDARD_INPUT:
        hasher, subject = hashlib.sha256(), "SHA-256 of the table as CSV"
        for i, batch in enumerate(table.raw_batches()):
            hasher.update(batch.write_csv(include_header=i == 0).encode())
        digest = hasher.hexdigest()
    else:
        with table.path.open("rb") as file:
            digest, subject = hashlib.file_digest(file, "sha256").hexdigest(), "SHA-256 of the file"
    return f"{table.name}: {count(table.n_rows, 'row')}, {count(len(table.columns), 'column')}; {subject} {digest}"
