"""Files that appear whole or not at all: written under a temporary name in the same folder, then moved."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import socket
import stat
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from coterie.core.errors import ParameterError

DAY = 86_400.0  # seconds after which a temporary file of another machine counts as left over
LONGEST_SUFFIX = 16  # bytes: longer ones are no file type, and names are limited to 255 bytes
TEMPORARY = re.compile(r"\.coterie-([0-9a-f]{12})-([0-9]+)-[0-9a-f]{12}\.(part|old)(\..*)?")


def place_of(path: Path) -> Path:
    """The file itself, which a symbolic link may point to."""
    return Path(os.path.realpath(path))


def check_regular(path: Path) -> None:
    """Reject devices and pipes, which a file must not replace."""
    if path.exists() and not path.is_file():
        raise ParameterError(f'cannot write "{path}": it is not a regular file. Give the name of another file.')


def exists(path: Path) -> FileExistsError:
    """The error for a file that must not be replaced."""
    return FileExistsError(errno.EEXIST, "there is a file already: overwrite=True replaces it", str(path))


def write_whole(path: Path, data: bytes, overwrite: bool) -> None:
    """Write `data` to the file at `path`; if that fails, the file stays as it was."""
    place = place_of(path)
    check_regular(place)
    part = begin(place)
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        move(part, place, overwrite)
    finally:
        part.unlink(missing_ok=True)
    keep_folder(place.parent)


def begin(place: Path) -> Path:
    """Create an empty temporary file for `place`."""
    remove_left_over(place.parent)
    part = temporary_name(place, "part")
    mode = 0o600 if place.exists() else 0o666  # a file that is replaced may be private
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    return part


def temporary_name(place: Path, what: str) -> Path:
    """A name in the folder of `place` that no other process on any machine uses; it has the same suffix."""
    suffix = place.suffix.lower()
    suffix = suffix if len(os.fsencode(suffix)) <= LONGEST_SUFFIX else ""
    return place.with_name(f".coterie-{_machine()}-{os.getpid()}-{secrets.token_hex(6)}.{what}{suffix}")


def move(part: Path, place: Path, overwrite: bool) -> None:
    """Give a temporary file its final name; a file that it replaces leaves it its mode and owner."""
    if not overwrite:
        try:
            os.link(part, place)  # unlike a rename, it fails where another file has appeared meanwhile
            return
        except FileExistsError:
            raise exists(place) from None
        except OSError:  # a file system without links
            if place.exists():
                raise exists(place) from None
    elif place.exists():
        _take_over(place.stat(), part)
    os.replace(part, place)


def _take_over(before: os.stat_result, part: Path) -> None:
    with suppress(OSError, AttributeError):  # only an administrator may do so, and not on every system
        os.chown(part, before.st_uid, before.st_gid)
    with suppress(OSError):  # file systems without modes
        os.chmod(part, stat.S_IMODE(before.st_mode))


def keep_folder(folder: Path) -> None:
    """Flush the folder, so that new names outlive a loss of power."""
    with suppress(OSError):  # not all systems can open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_left_over(folder: Path) -> None:
    """Remove temporary files of processes that were killed; never those of a process that may be running."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = TEMPORARY.fullmatch(entry.name)
            if name is not None and _is_left_over(entry, name[1], int(name[2])):
                with suppress(OSError):
                    os.unlink(entry.path)


def _is_left_over(entry: os.DirEntry[str], machine: str, process: int) -> bool:
    try:
        age = time.time() - entry.stat(follow_symlinks=False).st_mtime
    except OSError:  # it is gone already
        return False
    if machine != _machine() or os.name == "nt":  # Windows cannot ask for a process without ending it
        return age > DAY
    return not _is_running(process)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it runs, and is another user's
        return True
    return True


@cache
def _machine() -> str:
    """Twelve characters for this machine since it was started, and the container: process numbers are those of both."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # Linux alone
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
