"""Every request is answered by a result or a sentence, whatever it contains, and what was stored opens again."""

import json
import os
import threading
import time

import hypothesis
import pytest
from hypothesis import strategies as st

pytest.importorskip("fuzz.app")

from starlette.requests import ClientDisconnect

from coterie import interrupts
from coterie.app.server import Server
from coterie.app.store import OTHER_RESULT, Workspace
from fuzz.app import App, drawn_request
from fuzz.draw import HypothesisDraw
from fuzz.laws.app import folders, prepare, require_same_workspace

from .app_client import Client


@pytest.fixture(scope="module")
def app():
    with folders() as (state, start):
        app = App(state, start)
        try:
            prepare(app)
            yield app
        finally:
            app.close()
        require_same_workspace(state, start, app, app.workspace())


@hypothesis.settings(max_examples=300, deadline=None, derandomize=True, database=None)
@hypothesis.given(data=st.data())
def test_requests_are_answered_and_leave_a_workspace_that_opens_again(app, data):
    app.ask(drawn_request(HypothesisDraw(data)))
    app.workspace()


@pytest.mark.parametrize(
    "path, body, words",
    [
        ("/api/runs", {"k": 10**9}, ["k must be", "whole number from 1 to 344", "1000000000"]),
        ("/api/runs", b'{"k": ' + b"9" * 5000 + b"}", ["k must be", "inf"]),
        ("/api/runs", {"options": {"tol": float("nan")}}, ["options.tol", "finite number", "got nan"]),
        ("/api/runs", {"options": {"tol": float("-inf")}}, ["options.tol must be a finite number"]),
        ("/api/runs", {"criteria": 5}, ["must be one of algorithm", "'criteria'"]),
        ("/api/runs", b"[" * 100_000, ["nested too deeply"]),
        ("/api/runs", [], ["must be an object", "got []"]),
        ("/api/runs/{run}/edit", {"recolor": 5}, ["recolor must be an object", "got 5"]),
        ("/api/runs/{run}/edit", {"merge": ["0", "00"]}, ["merge.0 must be a whole number", "'0'"]),
        ("/api/runs/{run}/edit", {"merge": [0, 0]}, ["merge must be a list", "different"]),
        ("/api/runs/{run}/edit", {"rename": {"0": "\\ud83d"}}, ["rename.0 must be text", "80 letters"]),
        ("/api/runs/{run}/edit", {"rename": {"\\ud83d": "a"}}, ["a name in rename must be the number of a cluster"]),
        ("/api/runs/{run}/edit", {"rename": {"0": "\\u0000"}}, ["without control characters"]),
        ("/api/runs/{run}/cut", {"k": 100_000}, ["k must be a whole number from 1 to 344"]),
        ("/api/runs/{run}/cut", {}, ["k required"]),
        ("/api/current", {"run": "r1/../r2"}, ["run must be null or the id of a run"]),
        ("/api/columns", {"year": 5}, ["year must be an object"]),
        ("/api/open", {"rows": 5}, ["must be one of path, demo, recent", "'rows'"]),
        ("/api/open", {"path": "\\ud83d"}, ["path must be text"]),
        ("/api/rows?rows=0,5000", b"", ["rows.1 must be a whole number from 0 to 343; got 5000"]),
        ("/api/rows?offset=" + "9" * 5000, b"", ["offset must be a whole number"]),
        ("/api/rows?offset=٣", b"", ["offset must be a whole number"]),
        ("/api/upload?nothing=1", b"", ["must be"]),
    ],
)
def test_a_value_that_is_not_declared_is_named_with_what_is_expected(penguins, path, body, words):
    from urllib.parse import quote

    run = penguins.fit(algorithm="ward", k=2)["id"]
    before = penguins.workspace()
    data = body if isinstance(body, bytes) else json.dumps(body).replace("\\\\u", "\\u").encode()
    answer = penguins.ask("POST", quote(path.format(run=run), safe="/?=&,"), data)
    message = answer.error["message"]
    assert answer.status == 400, message
    assert not [text for text in words if text.lower() not in message.lower()], message
    assert len(message) < 600
    after = penguins.workspace()
    assert [after[name] for name in ("runs", "table", "can_undo")] == [
        before[name] for name in ("runs", "table", "can_undo")
    ]


