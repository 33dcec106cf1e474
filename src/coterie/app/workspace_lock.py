"""The lock of a workspace: one server at a time writes to its folder."""

import errno
import os
import sys
from pathlib import Path

from coterie.app.failures import FieldError

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # others: the file system has no locks, and the server does without


class WorkspaceInUse(FieldError):
    """Another server has this workspace open."""

    def __init__(self) -> None:
        super().__init__(
            "This workspace is open in another coterie app. Use the page of that one, or stop it with Ctrl-C and try "
            "again.", "file", 409,
        )  # fmt: skip


class WorkspaceLock:
    """The right to write to a workspace; the operating system ends it with the process, even after a crash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError as error:
            if error.errno in HELD:
                self.release()
                raise WorkspaceInUse from error

    def release(self) -> None:
        os.close(self._descriptor)
