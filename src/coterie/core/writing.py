"""Write files atomically: under a temporary name in the same folder, then renamed."""

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

from coterie.errors import ParameterError

DAY = 86_400.0  # seconds after which a temporary file of another machine is considered left over
LONGEST_SUFFIX = 16  # bytes: longer suffixes are not file types, and names are limited to 255 bytes
TEMPORARY = re.compile(r"\.coterie-([0-9a-f]{12})-([0-9]+)-[0-9a-f]{12}\.(part|old)(\..*)?")


def real_path(path: Path) -> Path:
    """The path with all symbolic links resolved."""
    return Path(os.path.realpath(path))


def check_regular(path: Path) -> None:
    """Reject devices and pipes, which a file must not replace."""
    if path.exists() and not path.is_file():
        raise ParameterError(f'cannot write "{path}": it is not a regular file. Use another file name.')


def check_path(path: Path, overwrite: bool) -> None:
    """Reject a file whose folder does not exist, or that must not be replaced, before any work is done."""
    folder = real_path(path).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder does not exist: create it first", str(folder))
    if path.exists() and not overwrite:
        raise exists(path)


def exists(path: Path) -> FileExistsError:
    """The error for an existing file that must not be replaced."""
    return FileExistsError(errno.EEXIST, "the file exists: pass overwrite=True to replace it", str(path))


def write_whole(path: Path, data: bytes, overwrite: bool) -> None:
    """Write `data` to the file at `path`; if that fails, the existing file does not change."""
    target = real_path(path)
    check_regular(target)
    part = begin(target)
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        move(part, target, overwrite)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(target.parent)


def begin(target: Path) -> Path:
    """Create an empty temporary file for `target`."""
    remove_left_over(target.parent)
    part = temporary_name(target, "part")
    mode = 0o600 if target.exists() else 0o666  # the existing file may be private
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    return part


def temporary_name(target: Path, kind: str) -> Path:
    """A name in the folder of `target` that no other process on any machine uses, with the same suffix."""
    suffix = target.suffix.lower()
    suffix = suffix if len(os.fsencode(suffix)) <= LONGEST_SUFFIX else ""
    return target.with_name(f".coterie-{_machine()}-{os.getpid()}-{secrets.token_hex(6)}.{kind}{suffix}")


def move(part: Path, target: Path, overwrite: bool) -> None:
    """Rename a temporary file to `target`; it takes mode and owner of the file that it replaces."""
    if not overwrite:
        try:
            os.link(part, target)  # unlike a rename, it fails if another file was created meanwhile
            return
        except FileExistsError:
            raise exists(target) from None
        except OSError:  # the file system has no links
            if target.exists():
                raise exists(target) from None
    elif target.exists():
        _copy_owner_and_mode(target.stat(), part)
    os.replace(part, target)


def _copy_owner_and_mode(before: os.stat_result, part: Path) -> None:
    with suppress(OSError, AttributeError):  # only an administrator can do this, and not on every system
        os.chown(part, before.st_uid, before.st_gid)
    with suppress(OSError):  # some file systems have no modes
        os.chmod(part, stat.S_IMODE(before.st_mode))


def sync_folder(folder: Path) -> None:
    """Flush the folder to disk, so that new file names survive a power failure."""
    with suppress(OSError):  # not all systems can open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_left_over(folder: Path) -> None:
    """Remove temporary files of processes that were killed, but not those of a process that may be running."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = TEMPORARY.fullmatch(entry.name)
            if name is not None and _is_left_over(entry, name[1], int(name[2])):
                with suppress(OSError):
                    os.unlink(entry.path)


def _is_left_over(entry: os.DirEntry[str], machine: str, process: int) -> bool:
    try:
        age = time.time() - entry.stat(follow_symlinks=False).st_mtime
    except OSError:  # another process has removed it
        return False
    if machine != _machine() or os.name == "nt":  # os.kill ends the process on Windows
        return age > DAY
    return not _is_running(process)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is a process of another user
        return True
    return True


@cache
def _machine() -> str:
    """Twelve characters that identify the machine, its last boot and the container: process numbers depend on these."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # these files exist on Linux only
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