def test_a_page_that_is_closed_while_it_sends_is_no_bug(app, monkeypatch):
    async def stream(_):
        yield b"{"
        raise ClientDisconnect

    monkeypatch.setattr("starlette.requests.Request.stream", stream)
    for path in ("/api/runs", "/api/upload?name=t.csv", "/api/workspace/open"):
        answer = app.post(path, {})
        assert (answer.status, answer.json["error"]["message"]) == (400, "The request is incomplete.")


def test_a_change_that_cannot_be_stored_does_not_happen(penguins, monkeypatch):
    before = penguins.workspace()

    def full(*_):
        raise OSError(28, "No space left on device", "workspace.json")

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "save", full)
        for path, body in (
            ("/api/columns", {"year": {"role": "ignored"}}), ("/api/preparation", {"scale": "none"}),
            ("/api/runs", {"k": 2}), ("/api/current", {"run": None}), ("/api/open", {"demo": "moons"}),
        ):  # fmt: skip
            assert "No space" in penguins.post(path, body, 400).error["message"]
            assert penguins.workspace() == before
    assert penguins.fit(k=2)["id"] == "r1"
    assert penguins.post("/api/undo").json["runs"] == []


def test_a_run_without_a_result_has_no_names_of_clusters(penguins, monkeypatch):
    from coterie.app import session

    monkeypatch.setattr(session, "execute", lambda *_: 1 / 0)
    run = penguins.wait(penguins.start(k=344))
    assert (run["status"], run["k"], run["names"], run["colors"]) == ("failed", 344, [], [])


def edit_stored(workspace, change):
    path = workspace.folder / "workspace.json"
    content = json.loads(path.read_bytes())
    change(content["history"]["now"])
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda now: now["runs"][0]["names"].update({"0": "\ud83d"}), "names.0 must be text"),
        (lambda now: now["runs"][0]["options"].update(tol=float("nan")), "tol must be a finite number"),
        (lambda now: now["runs"][0].update(id="../r1"), "id must be the id of a run"),
        (lambda now: now["columns"].update(nothing={}), 'no column "nothing"'),
        (lambda now: now["runs"][0].update(parent="r1", kind="merge", groups=[0, 0]), "it is damaged"),
        (lambda now: now["runs"].append(now["runs"][0]), "it is damaged"),
        (lambda now: now.update(current="r7"), "it is damaged"),
    ],
)
def test_a_workspace_that_an_older_version_left_unreadable_says_so(tmp_path, change, words):
    with Server(state=tmp_path, folder=tmp_path) as server:
        client = Client(server.port, server.token)
        client.workspace()
        client.post("/api/open", {"demo": "moons"})
        client.fit(algorithm="kmeans", k=2)
        workspace = server.loader.session().workspace
    edit_stored(workspace, change)
    with Server(state=tmp_path, folder=tmp_path) as server:
        client = Client(server.port, server.token)
        view = client.workspace()
        assert view["table"] is None
        assert words in view["problem"]["message"]
        assert words in client.post("/api/open", {"recent": workspace.id}, 400).error["message"]
        assert client.post("/api/open", {"demo": "moons"}).json["table"]["name"] == "moons.csv"


def test_a_stored_result_of_another_model_is_an_error_and_not_a_bug(tmp_path):
    with Server(state=tmp_path, folder=tmp_path) as server:
        client = Client(server.port, server.token)
        client.workspace()
        client.post("/api/open", {"demo": "moons"})
        client.fit(algorithm="ward", k=2)
        info = server.loader.session().workspace.folder / "runs" / "r1" / "info.json"
    info.write_text(json.dumps({**json.loads(info.read_bytes()), "iterations": 3}))
    with Server(state=tmp_path, folder=tmp_path) as server:
        client = Client(server.port, server.token)
        assert client.workspace()["runs"][0]["status"] == "done"
        for name in ("labels", "tree", "clusters/0"):
            answer = client.ask("GET", f"/api/runs/r1/{name}")
            assert (answer.status, answer.error["message"]) == (409, OTHER_RESULT)
        assert client.fit(algorithm="ward", k=2)["k"] == 2


@pytest.fixture
def foreign(tmp_path):
    """A table whose file name is not UTF-8, where the file system has such names."""
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    try:
        path.write_text("a,b\n" + "".join(f"{i % 7},{i * i % 11}\n" for i in range(40)))
    except OSError:
        pytest.skip("file names must be UTF-8 here")
    return path


