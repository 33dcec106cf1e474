"""Files of one command: each place is checked before the work begins, and all of them appear, or none."""

import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import polars as pl

from coterie.core import writing
from coterie.core.errors import InputError, ParameterError
from coterie.data.tables import file_formats as formats
from coterie.data.tables.reader import listed
from coterie.data.tables.scan import first_line
from coterie.persistence.container import SUFFIX
from coterie.jobs import ChooseJob, CompareJob, Progress, Step
from coterie.report.table import TableResult

Result = TypeVar("Result", bound=TableResult)


@dataclass(frozen=True)
class Kind:
    """A file that a command may write: the option that names it, what it is, and how its name must end, if it must."""

    option: str
    what: str
    suffixes: tuple[str, ...]
    kept: bool = False  # whether one that is there already is gone on with


KINDS = {
    "output": Kind("-o", "an output", formats.WRITABLE),
    "model": Kind("--model", "a model", (SUFFIX,)),
    "report": Kind("--report", "a report", (".html",)),
    "page": Kind("-o", "a report", (".html",)),
    "animate": Kind("--animate", "an animation", (".html", ".gif", ".mp4")),
    "checkpoint": Kind("--checkpoint", "a checkpoint", (), kept=True),
}


def check_places(table: Path, *, force: bool, **places: Path | None) -> None:
    """Refuse what cannot be written, before any work is done; `places` are named as in `KINDS`."""
    seen: dict[Path, str] = {}
    for name, path in places.items():
        if path is None:
            continue
        kind = KINDS[name]
        _check_place(path, kind, force)
        other = next((option for known, option in seen.items() if _same(known, path)), None)
        if other is not None:
            raise ParameterError(f'{other} and {kind.option} both name "{path}": give each a file of its own.')
        if _same(table, path):
            raise ParameterError(f'{kind.option} names the table itself, "{path}": give it a file of its own.')
        seen[path] = kind.option


def _check_place(path: Path, kind: Kind, force: bool) -> None:
    if path.is_dir():
        raise ParameterError(f'cannot write "{path}": it is a folder; add the name of a file.')
    if kind.suffixes and path.suffix.lower() not in kind.suffixes:
        raise ParameterError(f'cannot write "{path}": {kind.what} ends in {listed(kind.suffixes)}.')
    writing.check_regular(path)
    folder = writing.place_of(path).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise ParameterError(f'cannot write "{path}": there is no folder "{folder}".')
    if not os.access(folder, os.W_OK):
        raise ParameterError(f'cannot write "{path}": no write permission in the folder "{folder}".')
    if path.exists() and not (force or kind.kept):
        raise writing.exists(path)


def _same(one: Path, other: Path) -> bool:
    """Whether two names are, or may become, one file: many file systems take x.html and x.HTML for the same name."""
    if one.exists() and other.exists():
        return one.samefile(other)
    places = writing.place_of(one), writing.place_of(other)
    if one.exists() or other.exists():  # the other name was not found, so that case does count here
        return places[0] == places[1]
    first, second = (unicodedata.normalize("NFC", str(place)).casefold() for place in places)
    return first == second


class Outputs:
    """Files written beside their places, and moved there together when a ``with`` block ends well.

    If the block fails, nothing of them is left. If a move fails, those before it are taken back, and what they
    replaced is there again.
    """

    def __init__(self, *, force: bool):
        self._force = force
        self._parts: dict[Path, Path] = {}

    def __enter__(self) -> Self:
        return self

    def write(self, path: Path, write_to: Callable[[Path], object]) -> int:
        """Have `write_to` write the file that will be at `path`, and tell its size in bytes."""
        place = writing.place_of(path)
        with _telling(path):
            part = self._parts[place] = writing.begin(place)
            write_to(part)
            _settle(part)
            return part.stat().st_size

    def write_page(self, path: Path, report: Any, static: bool, result: Result) -> Result:
        """Write the page of a report, and note it in the result."""
        from coterie.report.html import as_html

        content = as_html(report, static=static).encode()
        return replace(result, report=str(path), report_size=self.write(path, lambda part: part.write_bytes(content)))

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._move()
        finally:
            for part in self._parts.values():
                part.unlink(missing_ok=True)

    def _move(self) -> None:
        replaced: dict[Path, Path] = {}
        try:
            for path, part in self._parts.items():
                with _telling(path):
                    if self._force and path.exists():
                        replaced[path] = writing.temporary_name(path, "old")
                        _copy(path, replaced[path])
                    writing.move(part, path, self._force)
        except BaseException:
            self._take_back(replaced)
            raise
        finally:
            for old in replaced.values():
                old.unlink(missing_ok=True)
        for folder in {path.parent for path in self._parts}:
            writing.keep_folder(folder)

    def _take_back(self, replaced: dict[Path, Path]) -> None:
        for path, part in self._parts.items():
            if part.exists() and not (path.exists() and path.samefile(part)):
                continue  # it was not moved
            if path in replaced:
                os.replace(replaced[path], path)
            else:
                path.unlink(missing_ok=True)


def with_page(job: ChooseJob | CompareJob, result: Result, build: Callable[[], Any], progress: Progress) -> Result:
    """The result, once the page that `build` makes of it is written, if one is asked for."""
    if job.report is None:
        return result
    progress(Step(f"writing {job.report.name}"))
    with Outputs(force=job.force) as files:
        return files.write_page(job.report, build(), job.static, result)


def _copy(path: Path, to: Path) -> None:
    try:
        os.link(path, to)
    except OSError:  # a file system without links
        shutil.copy2(path, to)


def _settle(part: Path) -> None:
    with part.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f'cannot write "{path}": {first_line(error)}') from error
