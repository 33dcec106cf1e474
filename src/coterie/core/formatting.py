"""Numbers with their nouns, sizes in bytes, lists of words and tables, for messages, captions and reports."""

import os
import re
from collections.abc import Sequence

YEAR = re.compile("year|jahr|année|año", re.IGNORECASE)


def count(number: float, noun: str = "row", plural: str | None = None) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def escaped(path: object) -> str:
    """A path as text, in which bytes that are not UTF-8 are escapes such as ``\\xe9``."""
    return os.fsencode(str(path)).decode("utf-8", "backslashreplace")


def is_year(column: str, value: float) -> bool:
    """Whether a number of a column is a year by the name of the column: ``1931``, not ``1,931``."""
    return 1000 <= value < 3000 and YEAR.search(column) is not None


def format_bytes(size: float) -> str:
    """A number of bytes, such as ``1.23 GB``."""
    unit = "bytes"
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.3g} {unit}"


def join_words(words: Sequence[str], conjunction: str = "and") -> str:
    """The words as a list in a sentence: ``a, b and c``."""
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}" if len(words) > 1 else "".join(words)


def first_names(names: Sequence[str], limit: int = 8) -> str:
    """The first names, separated by commas."""
    return ", ".join([*names[:limit], *(["…"] if len(names) > limit else [])])


def truncate(text: str, length: int) -> str:
    """The text, shortened to at most `length` characters with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def table_lines(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """Lines of a table; columns in `left` are aligned left, the others right."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if j in left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
