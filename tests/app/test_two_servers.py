"""Two servers of one user: each has its own workspace, and neither writes to that of the other."""

import pytest

from coterie.app import store
from coterie.app.server import Server

from .app_client import Client


@pytest.fixture
def state(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "\n".join(f"{i % 7},{i * i % 11}" for i in range(40)))
    return tmp_path / "state"


@pytest.fixture
def start(state, tmp_path):
    """A function that starts a server in the folder of the table, as a context."""

    def server():
        return Server(state=state, folder=tmp_path)

    return server


def client_of(server):
    client = Client(server.port, server.token)
    client.workspace()
    return client


def ks(client):
    return [run["k"] for run in client.workspace()["runs"]]


def test_a_workspace_is_open_in_one_server_at_a_time_and_nothing_is_lost(start):
    with start() as first:
        left = client_of(first)
        left.post("/api/open", {"path": "t.csv"})
        left.fit(algorithm="kmeans", k=2)
        with start() as second:
            right = client_of(second)
            view = right.workspace()
            assert view["table"] is None
            assert "is open in another coterie app" in view["problem"]["message"]
            refused = right.post("/api/open", {"recent": view["recent"][0]["id"]}, status=409)
            assert refused.error["message"] == view["problem"]["message"]
            right.post("/api/open", {"path": "t.csv"})  # the same file, in a workspace of its own
            assert ks(right) == []
            right.fit(algorithm="kmeans", k=3)
            left.fit(algorithm="kmeans", k=4)
            assert (ks(left), ks(right)) == ([2, 4], [3])
        left.post("/api/open", {"recent": left.workspace()["recent"][0]["id"]})  # one that it has open itself
        left.post("/api/open", {"demo": "moons"})
    with start() as third:
        client = client_of(third)
        recent = [entry["id"] for entry in client.workspace()["recent"] if entry["name"] == "t.csv"]
        assert sorted(ks(client) for workspace in recent if client.post("/api/open", {"recent": workspace})) == [
            [2, 4],
            [3],
        ]


def test_a_workspace_that_another_server_has_open_is_not_deleted_with_the_oldest(start, state, monkeypatch):
    monkeypatch.setattr(store, "MAX_WORKSPACES", 1)
    with start() as first, start() as second:
        left, right = client_of(first), client_of(second)
        left.post("/api/open", {"path": "t.csv"})
        for _ in range(2):
            right.post("/api/open", {"demo": "moons"})
        assert {workspace.summary()[0].name for workspace in store.Store(state).all()} == {"t.csv", "moons.csv"}
        assert left.fit(algorithm="kmeans", k=2)["k"] == 2
