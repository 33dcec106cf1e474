"""Files by path or address, their folders and patterns; addresses such as s3:// and https:// through fsspec."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from coterie.data.tables.read_errors import check_file, first_line, readable
from coterie.data.tables.suffixes import READABLE
from coterie.errors import InputError, ParameterError

ADDRESS = re.compile(r"(?P<protocol>[a-z][a-z0-9+.-]+)://", re.IGNORECASE)  # a single letter is a drive of Windows
PATTERN = frozenset("*?[")
NO_TABLES = f'the folder "{{}}" has no tables: their names end in {", ".join(READABLE)}'
NO_MATCH = 'no file matches the pattern "{}".'
LOCAL, WEB = "file://", ("http://", "https://")


class Version(NamedTuple):
    """What changes when a file is written again."""

    size: int
    tag: str  # time of modification, or the ETag of a server


@dataclass(frozen=True)
class Location:
    """A file on this machine, or at an address that fsspec can open."""

    url: str  # path or address
    options: Mapping[str, Any] | None = None  # for fsspec; None: a path

    @property
    def path(self) -> Path | None:
        """The path of a file on this machine."""
        return Path(self.url) if self.options is None else None

    @property
    def suffix(self) -> str:
        path = self.path
        return (PurePosixPath(urlsplit(self.url).path) if path is None else path).suffix.lower()

    def open(self) -> IO[bytes]:
        """The file, to be read from any position."""
        if self.path is not None:
            return self.path.open("rb")
        system, path = _file_system(self.url, self.options or {})
        file: IO[bytes] = system.open(path, "rb")
        return file

    def version(self) -> Version:
        """The present version of the file."""
        with self.errors():
            if self.path is not None:
                status = self.path.stat()
                return Version(status.st_size, str(status.st_mtime_ns))
            system, path = _file_system(self.url, self.options or {})
            system.invalidate_cache()
            info = system.info(path)
            tags = (info.get(name) for name in ("ETag", "etag", "mtime", "LastModified", "last_modified", "created"))
            size = info.get("size")
            if size is None:
                raise InputError(f'cannot read "{self.url}" in parts: the server does not say how large it is')
            return Version(int(size), str(next((tag for tag in tags if tag is not None), "")))

    def check(self, version: Version) -> None:
        """Raise an error unless the file is still this version."""
        if self.version() != version:
            raise InputError(f'"{self.url}" changed after it was opened: call again, with files that do not change')

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Context that converts errors of reading to an `InputError` that names the file."""
        if self.path is not None:
            with readable(self.path):
                yield
            return
        try:
            yield
        except (InputError, ParameterError):
            raise
        except Exception as error:  # every file system has errors of its own
            raise InputError(f'cannot read "{self.url}": {first_line(error)}') from error


def is_address(path: Any) -> bool:
    """Whether `path` is an address, such as ``s3://bucket/table.parquet``."""
    return isinstance(path, str) and ADDRESS.match(path) is not None


def is_paths(X: Any) -> bool:
    """Whether `X` is a path or address, or a list of some."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(isinstance(path, str | PathLike) for path in X)
    return isinstance(X, str | PathLike)


def is_several(X: Any) -> bool:
    """Whether `X`, which `is_paths`, is more than the path of one file: a list, a folder, a pattern, or an address."""
    return isinstance(X, list | tuple) or is_address(X) or Path(X).is_dir() or _is_pattern(X)


def find_files(paths: Any, storage_options: Mapping[str, Any] | None = None) -> list[Location]:
    """The files that `paths` names, in the order of a list, then of their names.

    Of a folder, these are the files with a suffix that can be read, whose names do not start with ``.`` or ``_``.
    """
    if not is_paths(paths):
        raise InputError(
            f"paths must be a path, an address, a pattern, a folder, or a list of them; got {type(paths).__name__}"
        )
    files = [
        location
        for path in (paths if isinstance(paths, list | tuple) else [paths])
        for location in (
            _at_address(str(path), storage_options or {})
            if is_address(path) and not str(path).lower().startswith(LOCAL)
            else _on_this_machine(path)
        )
    ]
    urls = [location.url for location in files]
    if len(set(urls)) < len(urls):
        twice = next(url for url in urls if urls.count(url) > 1)
        raise InputError(f'"{twice}" is named more than once: name each file once')
    return files


def _is_pattern(path: Any) -> bool:
    return bool(PATTERN.intersection(str(path))) and not Path(path).exists()


def _on_this_machine(path: Any) -> list[Location]:
    if is_address(path):
        path = url2pathname(urlsplit(path).path)
    path = Path(path)
    if path.is_dir():
        files = [path / name for name in sorted(os.listdir(path)) if _is_table(name) and (path / name).is_file()]
        _check_any(files, NO_TABLES, path)
    elif _is_pattern(path):
        files = sorted(file for file in map(Path, glob(str(path), recursive=True)) if file.is_file())
        _check_any(files, NO_MATCH, path)
    else:
        files = [path]
    for file in files:
        check_file(file)
    return [Location(str(file)) for file in files]


def _at_address(url: str, options: Mapping[str, Any]) -> list[Location]:
    """Files at an address. Servers of web pages have no folders, so an address without ``/`` at its end is a file."""
    with Location(url, options).errors():
        system, path = _file_system(url, options)
        if PATTERN.intersection(path):
            files = sorted(system.glob(path))
            _check_any(files, NO_MATCH, url)
        elif url.endswith("/") or (not url.lower().startswith(WEB) and system.isdir(path)):
            files = sorted(name for name in system.ls(path, detail=False) if _is_table(name))
            _check_any(files, NO_TABLES, url)
        else:
            return [Location(url, options)]
        return [Location(system.unstrip_protocol(file), options) for file in files]


def _check_any(files: list[Any], problem: str, place: Any) -> None:
    if not files:
        raise InputError(problem.format(place))


def _is_table(path: str) -> bool:
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return name.lower().endswith(READABLE) and not name.startswith((".", "_"))


def _file_system(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of an address, and the path of the file in it."""
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url, **options)
    except ModuleNotFoundError as error:
        raise ParameterError(f'reading {url} needs one more package. Run: pip install "coterie[cloud]"') from error
    except ImportError as error:  # fsspec says which package the protocol needs
        raise ParameterError(f"reading {url} needs one more package: {first_line(error)}") from error
    return system, path
