"""Tables: read whole, written back with their clusters."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import polars as pl

from coterie.core.errors import InputError, ParameterError
from coterie.jobs import formats
from coterie.jobs.formats import STANDARD_INPUT

LABEL = "cluster"
MISSING_MARKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


@dataclass(frozen=True)
class Table:
    """A table as it was read, and with the type each column turned out to have.

    The two differ for text files only: there `raw` keeps every field as it was written, so that ``007`` and
    ``1.50`` come out of a text file as they went in.
    """

    path: Path
    raw: pl.DataFrame
    typed: pl.DataFrame

    @property
    def name(self) -> str:
        return "standard input" if self.path == STANDARD_INPUT else self.path.name

    @property
    def rows(self) -> int:
        return self.typed.height

    @property
    def is_array(self) -> bool:
        """Whether columns have no names of their own, and a unit in common."""
        return self.path.suffix.lower() in formats.ARRAYS


def read(path: Path) -> Table:
    """Read a table, or say what stands in the way."""
    suffix = path.suffix.lower()
    if path != STANDARD_INPUT:
        check_there(path)
    with _readable(path):
        if path == STANDARD_INPUT or suffix in formats.TEXT:
            raw, separator = formats.text_frame(path)
            table = Table(path, raw, raw.with_columns(_parsed(column, separator) for column in raw))
        elif suffix in formats.FRAMES or suffix in formats.ARRAYS:
            frame = (formats.FRAMES | formats.ARRAYS)[suffix](path)
            table = Table(path, frame, frame)
        else:
            raise InputError(f'cannot read "{path}": tables end in {listed(formats.READABLE)}.')
    if table.rows == 0:
        raise InputError(f"{table.name} has no rows.")
    return table


def labelled(table: Table, new: pl.DataFrame, path: Path) -> Callable[[Path], object]:
    """What writes `table` with the columns of `new` beside its own, as a file called like `path`."""
    suffix = path.suffix.lower()
    if suffix == formats.LABELS_ONLY:
        labels = new[LABEL].fill_null(-1).to_numpy()
        return lambda part: np.save(part, labels)
    frame = (table.raw if suffix in formats.TEXT else table.typed).with_columns(new)
    return lambda part: formats.WRITERS[suffix](frame, part)


def beside(columns: Mapping[str, np.ndarray], kept: np.ndarray) -> pl.DataFrame:
    """Columns of the rows that took part (`kept`), beside every row of the table: empty where it did not."""
    at = np.zeros(len(kept), dtype=np.int64)
    at[kept] = np.arange(np.count_nonzero(kept))
    everywhere = pl.DataFrame({name: values[at] for name, values in columns.items()})
    return everywhere.select(pl.when(pl.Series(kept)).then(pl.all()))


def spread(labels: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """One label for each row of the table, -1 where the row took no part."""
    found = np.full(len(kept), -1, dtype=np.int64)
    found[kept] = labels
    return found


def refuse_clash(table: Table, added: Iterable[str], *, force: bool) -> None:
    """Refuse columns that would stand in place of the table's own."""
    taken = [name for name in added if name in table.raw.columns]
    if taken and not force:
        raise ParameterError(
            f"{table.name} has {' and '.join(taken)} already. Use --force to replace them in the output."
        )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (InputError, ParameterError):
        raise
    except pl.exceptions.NoDataError as error:
        raise InputError(f"{path.name} is empty.") from error
    except (OSError, ValueError, EOFError, pl.exceptions.PolarsError) as error:
        raise InputError(f'cannot read "{path}": {first_line(error)}') from error


def _parsed(column: pl.Series, separator: str) -> pl.Series:
    """The column as integers, else as numbers, where every field but the missing ones is one.

    Where fields are not separated by commas, a comma may stand before decimals.
    """
    text = column.str.strip_chars()
    present = text.set(text.is_in(MISSING_MARKS), None)
    spellings = [present] if separator == "," else [present, present.str.replace(",", ".", literal=True)]
    for spelling in spellings:
        for kind in (pl.Int64, pl.Float64):
            numbers = spelling.cast(kind, strict=False)
            if numbers.null_count() == present.null_count():
                return numbers
    return column.set(present.is_null(), None)


def check_there(path: Path) -> None:
    """Refuse a file that is not there, naming the one that was probably meant."""
    if not path.exists():
        raise InputError(_no_such_file(path))
    if path.is_dir():
        raise InputError(f'"{path}" is a folder; name a file in it.')


def _no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f'no file "{path}": there is no folder "{folder}".'
    where = "here" if folder == Path() else f'in "{folder}"'
    names: list[str] = []
    with suppress(OSError):
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    close = get_close_matches(path.name, names, n=1)
    hint = f" Did you mean {folder / close[0]}?" if close else ""
    return f'no file "{path.name}" {where}.{hint}'


def first_line(error: Exception) -> str:
    """What went wrong with a file, in a line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.splitlines()[0] if text else type(error).__name__


def listed(names: Sequence[str]) -> str:
    """``.csv, .tsv or .npy``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
