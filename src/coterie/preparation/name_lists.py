"""Several names in one option: separated by commas, in double quotes if a name contains a comma."""

import csv
import io
import shlex
from collections.abc import Iterable

from coterie.errors import ParameterError


def join_names(names: Iterable[str]) -> str:
    """The names as one text, which `split_names` splits again."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(names)  # names with one of these characters are quoted
    return line.getvalue().removesuffix("\r\n")


def split_names(texts: Iterable[str]) -> tuple[str, ...]:
    """All names in some texts."""
    try:
        rows = [row for text in texts for row in csv.reader([text], skipinitialspace=True)]
    except csv.Error:
        raise ParameterError(
            "a name with a line break must be in double quotes, and shorter than 100,000 characters."
        ) from None
    return tuple(name.strip() for row in rows for name in row if name.strip())


def shell_names(*names: str) -> str:
    """The names as the value of an option in a shell."""
    return shlex.quote(join_names(names))
