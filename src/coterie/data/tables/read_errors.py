"""Errors of reading a file, as an `InputError` that names the file and what to do."""

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from zipfile import BadZipFile

from coterie import machine
from coterie.core.formatting import escaped, format_bytes, join_words
from coterie.data.tables.suffixes import READABLE
from coterie.errors import InputError, ParameterError

STANDARD_INPUT = Path("-")
COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
DATA_FRAME = Path("data frame")  # a table in memory


def check_file(path: Path) -> None:
    """Reject a path that is not a file with content, or cannot be read; suggest a file with a similar name."""
    if not path.exists():
        raise InputError(_no_such_file(path))
    if path.is_dir():
        raise InputError(f'"{path}" is a folder; name a file in it.')
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty.")
    if path.is_file():  # a pipe can be opened only once
        with readable(path), path.open("rb"):
            pass


def check_table_file(path: Path) -> None:
    """Reject a path that is not a file, or whose suffix is not that of a table."""
    check_file(path)
    if path.suffix.lower() not in READABLE:
        raise unknown_suffix(path)


def unknown_suffix(path: Path) -> InputError:
    """The error of a file whose suffix is not that of a table."""
    if path.suffix.lower() in COMPRESSED:
        return InputError(f'cannot read "{path}": it is compressed. Decompress it first.')
    return InputError(f'cannot read "{path}": tables end in {join_words(READABLE, "or")}.')


@contextmanager
def readable(path: Path | None) -> Iterator[None]:
    """Convert errors of NumPy, Polars and the system to `InputError`; `path` is None for a table that is not a file."""
    try:
        yield
    except (InputError, ParameterError):
        raise
    except Exception as error:
        polars = sys.modules.get("polars")  # not imported: .npy files are read without Polars
        is_polars_error = polars is not None and isinstance(error, polars.exceptions.PolarsError)
        if isinstance(error, MemoryError | OverflowError):  # NumPy cannot even represent some shapes
            size = format_bytes(machine.free_memory())
            raise InputError(f"{table_name(path)} does not fit into memory, of which {size} are free.") from error
        if isinstance(error, TypeError) and path is not None and escaped(path) != str(path):
            raise InputError(
                f'cannot read "{escaped(path)}": files of this format need a name in UTF-8. Rename the file.'
            ) from error
        if not is_polars_error and not isinstance(error, OSError | ValueError | EOFError | BadZipFile | zlib.error):
            raise
        if is_polars_error and type(error).__name__ == "NoDataError":
            raise InputError(f"{table_name(path)} is empty.") from error
        if path is None:
            raise InputError(f"cannot read the table: {first_line(error)}") from error
        from coterie.data.tables.malformed_lines import malformed_line

        reason = malformed_line(path) if is_polars_error else None
        raise InputError(f'cannot read "{path}": {reason or first_line(error)}') from error


def first_line(error: Exception) -> str:
    """The first line of an error message."""
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return message.splitlines()[0] if message else type(error).__name__


def table_name(path: Path | None) -> str:
    """How messages refer to a table."""
    names = {None: "the table", STANDARD_INPUT: "standard input", DATA_FRAME: "the data frame"}
    return names[path] if path is None or path in names else escaped(path.name)


def _no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f'no file "{path}": there is no folder "{folder}".'
    where = "here" if folder == Path() else f'in "{folder}"'
    names: list[str] = []
    with suppress(OSError):
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    similar = get_close_matches(path.name, names, n=1)
    hint = f" Did you mean {folder / similar[0]}?" if similar else ""
    return f'no file "{path.name}" {where}.{hint}'
