"""Workspaces on disk: one folder each, written after every change, and one zip file to pass on.

A workspace contains no executable code: JSON, arrays of labels (.npy without pickles) and model files.
"""

import io
import json
import re
import secrets
import shutil
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from coterie.app.failures import FieldError
from coterie.app.files import private_folder, upload_name
from coterie.app.schema import checked
from coterie.app.state import History, Source
from coterie.app.state_types import INFO, SUMMARY, WORKSPACE
from coterie.app.workspace_lock import WorkspaceInUse, WorkspaceLock
from coterie.core.arrays import Array
from coterie.core.writing import write_whole
from coterie.errors import InputError

FORMAT = 1
MAX_WORKSPACES = 30
MAX_UNPACKED = 4 << 30  # bytes of a workspace file
MAX_STATE = 256 << 20  # bytes of a JSON file in it
MEMBERS = re.compile(r"workspace\.json|runs/r[0-9]{1,9}/(info\.json|labels\.npy|model\.safetensors)|table/[^/\\]+")
DAMAGED = "the file is not a workspace of coterie app, or it is damaged."
OTHER_RESULT = "The stored result does not belong to this table: run it again."
SUFFIX = ".coterie"


class Workspace:
    """The folder of one workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def modified(self) -> float:
        """Time of the last change."""
        return (self.folder / "workspace.json").stat().st_mtime

    def summary(self) -> tuple[Source, dict[str, Any]]:
        """The table and a few numbers, without the history."""
        try:
            content = checked(SUMMARY, self._json("summary.json"))
            return Source(**content["source"]), content["about"]
        except (OSError, ValueError):
            source, _, about = self.load()
            return source, about

    def delete(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def delete_unless_saved(self) -> None:
        """Delete the folder of a table that could not be opened."""
        if not (self.folder / "workspace.json").exists():
            self.delete()

    def table_folder(self) -> Path:
        return private_folder(self.folder / "table")

    def save(self, source: Source, history: History, about: dict[str, Any]) -> None:
        """Write the state; a crash leaves the earlier one."""
        content = {"format": FORMAT, "source": vars(source), "about": about, "history": asdict(history)}
        self._write("workspace.json", json.dumps(content, allow_nan=False).encode())
        # Only the list of recent workspaces reads this file, and it can do without.
        summary = json.dumps({"source": vars(source), "about": about}, allow_nan=False)
        (self.folder / "summary.json").write_text(summary, encoding="utf-8")

    def load(self) -> tuple[Source, History, dict[str, Any]]:
        try:
            content = self._json("workspace.json")
            if isinstance(content, dict) and isinstance(content.get("format"), int) and content["format"] > FORMAT:
                raise InputError("the workspace was written by a newer version of coterie: update coterie.")
            content = checked(WORKSPACE, content, "workspace")
            source, history = Source(**content["source"]), History.from_dict(content["history"])
            if not all(state.is_consistent for state in history.states):
                raise ValueError("inconsistent runs")
        except FieldError as error:
            raise InputError(
                f"the workspace cannot be opened: an older version of coterie wrote it, or it is damaged ({error}) "
                "Open its table again."
            ) from error
        except (OSError, ValueError, RecursionError, TypeError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(DAMAGED) from error
        if source.is_copy:  # the folder may have moved
            source = Source(**{**vars(source), "path": str(self.folder / "table" / Path(source.path).name)})
        return source, history, content.get("about", {})

    def save_run(self, run_id: str, info: dict[str, Any], labels: Array | None, model: Any) -> None:
        """Write the result of a run; its information is last, so that it is whole if it exists."""
        from coterie.persistence import save

        private_folder(self.folder / "runs" / run_id)
        if labels is not None:
            buffer = io.BytesIO()
            np.save(buffer, labels, allow_pickle=False)
            self._write(f"runs/{run_id}/labels.npy", buffer.getvalue())
        if model is not None:
            save(model, self.folder / "runs" / run_id / "model.safetensors", overwrite=True)
        self._write(f"runs/{run_id}/info.json", json.dumps(info, allow_nan=False).encode())

    def run_info(self, run_id: str) -> dict[str, Any] | None:
        """What is stored about a result; None if there is none, or if it is damaged."""
        try:
            info: dict[str, Any] = checked(INFO, self._json(f"runs/{run_id}/info.json"))
        except (OSError, ValueError, RecursionError):
            return None
        return info if all(cluster["label"] < (info["k"] or 0) for cluster in info["clusters"]) else None

    def run_labels(self, run_id: str, n_rows: int, k: int) -> Array:
        """The clusters of the rows that a run used."""
        try:
            labels = np.load(self.folder / "runs" / run_id / "labels.npy", mmap_mode="r", allow_pickle=False)
            if labels.shape != (n_rows,) or labels.dtype.kind not in "iu" or labels.min() < -1 or labels.max() >= k:
                raise ValueError("not labels of these rows")
        except Exception as error:  # the parser of NumPy's header raises errors of many kinds
            raise FieldError(OTHER_RESULT, "run", 409) from error
        return np.array(labels)

    def run_model(self, run_id: str) -> Any:
        from coterie.persistence import load

        path = self.folder / "runs" / run_id / "model.safetensors"
        return load(path) if path.exists() else None

    def packed(self) -> bytes:
        """The workspace as a zip file."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path in sorted(self.folder.rglob("*")):
                name = path.relative_to(self.folder).as_posix()
                if path.is_file() and not path.is_symlink() and MEMBERS.fullmatch(name):
                    archive.write(path, name)
        return buffer.getvalue()

    def _json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_bytes())

    def _write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        private_folder(path.parent)
        write_whole(path, data, overwrite=True)


