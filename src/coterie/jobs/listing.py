"""Several names in one option: separated by commas, in double quotes where a name has a comma itself."""

import csv
import io
import shlex
from collections.abc import Iterable


def joined(names: Iterable[str]) -> str:
    """The names as one text, of which `parted` makes them again."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def parted(texts: Iterable[str]) -> tuple[str, ...]:
    """The names in some texts."""
    return tuple(name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row if name.strip())


def pasted(*names: str) -> str:
    """The names as they can be put after an option in a shell."""
    return shlex.quote(joined(names))
