"""The server of the app: it listens first, then loads the libraries while the browser opens."""

import os
import secrets
import socket
import sys
import tempfile
import threading
import webbrowser
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import uvicorn

from coterie.app.events import Events
from coterie.app.routes import application
from coterie.app.session_loader import SessionLoader
from coterie.errors import ParameterError

LOCAL = "127.0.0.1"
SHUTDOWN = 3  # seconds for open requests


class _Uvicorn(uvicorn.Server):
    """Ends the streams of events first, because it waits for open connections."""

    def __init__(self, config: uvicorn.Config, events: Events) -> None:
        super().__init__(config)
        self._events = events

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._events.close()
        super().handle_exit(sig, frame)


class Invitation:
    """A private file that leads the browser to an address, which other users could see in the arguments of processes.

    It is in the home folder, and not hidden there: browsers in a sandbox can read no other private files.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.path: Path | None = None

    def open(self) -> None:
        """Write the file, which only this user can read, and open it in the browser."""
        home = Path.home()
        folder = home if os.access(home, os.W_OK) else None
        descriptor, name = tempfile.mkstemp(".html", "coterie-app-", folder)
        self.path = Path(name)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={self.url}">')
        webbrowser.open(self.path.as_uri())

    def delete(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class Server:
    """A server in a thread of this process: ``with Server(state=folder) as server: ...``.

    Parameters
    ----------
    path : Path or None, default=None
        Table to open. None opens the last workspace, if there is one.
    host : str, default='127.0.0.1'
        Address to listen on.
    port : int, default=0
        Port; 0: any free port.
    state : Path or None, default=None
        Folder for workspaces. None: the folder of this user.
    folder : Path or None, default=None
        Start folder: the page can open tables below it. None: the current folder.
    """

    def __init__(
        self, path: Path | None = None, *, host: str = LOCAL, port: int = 0, state: Path | None = None,
        folder: Path | None = None,
    ) -> None:  # fmt: skip
        self.host, self.token = host, secrets.token_urlsafe(24)
        self.socket = _listening(host, port)
        self.port = int(self.socket.getsockname()[1])
        self.events = Events()
        self.loader = SessionLoader(self.events, folder or Path.cwd(), state, path)
        self.invitation = Invitation(self.url)
        app = application(self.loader, self.events, self.token, host, self.port, self.invitation.delete)
        config = uvicorn.Config(
            app, log_level="error", access_log=False, lifespan="off", server_header=False, date_header=False,
            timeout_graceful_shutdown=SHUTDOWN, ws="none",
        )  # fmt: skip
        self._uvicorn = _Uvicorn(config, self.events)
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Address without the token."""
        name = LOCAL if self.host in ("0.0.0.0", "::") else self.host
        return f"http://[{name}]:{self.port}/" if ":" in name else f"http://{name}:{self.port}/"

    @property
    def url(self) -> str:
        """Address with the token, which gives access."""
        return f"{self.address}?token={self.token}"

    def run(self, *, browser: bool) -> None:
        """Serve until Ctrl-C; open the browser first if `browser`."""
        print(f"coterie app: {self.url}", flush=True)
        if self.host not in (LOCAL, "localhost", "::1"):
            print(
                f"Warning: every machine that can reach {self.host} can connect. Whoever has this address can read "
                "the tables below this folder; the connection is not encrypted.",
                file=sys.stderr,
            )  # fmt: skip
        self.loader.start()
        if browser:
            threading.Thread(target=self.invitation.open, daemon=True).start()
        else:
            print("Open this address in a browser. Ctrl-C stops the server.", file=sys.stderr)
        try:
            self._uvicorn.run(sockets=[self.socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._close()

    def __enter__(self) -> Self:
        self.loader.start()
        run = partial(self._uvicorn.run, sockets=[self.socket])
        self._thread = threading.Thread(target=run, name="coterie-server", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.events.close()
        self._uvicorn.should_exit = True
        if self._thread is not None:
            self._thread.join(2 * SHUTDOWN)
        self._close()

    def _close(self) -> None:
        self.events.close()
        self.invitation.delete()
        self.loader.close()
        self.socket.close()


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens on an address."""
    if not 0 <= port < 1 << 16:
        raise ParameterError(f"--port must be from 0 (any free port) to 65535; got {port}.")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        advice = "use another --port, or 0 for any free one" if port else "use another --host"
        raise ParameterError(f"cannot listen on {host}, port {port}: {error.strerror}; {advice}.") from error


def serve(path: Path | None, *, host: str, port: int, browser: bool) -> None:
    """Run the app until Ctrl-C; a path that cannot be a table is an error before anything else happens."""
    if path is not None:
        from coterie.data.tables.read_errors import check_table_file  # loads NumPy

        check_table_file(path)
    server: Any = Server(path, host=host, port=port)
    server.run(browser=browser)