class Store:
    """All workspaces of a user, newest first."""

    def __init__(self, folder: Path) -> None:
        self.folder = private_folder(folder / "workspaces")

    def create(self) -> Workspace:
        """A new empty workspace; the oldest ones are deleted, unless a server has them open."""
        for old in self.all()[MAX_WORKSPACES - 1 :]:
            with suppress(WorkspaceInUse, OSError):
                WorkspaceLock(old.folder).release()
                old.delete()
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        return Workspace(private_folder(self.folder / name))

    def all(self) -> list[Workspace]:
        """Workspaces that were saved, by the time of their last change."""
        files = [(path.stat().st_mtime, path.parent) for path in self.folder.glob("*/workspace.json")]
        return [Workspace(folder) for _, folder in sorted(files, reverse=True)]

    def find(self, workspace_id: str) -> Workspace:
        for workspace in self.all():
            if workspace.id == workspace_id:
                return workspace
        raise FieldError("This workspace no longer exists.", "file")

    def of_source(self, source: Source) -> Iterator[Workspace]:
        """Workspaces of a file that has not changed since, newest first."""
        for workspace in self.all():
            try:
                other = workspace.summary()[0]
            except InputError:
                continue
            if (other.path, other.size, other.modified) == (source.path, source.size, source.modified):
                yield workspace

    def unpack(self, data: bytes) -> Workspace:
        """A new workspace from a zip file; only known names are read, up to a total size."""
        workspace = self.create()
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [each for each in archive.infolist() if _is_member(each)]
                if sum(each.file_size for each in members) > MAX_UNPACKED:
                    raise InputError("the workspace file is too large.")
                for member in members:
                    target = workspace.folder / member.filename
                    private_folder(target.parent)
                    with archive.open(member) as source, target.open("wb") as copy:
                        shutil.copyfileobj(source, copy)
            workspace.load()
        except BaseException as error:
            workspace.delete()
            damages = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, NotImplementedError)
            if isinstance(error, InputError) or not isinstance(error, damages):
                raise
            raise InputError(DAMAGED) from error
        return workspace


def _is_member(member: zipfile.ZipInfo) -> bool:
    """Whether a file of an archive belongs to a workspace."""
    name = member.filename
    if name.startswith("table/") and name != f"table/{upload_name(name)}":
        raise InputError(f"the workspace contains a table with an invalid name, {name!r}.")
    if name.endswith(".json") and member.file_size > MAX_STATE:
        raise InputError("the workspace file is too large.")
    return MEMBERS.fullmatch(name) is not None
