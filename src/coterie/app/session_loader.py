"""Loads the libraries and the first table in a thread, so that the server can answer at once."""

from __future__ import annotations

import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from coterie.app.events import Events

if TYPE_CHECKING:
    from coterie.app.session import Session

MAX_WAIT = 120.0  # seconds


VIEWS = (
    "charts", "cluster_view", "comparison", "downloads", "row_view", "selected_rows", "trace_view", "views",
    "workspace_view",
)  # fmt: skip


class SessionLoader:
    """The session, as soon as it is there."""

    def __init__(self, events: Events, folder: Path, state: Path | None, path: Path | None) -> None:
        self.events, self.folder, self.state, self.path = events, folder, state, path
        self.problem: dict[str, object] | None = None  # why the first table could not be opened
        self._session: Session | None = None
        self._is_ready = threading.Event()
        self._is_closed = False

    def start(self) -> None:
        threading.Thread(target=self._load, name="coterie-loader", daemon=True).start()

    @property
    def is_ready(self) -> bool:
        return self._is_ready.is_set()

    def session(self) -> Session:
        """Wait for the session."""
        if not self._is_ready.wait(MAX_WAIT) or self._session is None:
            raise RuntimeError("the libraries could not be loaded")
        return self._session

    def close(self) -> None:
        self._is_closed = True
        if self._session is not None:
            self._session.close()

    def _load(self) -> None:
        try:
            from coterie.app.session import Session

            _load_everything()
            self._session = session = Session(self.events, self.folder, self.state)
            self._open_first(session)
        finally:
            self._is_ready.set()
            self.events.publish("workspace", {"revision": 0 if self._session is None else self._session.revision})

    def _open_first(self, session: Session) -> None:
        from coterie.app.failures import as_error

        try:
            if self.path is not None:
                session.open_file(self.path.resolve(strict=True))
            elif workspaces := session.store.all():
                session.open_workspace(workspaces[0])
        except Exception as error:  # the page shows it, and offers other tables
            self.problem = as_error(error)


def _load_everything() -> None:
    """Import all modules before threads compute.

    While BLAS is asked for its number of threads, the list of libraries is locked: a module that another thread imports
    then would wait for that lock with Python's own lock, and both threads would wait forever.
    """
    from coterie import machine
    from coterie.app.algorithm_view import algorithm_views

    for name in VIEWS:
        import_module(f"coterie.app.{name}")
    algorithm_views(None)  # imports all estimators
    with machine.one_blas_thread:
        pass