def test_a_file_name_that_is_not_utf8_is_listed_and_opened(foreign, tmp_path):
    (tmp_path / "plain.csv").write_text("a,b\n1,2\n3,4\n5,9\n")
    (tmp_path / os.fsdecode(b"caf\xe9.parquet")).write_bytes(b"PAR1")
    with Server(state=tmp_path / "state", folder=tmp_path) as server:
        client = Client(server.port, server.token)
        assert client.workspace()["folder"] == ["caf\\xe9.csv", "caf\\xe9.parquet", "plain.csv"]
        assert client.post("/api/open", {"path": "plain.csv"}).json["table"]["name"] == "plain.csv"
        assert client.post("/api/open", {"path": "caf\\xe9.parquet"}, 400).error["message"].endswith(".")
        assert client.post("/api/open", {"path": "caf\\xe9.csv"}).json["table"]["name"] == "caf\\xe9.csv"
        run = client.fit(k=2)["id"]
        for kind in ("report", "table.csv", "command", "workspace"):
            client.get(f"/api/export/{kind}?run={run}")
        assert "rename" in client.get(f"/api/export/python?run={run}&show=1").json["reason"]
    with Server(state=tmp_path / "state", folder=tmp_path) as server:
        assert Client(server.port, server.token).workspace()["table"]["name"] == "caf\\xe9.csv"


class Endless:
    """A computation that ends by an interrupt only."""

    def __init__(self):
        self.begun = threading.Event()

    def __call__(self, *_):
        self.begun.set()
        while True:
            interrupts.check()
            time.sleep(0.01)

    def cancelled(self, client, run):
        """The run after it was cancelled within this computation; other requests are answered before."""
        assert self.begun.wait(30)
        assert client.workspace()["runs"]
        client.delete(f"/api/runs/{run}")
        return client.wait(run)


def test_cancelling_a_choice_of_k_fits_the_best_k_so_far(penguins, monkeypatch):
    from coterie.selection.choose_k_criteria import CRITERIA

    for criterion, kind in (("tendency", "fit"), ("silhouette", "fit"), ("gap", "fit"), ("gap", "choose")):
        with monkeypatch.context() as patch:
            patch.setitem(CRITERIA, criterion, endless := Endless())
            view = endless.cancelled(penguins, penguins.start(algorithm="kmeans", k=[1, 6], kind=kind))
        assert (view["status"], view["stopped"]) == ("done", True), view["error"]
        assert view["choice"]["recommended"] > 1
        assert kind == "choose" or len(view["sizes"]) == view["k"] > 1


def test_cancelling_between_restarts_keeps_the_best_restart(penguins, monkeypatch):
    from coterie.core.loop import Descent

    start, endless = Descent.start, Endless()
    monkeypatch.setattr(Descent, "start", lambda self, rng: start(self, rng) if self.run < 2 else endless())
    run = penguins.start(algorithm="kmeans", k=3, options={"n_init": 5, "search": "none"})
    view = endless.cancelled(penguins, run)
    assert (view["status"], view["stopped"], sum(view["sizes"])) == ("done", True, 342)


def test_cancelling_before_there_is_a_result_has_none(penguins, monkeypatch):
    endless = Endless()
    monkeypatch.setattr("coterie.core.loop.Descent.start", endless)
    assert endless.cancelled(penguins, penguins.start(algorithm="kmeans", k=3))["status"] == "cancelled"
    monkeypatch.undo()
    assert penguins.fit(algorithm="kmeans", k=3)["k"] == 3


@pytest.mark.parametrize("kind", ["choose", "fit"])
def test_cancelling_while_an_earlier_comparison_is_repeated_stores_no_part_of_it(tmp_path, monkeypatch, kind):
    from coterie.selection.choose_k_criteria import CRITERIA

    with Server(state=tmp_path, folder=tmp_path) as server:
        client = Client(server.port, server.token)
        client.workspace()
        client.post("/api/open", {"demo": "moons"})
        run = client.fit(algorithm="kmeans", k=[1, 5], kind=kind, budget="quick")["id"]
    with Server(state=tmp_path, folder=tmp_path) as server:
        client = Client(server.port, server.token)
        client.workspace()
        with monkeypatch.context() as patch:
            patch.setitem(CRITERIA, "silhouette", endless := Endless())
            opened = client.post(f"/api/runs/{run}/open-k", {"k": 3}).json["id"]
            assert endless.cancelled(client, opened)["status"] == "cancelled"
        view = client.wait(client.post(f"/api/runs/{run}/open-k", {"k": 3}).json["id"])
        assert (view["status"], view["k"], view["stopped"]) == ("done", 3, False)
