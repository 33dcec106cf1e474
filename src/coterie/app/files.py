"""Files that the page may open: below the start folder, and uploads in a private folder."""

import os
import re
import sys
import tempfile
from pathlib import Path

from coterie.app.failures import FieldError
from coterie.core.formatting import escaped
from coterie.data.tables.suffixes import READABLE

MAX_NAME = 120  # characters of the name of an upload
MAX_PATH = 4096  # characters of a path, or of the name of a column
MAX_LISTED = 200  # tables of the start folder that are listed
INVALID = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')


def state_folder() -> Path:
    """A folder of this user for workspaces; a temporary one if it cannot be written."""
    home = Path.home()
    if named := os.environ.get("COTERIE_STATE_DIR"):
        folder = Path(named)
    elif sys.platform == "darwin":
        folder = home / "Library" / "Application Support" / "coterie"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "coterie"
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME", home / ".local" / "state")) / "coterie"
    try:
        return private_folder(folder)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="coterie-"))


def private_folder(path: Path) -> Path:
    """Make a folder that only this user can read."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)
    return path


def table_below(folder: Path, name: str) -> Path:
    """The path of a table below the start folder; links and ``..`` must not lead out of it.

    The error is the same for files that do not exist and files elsewhere, so that it tells nothing about these.
    """
    root = folder.resolve()
    try:
        given = next((path for path in _tables(root) if path.name != name and escaped(path.name) == name), root / name)
        path = given.resolve()
        if path.is_relative_to(root) and path.is_file():
            return path
    except (OSError, ValueError, RuntimeError):
        pass
    raise FieldError(
        f'no table "{name}" below the folder of the app, "{escaped(root)}": start coterie app in its '
        "folder, or drop it on the page.", "file"
    )  # fmt: skip


def tables_in(folder: Path) -> list[str]:
    """Names of the tables in the start folder."""
    return sorted(escaped(path.name) for path in _tables(folder))[:MAX_LISTED]


def _tables(folder: Path) -> list[Path]:
    try:
        return [
            Path(entry.path) for entry in os.scandir(folder)
            if not entry.name.startswith(".") and Path(entry.name).suffix.lower() in READABLE and entry.is_file()
        ]  # fmt: skip
    except OSError:
        return []


def upload_name(name: str) -> str:
    """A safe file name for an upload: the last part of its path, without special characters."""
    last = INVALID.sub("_", re.split(r"[/\\]", name)[-1]).strip(" .")
    stem, suffix = Path(last).stem, Path(last).suffix
    if suffix.lower() not in READABLE:
        endings = ", ".join(READABLE)
        raise FieldError(f'cannot read "{last or name}": tables end in {endings}.', "file")
    return stem[: MAX_NAME - len(suffix)] + suffix
