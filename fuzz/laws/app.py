"""The app: no request and no workspace is a bug, and what was stored opens again."""

from __future__ import annotations

import io
import json
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.app import TABLE, App, changed, drawn_request
from fuzz.draw import Draw
from fuzz.finding import require
from fuzz.law import Case, law

REQUESTS = 60  # of a case
SLOWEST = 10.0  # seconds of an answer that takes milliseconds, on a machine with other work
VIEWS = ("", "/labels", "/trace", "/tree", "/clusters/0", "/charts/profiles", "/charts/cards", "/charts/convergence")
NAMES = (
    "../out.txt", "/tmp/out.txt", "runs/../../out.txt", "table/../../out.csv", "table/..", "table/a\\..\\b.csv",
    "runs/r٣/info.json", "runs/r1/info.json", "runs/r1/labels.npy", "runs/r1/model.safetensors", "table/t.csv", "lock",
)  # fmt: skip


@law(["app"], weight=20, hypothesis=False)
def a_request_is_answered_and_what_is_stored_opens_again(case: Case) -> None:
    with folders() as (state, start):
        app = App(state, start)
        try:
            prepare(app)
            for _ in range(REQUESTS):
                request = drawn_request(case.draw)
                case.note(str(request))
                app.ask(request)
                asked_at = time.monotonic()
                view = app.workspace()
                require(time.monotonic() - asked_at < SLOWEST, f"GET /api/workspace is slow after {request}")
        finally:
            app.close()
        require_same_workspace(state, start, app, view)


@law(["app"], weight=20, hypothesis=False)
def a_workspace_that_was_changed_is_rejected_or_opens(case: Case) -> None:
    with folders() as (state, start):
        app = App(state, start)
        try:
            prepare(app)
            data = app.get("/api/export/workspace").data
            for _ in range(10):
                before = {path.name for path in app.session.store.folder.iterdir()}
                answer = app.post("/api/workspace/open", archive(data, case))
                view = app.workspace()
                if answer.status != 200:
                    now = {path.name for path in app.session.store.folder.iterdir()}
                    require(now <= before, f"a rejected workspace left {now - before}")
                for run in view["runs"]:
                    for name in VIEWS:
                        app.get(f"/api/runs/{run['id']}{name}")
                    app.get(f"/api/export/table.csv?run={run['id']}")
                app.get("/api/rows?sort=cluster&run=r1")
            strangers = [path for path in state.parent.rglob("*out*") if path.suffix in (".txt", ".csv")]
            require(not strangers, f"written outside of the workspace: {strangers}")
        finally:
            app.close()


@contextmanager
def folders() -> Iterator[tuple[Path, Path]]:
    """A folder for workspaces, and one with a table."""
    with tempfile.TemporaryDirectory() as name:
        start = Path(name, "start")
        start.mkdir()
        (start / "t.csv").write_text(TABLE, encoding="utf-8")
        yield Path(name, "state"), start


def prepare(app: App) -> None:
    """Open the table, with runs that have clusters, a tree, and a comparison of K."""
    app.post("/api/open", {"path": "t.csv"})
    for run in (
        {"algorithm": "kmeans", "k": 3, "options": {"n_init": 2}}, {"algorithm": "ward", "k": 2},
        {"kind": "choose", "k": [2, 3], "budget": "quick"},
    ):  # fmt: skip
        app.post("/api/runs", run)
    app.wait()
    app.post("/api/runs/r1/edit", {"rename": {"0": "zero"}})


def require_same_workspace(state: Path, start: Path, app: App, view: Any) -> None:
    """After a restart, the server shows the same table, choices, runs and history."""
    again = App(state, start)
    try:
        now = again.workspace()
        require(now["problem"] is None, f"after a restart: {now['problem']}")
        require(again.session.history == app.session.history, "the history differs after a restart")
        for name in ("current", "can_undo", "can_redo", "preparation"):
            require(now[name] == view[name], f"{name} after a restart: {now[name]!r} instead of {view[name]!r}")
        require(now["table"]["columns"] == view["table"]["columns"], "the columns differ after a restart")
    finally:
        again.close()


def archive(data: bytes, case: Case) -> bytes:
    """A workspace file, changed in its state, in what is stored of a run, in its members or in its bytes."""
    draw, members = case.draw, {}
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        members = {name: source.read(name) for name in source.namelist()}
    for _ in range(draw.integer(1, 2)):
        name = draw.one_of(tuple(members))
        if name.endswith(".json"):
            members[name] = json.dumps(changed(json.loads(members[name]), draw)).encode()
            case.note(f"{name}: {members[name][:3000]!r}")
        else:
            members[name] = damaged(members[name], draw)
            case.note(f"{name} damaged")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
        if draw.happens(0.3):
            member = zipfile.ZipInfo(draw.one_of(NAMES))
            member.external_attr = draw.one_of((0, 0o120777 << 16))  # a symbolic link
            case.note(f"with {member.filename}")
            target.writestr(member, draw.one_of((b"/etc/passwd", b"{}", bytes(1 << 16), b"x,y\n1,2\n")))
    return damaged(buffer.getvalue(), draw) if draw.happens(0.1) else buffer.getvalue()


def damaged(data: bytes, draw: Draw) -> bytes:
    """The bytes, cut or with others in one place."""
    i = draw.integer(0, max(0, len(data) - 1))
    return data[:i] if draw.happens(0.3) else data[:i] + bytes([draw.integer(0, 255)]) + data[i + 1 :]
