"""Output files of a command: paths are checked before work starts, and either all files are written, or none."""

import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import polars as pl

from coterie.core import writing
from coterie.core.formatting import join_words
from coterie.core.progress import Callback, Progress
from coterie.data.tables.read_errors import first_line
from coterie.data.tables.writer import WRITABLE, WRITERS
from coterie.errors import InputError, ParameterError
from coterie.jobs import ChooseJob, CompareJob
from coterie.persistence.container import SUFFIX
from coterie.report.results import TableResult

Result = TypeVar("Result", bound=TableResult)


@dataclass(frozen=True)
class OutputKind:
    """A file that a command may write: its option, a description, and allowed suffixes (none: any)."""

    option: str
    description: str
    suffixes: tuple[str, ...]
    may_exist: bool = False  # whether the command continues with an existing file


KINDS = {
    "output": OutputKind("-o", "an output", WRITABLE),
    "model": OutputKind("--model", "a model", (SUFFIX,)),
    "profiles": OutputKind("--profiles", "a table of profiles", tuple(WRITERS)),
    "report": OutputKind("--report", "a report", (".html",)),
    "moved": OutputKind("-o", "a table of rows", tuple(WRITERS)),
    "page": OutputKind("-o", "a report", (".html",)),
    "animate": OutputKind("--animate", "an animation", (".html", ".gif", ".mp4")),
    "sql": OutputKind("-o", "an SQL file", (".sql",)),
    "onnx": OutputKind("-o", "an ONNX model", (".onnx",)),
    "python": OutputKind("-o", "a Python module", (".py",)),
    "checkpoint": OutputKind("--checkpoint", "a checkpoint", (), may_exist=True),
}


def check_outputs(table: Path, *, force: bool, **outputs: Path | None) -> None:
    """Reject paths that cannot be written; `outputs` are named as in `KINDS`."""
    seen: dict[Path, str] = {}
    for name, path in outputs.items():
        if path is None:
            continue
        kind = KINDS[name]
        _check_path(path, kind, force)
        other = next((option for previous, option in seen.items() if _is_same_file(previous, path)), None)
        if other is not None:
            raise ParameterError(f'{other} and {kind.option} both name "{path}": use a different file for each.')
        if _is_same_file(table, path):
            raise ParameterError(f'{kind.option} names the table itself, "{path}": use a different file.')
        seen[path] = kind.option


def _check_path(path: Path, kind: OutputKind, force: bool) -> None:
    if path.is_dir():
        raise ParameterError(f'cannot write "{path}": it is a folder; add the name of a file.')
    if kind.suffixes and path.suffix.lower() not in kind.suffixes:
        raise ParameterError(f'cannot write "{path}": {kind.description} ends in {join_words(kind.suffixes, "or")}.')
    if path.suffix.lower() == ".xlsx" and find_spec("xlsxwriter") is None:
        raise ParameterError('writing .xlsx needs one more package. Run: pip install "coterie[excel]"')
    writing.check_regular(path)
    folder = writing.real_path(path).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise ParameterError(f'cannot write "{path}": there is no folder "{folder}".')
    if not os.access(folder, os.W_OK):
        raise ParameterError(f'cannot write "{path}": no write permission in the folder "{folder}".')
    if path.exists() and not (force or kind.may_exist):
        raise writing.exists(path)


def _is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths are, or may become, the same file: many file systems ignore the case of names."""
    if one.exists() and other.exists():
        return one.samefile(other)
    places = writing.real_path(one), writing.real_path(other)
    if one.exists() or other.exists():  # only one of them exists, so this file system distinguishes the case
        return places[0] == places[1]
    first, second = (unicodedata.normalize("NFC", str(place)).casefold() for place in places)
    return first == second


class OutputFiles:
    """Files written under temporary names, and renamed together at the end of a ``with`` block.

    If the block fails, temporary files are deleted. If a rename fails, earlier ones are undone, and the files that they
    replaced are restored.
    """

    def __init__(self, *, force: bool):
        self._force = force
        self._temporary: dict[Path, Path] = {}

    def __enter__(self) -> Self:
        return self

    def write(self, path: Path, write_to: Callable[[Path], object]) -> int:
        """Write the file for `path` with `write_to`, and return its size in bytes."""
        place = writing.real_path(path)
        with _write_errors(path):
            temporary = self._temporary[place] = writing.begin(place)
            write_to(temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            return temporary.stat().st_size

    def write_report(self, path: Path, report: Any, static: bool, result: Result) -> Result:
        """Write a report, and add its path and size to the result."""
        from coterie.report.html import as_html

        content = as_html(report, static=static).encode()
        return replace(
            result, report=str(path), report_size=self.write(path, lambda temporary: temporary.write_bytes(content))
        )

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._rename()
        finally:
            for temporary in self._temporary.values():
                temporary.unlink(missing_ok=True)

    def _rename(self) -> None:
        replaced: dict[Path, Path] = {}
        try:
            for path, temporary in self._temporary.items():
                with _write_errors(path):
                    if self._force and path.exists():
                        replaced[path] = writing.temporary_name(path, "old")
                        _copy(path, replaced[path])
                    writing.move(temporary, path, self._force)
        except BaseException:
            self._undo(replaced)
            raise
        finally:
            for old in replaced.values():
                old.unlink(missing_ok=True)
        for folder in {path.parent for path in self._temporary}:
            writing.sync_folder(folder)

    def _undo(self, replaced: dict[Path, Path]) -> None:
        for path, temporary in self._temporary.items():
            if temporary.exists() and not (path.exists() and path.samefile(temporary)):
                continue  # it was not renamed
            if path in replaced:
                os.replace(replaced[path], path)
            else:
                path.unlink(missing_ok=True)


def with_report(job: ChooseJob | CompareJob, result: Result, build: Callable[[], Any], callback: Callback) -> Result:
    """Write the report that `build` returns, if the job has one, and return the result."""
    if job.report is None:
        return result
    callback(Progress(f"writing {job.report.name}"))
    with OutputFiles(force=job.force) as files:
        return files.write_report(job.report, build(), job.static, result)


def _copy(path: Path, to: Path) -> None:
    try:
        os.link(path, to)
    except OSError:  # a file system without links
        shutil.copy2(path, to)


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f'cannot write "{path}": {first_line(error)}') from error
