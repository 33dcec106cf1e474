"""Tables of DuckDB databases, and results of SQL queries, through Arrow."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from coterie.core.formatting import join_words
from coterie.core.packages import required
from coterie.data.tables.read_errors import check_file, first_line, readable
from coterie.data.tables.suffixes import EXCEL, JSON_LINES, TEXT
from coterie.data.tables.vector_columns import flatten
from coterie.errors import InputError, ParameterError

ADDRESS = re.compile(r"duckdb:/*(?P<file>[^?]*)(?:\?table=(?P<table>.+))?")  # a path has one slash for several
DATABASES = (".db", ".duckdb")
FILES = (*TEXT, ".parquet", *JSON_LINES, *EXCEL)  # that are the table ``data``


def is_database(path: Path) -> bool:
    """Whether `path` is the address of a DuckDB database, or its file."""
    return ADDRESS.fullmatch(str(path)) is not None or path.suffix.lower() in DATABASES


def read_sql(path: Path, query: str | None) -> pl.DataFrame:
    """The result of a query in a database, or about the table ``data`` in another file; without a query the table.

    The database is opened for reading only.
    """
    address = ADDRESS.fullmatch(str(path))
    file, table = (path, None) if address is None else (_file(address["file"]), address["table"])
    if table is None and query is None:
        raise ParameterError(
            f'{path.name} is a database: add --sql "SELECT …", or name a table: "duckdb:///{file}?table=…".'
        )
    if table is not None and query is not None:
        raise ParameterError("?table= and --sql both name the table: leave out one of them.")
    if file is not None:
        check_file(file)
        if address is None and file.suffix.lower() not in (*DATABASES, *FILES):
            raise ParameterError(f"--sql is for databases and {join_words(FILES, 'and')}; not for {file.suffix}.")
    with required('SQL needs one more package. Run: pip install "coterie[sql]"'):
        import duckdb
    is_data = file is not None and address is None and file.suffix.lower() in FILES
    name = str(file) if file is not None and not is_data else ":memory:"
    try:
        with duckdb.connect(name, read_only=name != ":memory:") as connection:
            if is_data:
                quoted = str(file).replace("'", "''")
                connection.execute(f"CREATE VIEW data AS SELECT * FROM '{quoted}'")
            relation = connection.table(table) if table is not None else connection.sql(str(query))
            if relation is None:
                raise ParameterError("--sql must be a query that returns rows: SELECT …")
            with readable(None):
                return flatten(_frame(relation))
    except duckdb.Error as error:
        hint = " The table of the file is named data." if is_data else ""
        raise InputError(f"the query failed: {first_line(error)}{hint}") from error


def _frame(relation: Any) -> pl.DataFrame:
    """The rows of a relation, through PyArrow where it is installed.

    After its own Arrow stream, DuckDB prints a page of messages about leaked objects when the process ends.
    """
    frame: pl.DataFrame = relation.pl() if find_spec("pyarrow") is not None else pl.DataFrame(relation)
    return frame


def _file(name: str) -> Path | None:
    """The file of a database: relative to the current folder if it exists there; None for a database in memory."""
    if not name:
        return None
    relative = Path(name)
    return relative if relative.exists() or not Path("/", name).exists() else Path("/", name)
