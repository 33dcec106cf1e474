"""A server of the app in a thread of the tests, and a client with access to it."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra app is not installed")
pytest.importorskip("uvicorn", reason="the extra app is not installed")
pytest.importorskip("cyclopts", reason="the extra cli is not installed")

from coterie.app.server import Server

from .app_client import Client
from .page_visits import open_page  # noqa: F401  fixture of all tests of the page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The start folder of the server, and a folder beside it that pages must not read."""
    root = tmp_path_factory.mktemp("app")
    (root / "start").mkdir()
    return root / "start"


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with Server(state=tmp_path_factory.mktemp("state"), folder=folder) as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    return Client(server.port, server.token)


@pytest.fixture
def penguins(client):
    """The client, with the demo table open and no runs."""
    client.post("/api/open", {"demo": "penguins"})
    return client
