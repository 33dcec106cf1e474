"""Arrays on disk instead of in memory, in files that have no name and vanish with the array."""

from __future__ import annotations

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
from coterie.core.formatting import in_bytes
from coterie.errors import InputError

LARGE = Path("/var/tmp")  # where large temporary files belong: /tmp is memory on many systems
SMALL = 1 << 26  # bytes that are in memory whatever is free
SHARE = 4  # a larger array may take this part of the memory that is free
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def space(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """An array to be filled: in memory where it leaves most of that free, else in `room`."""
    nbytes = _size(shape, dtype)
    if nbytes <= SMALL or nbytes < machine.free_memory() // SHARE:
        return np.empty(shape, dtype)
    return room(shape, dtype)


def room(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """An array of zeros in a file that is mapped into memory: the system keeps in memory what it has room for.

    The file has no name. It is gone when the array is, or when the process is, however that ends.
    """
    nbytes = _size(shape, dtype)
    if nbytes == 0:
        return np.zeros(shape, dtype)
    with file(nbytes) as scratch:
        mapped = mmap.mmap(scratch.fileno(), nbytes)  # holds the file open for itself
    return np.frombuffer(mapped, dtype).reshape(shape)


def file(nbytes: int = 0) -> IO[bytes]:
    """A file without a name, of `nbytes` zeros that the disk has set aside for it."""
    if nbytes > shutil.disk_usage(folder()).free:
        raise _too_small(nbytes)
    with ExitStack() as opened:
        scratch = opened.enter_context(tempfile.TemporaryFile(dir=folder()))
        with full_disk_in_words(nbytes):
            _set_aside(scratch.fileno(), nbytes)
        opened.pop_all()
    return scratch


@contextmanager
def full_disk_in_words(nbytes: int) -> Iterator[None]:
    """A scratch file that finds no more room, of the `nbytes` or so that it needs, as an `InputError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise _too_small(nbytes) from error


def folder() -> Path:
    """Where scratch files are: where TMPDIR says, else where large ones belong."""
    told = os.environ.get("TMPDIR")
    if told and not _can_write(Path(told)):
        raise InputError(f"TMPDIR is {told!r}, no folder that can be written to: set it to another, or unset it")
    if told:
        return Path(told)
    return LARGE if _can_write(LARGE) else Path(tempfile.gettempdir())


def _can_write(where: Path) -> bool:
    return where.is_dir() and os.access(where, os.W_OK | os.X_OK)


def _set_aside(descriptor: int, nbytes: int) -> None:
    """So many bytes on the disk now, since a page that finds none later would end the process."""
    if nbytes == 0:
        return
    try:
        os.posix_fallocate(descriptor, 0, nbytes)
    except AttributeError:  # macOS has no such call
        os.ftruncate(descriptor, nbytes)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
        os.ftruncate(descriptor, nbytes)  # a file system that cannot promise


def _too_small(nbytes: int) -> InputError:
    where = folder()
    free = shutil.disk_usage(where).free
    return InputError(
        f"a table that does not fit into memory needs {in_bytes(nbytes)} on disk, and {in_bytes(free)} "
        f"are free in {where}: set TMPDIR to a folder with more room"
    )


def _size(shape: tuple[int, ...], dtype: Any) -> int:
    return int(math.prod(shape) * np.dtype(dtype).itemsize)
