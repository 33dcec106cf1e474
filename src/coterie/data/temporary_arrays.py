"""Arrays in temporary files instead of memory; the files have no name, and are deleted with the array."""

import errno
import math
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from coterie import machine
from coterie.core.formatting import format_bytes
from coterie.errors import InputError

LARGE = Path("/var/tmp")  # folder for large temporary files: /tmp is in memory on many systems
SMALL = 1 << 26  # arrays up to this size are always in memory
SHARE = 4  # a larger array is in memory if it needs less than this fraction of the free memory
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def empty(shape: tuple[int, ...], dtype: Any, share: int = SHARE) -> np.ndarray[Any, Any]:
    """An uninitialised array: in memory if it needs less than 1 / `share` of what is free, or in a temporary file."""
    return np.empty(shape, dtype) if is_small(shape, dtype, share) else mapped_zeros(shape, dtype)


def is_small(shape: tuple[int, ...], dtype: Any, share: int = SHARE) -> bool:
    """Whether an array of this shape should be in memory."""
    nbytes = _size(shape, dtype)
    return nbytes <= SMALL or nbytes < machine.free_memory() // share


def mapped_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """Zeros in a memory-mapped temporary file without a name, which the system deletes with the array."""
    nbytes = _size(shape, dtype)
    if nbytes == 0:
        return np.zeros(shape, dtype)
    with temporary_file(nbytes) as file:
        mapped = mmap.mmap(file.fileno(), nbytes)  # keeps its own reference to the file
    return np.frombuffer(mapped, dtype).reshape(shape)


def temporary_file(nbytes: int = 0) -> IO[bytes]:
    """A temporary file without a name, for which `nbytes` are allocated on disk."""
    if nbytes > shutil.disk_usage(folder()).free:
        raise _disk_full(nbytes)
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile(dir=folder()))
        with convert_disk_errors(nbytes):
            _allocate(file.fileno(), nbytes)
        stack.pop_all()
    return file


class GrowingArray:
    """Rows that are appended until their number is known: in memory, or in a temporary file once they need too much."""

    def __init__(self, width: int, dtype: Any) -> None:
        self.width, self.dtype = width, np.dtype(dtype)
        self._rows, self._blocks = 0, list[np.ndarray[Any, Any]]()
        self._file: IO[bytes] | None = None

    @property
    def _nbytes(self) -> int:
        return _size((self._rows, self.width), self.dtype)

    def append(self, rows: np.ndarray[Any, Any]) -> None:
        self._rows += len(rows)
        if self._file is None and not is_small((self._rows, self.width), self.dtype):
            self._file = temporary_file(self._nbytes)
            for block in self._blocks:
                self._write(block)
            self._blocks.clear()
        if self._file is None:
            self._blocks.append(rows.astype(self.dtype))  # a copy: a stream may use its memory again
        else:
            self._write(rows)

    def _write(self, rows: np.ndarray[Any, Any]) -> None:
        assert self._file is not None
        with convert_disk_errors(self._nbytes):
            self._file.write(np.ascontiguousarray(rows, self.dtype).data)

    def close(self) -> None:
        """Delete the temporary file."""
        if self._file is not None:
            self._file.close()

    def finish(self) -> np.ndarray[Any, Any]:
        """All rows (n, width)."""
        if self._file is None:
            return np.concatenate(self._blocks)
        with self._file, convert_disk_errors(self._nbytes):
            self._file.flush()
            self._file.truncate(self._nbytes)
            mapped = mmap.mmap(self._file.fileno(), self._nbytes)
        return np.frombuffer(mapped, self.dtype).reshape(self._rows, self.width)


@contextmanager
def convert_disk_errors(nbytes: int) -> Iterator[None]:
    """Context that raises `InputError` if the disk is too small for a temporary file of about `nbytes`."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise _disk_full(nbytes) from error


def folder() -> Path:
    """Folder of temporary files: TMPDIR, or the folder for large ones."""
    configured = os.environ.get("TMPDIR")
    if configured and not _can_write(Path(configured)):
        raise InputError(f"TMPDIR={configured!r} is not a folder with write permission: set it to another, or unset it")
    if configured:
        return Path(configured)
    return LARGE if _can_write(LARGE) else Path(tempfile.gettempdir())


def _can_write(path: Path) -> bool:
    return path.is_dir() and os.access(path, os.W_OK | os.X_OK)


def _allocate(descriptor: int, nbytes: int) -> None:
    """Allocate disk space now: if it were missing when a page is written, the process would be killed."""
    if nbytes == 0:
        return
    try:
        os.posix_fallocate(descriptor, 0, nbytes)
    except AttributeError:  # not available on macOS
        os.ftruncate(descriptor, nbytes)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
        os.ftruncate(descriptor, nbytes)  # not supported by the file system


def _disk_full(nbytes: int) -> InputError:
    free = shutil.disk_usage(folder()).free
    return InputError(
        f"a table that does not fit into memory needs {format_bytes(nbytes)} on disk, but only "
        f"{format_bytes(free)} are free in {folder()}: set TMPDIR to a folder with more free space"
    )


def _size(shape: tuple[int, ...], dtype: Any) -> int:
    return int(math.prod(shape) * np.dtype(dtype).itemsize)
