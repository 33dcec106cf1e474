"""Several names in one option: separated by commas, in double quotes where a name has a comma itself."""

import csv
import io
import shlex
from collections.abc import Iterable

from coterie.core.errors import ParameterError


def joined(names: Iterable[str]) -> str:
    """The names as one text, of which `parted` makes them again."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(names)  # names that have one of these are quoted
    return line.getvalue().removesuffix("\r\n")


def parted(texts: Iterable[str]) -> tuple[str, ...]:
    """The names in some texts."""
    try:
        rows = [row for text in texts for row in csv.reader([text], skipinitialspace=True)]
    except csv.Error:
        raise ParameterError(
            "a name with a line break must be in double quotes, and shorter than 100,000 characters."
        ) from None
    return tuple(name.strip() for row in rows for name in row if name.strip())


def pasted(*names: str) -> str:
    """The names as they can be put after an option in a shell."""
    return shlex.quote(joined(names))
