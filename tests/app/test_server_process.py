"""The command in a process of its own: start, crash, restart, two browsers, and a missing package."""

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coterie.cli import main

from .app_client import Client


@contextlib.contextmanager
def running(state, *arguments):
    """The command ``coterie app`` in a process, and a client of it."""
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": paths, "COTERIE_STATE_DIR": str(state), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "coterie", "app", "--no-browser", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=state,
    )  # fmt: skip
    try:
        address = re.fullmatch(r"coterie app: http://127\.0\.0\.1:(\d+)/\?token=(\S+)\n", process.stdout.readline())
        assert address, process.stderr.read()
        yield process, Client(int(address[1]), address[2])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_a_killed_server_comes_back_with_the_workspace(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(f"{x:.3f}" for x in row) for row in rng.normal(size=(1_500, 3)))
    (tmp_path / "t.csv").write_text("a,b,c\n" + rows)
    with running(tmp_path, tmp_path / "t.csv") as (process, client):
        client.workspace()
        assert client.post("/api/columns", {"c": {"role": "ignored"}}).json["preparation"]["dimensions"] == 2
        finished = client.fit(algorithm="kmeans", k=3)["id"]
        client.post(f"/api/runs/{finished}/edit", {"rename": {"0": "zero"}})
        labels = client.labels(finished)
        with client.events() as events:
            interrupted = client.start(algorithm="kmeans", k=40, options={"n_init": 3000, "tol": 0.0})
            events.next("step")
            process.kill()  # SIGKILL: nothing can be saved now
            process.wait()
    with running(tmp_path) as (process, client):
        view = client.workspace()
        assert view["table"]["name"] == "t.csv"
        assert view["preparation"]["dimensions"] == 2
        statuses = {run["id"]: run["status"] for run in view["runs"]}
        assert statuses == {finished: "done", interrupted: "failed"}
        (message,) = (run["error"]["message"] for run in view["runs"] if run["id"] == interrupted)
        assert message.startswith("The server stopped")
        assert client.labels(finished).tolist() == labels.tolist()
        assert client.get(f"/api/runs/{finished}").json["names"][0] == "zero"
        assert client.post("/api/undo").json["can_redo"] is not None
        later = client.fit(algorithm="kmeans", k=2)["id"]
        assert later not in statuses
        process.send_signal(signal.SIGINT)  # Ctrl-C ends it without a traceback
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read()


def test_two_browsers_share_the_workspace(client, server):
    other = Client(server.port, server.token)
    with client.events() as first, other.events() as second:
        client.post("/api/open", {"demo": "moons"})
        revision = client.workspace()["revision"]
        for events in (first, second):
            while events.next("workspace")[1]["revision"] < revision:
                pass
    runs = [browser.start(algorithm="kmeans", k=k) for browser, k in ((client, 2), (other, 3), (client, 4))]
    assert len(set(runs)) == 3
    assert [client.wait(run)["k"] for run in runs] == [2, 3, 4]
    assert client.workspace()["runs"] == other.workspace()["runs"]


def test_a_table_that_cannot_be_opened_is_a_problem_that_the_page_shows(tmp_path):
    from coterie.app.server import Server

    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    for name in ("broken.parquet", "missing.csv"):
        with Server(tmp_path / name, state=tmp_path / "state", folder=tmp_path) as server:
            view = Client(server.port, server.token).workspace()
            assert view["table"] is None
            assert view["problem"]["field"] == "file"
            assert name in view["problem"]["message"]


@pytest.mark.parametrize("name", ["nothing.csv", "none/t.csv", "folder", "empty.csv", "text.docx", "secret.csv"])
def test_a_path_that_cannot_be_a_table_ends_the_command_at_once_with_the_error_of_fit(
    tmp_path, monkeypatch, capsys, name
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for file, content in (("empty.csv", ""), ("text.docx", "x"), ("secret.csv", "a,b\n1,2\n")):
        (tmp_path / file).write_text(content)
    read = Path.open

    def denied(path, *arguments, **options):  # file modes do not apply to root
        if path.name == "secret.csv":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", denied)
    monkeypatch.setattr("coterie.app.server.Server", None)  # nothing listens
    codes = [main(["app", name, "--no-browser"]), main(["fit", name])]
    of_app, of_fit, *rest = capsys.readouterr().err.splitlines()
    assert codes == [3, 3]
    assert of_app == of_fit
    assert Path(name).name in of_app
    assert not rest


@pytest.mark.parametrize(
    "options, message",
    [
        (["--port", "{taken}"], "cannot listen on 127.0.0.1, port {taken}: Address already in use"),
        (["--host", "nowhere.invalid"], "cannot listen on nowhere.invalid, port 0: "),
        (["--port", "70000"], "--port must be from 0 (any free port) to 65535; got 70000."),
    ],
)
def test_an_address_on_which_the_server_cannot_listen_is_an_error_of_the_options(capsys, options, message):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["app", "--no-browser", *(option.format(taken=port) for option in options)]) == 2
    assert capsys.readouterr().err.startswith(f"Error: {message.format(taken=port)}")


def test_the_page_is_there_before_the_libraries(tmp_path):
    code = (
        "import sys, json\n"
        "from coterie.app.server import Server\n"
        "print(json.dumps(sorted(name for name in ('numba', 'sklearn', 'scipy', 'polars') if name in sys.modules)))"
    )
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}, check=True
    )
    assert json.loads(done.stdout) == []


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in [name for name in sys.modules if name.startswith("coterie.app.server")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["app", "--no-browser"]) == 2
    assert capsys.readouterr().err == 'The app needs two more packages. Run: pip install "coterie[app]"\n'


def test_events_end_when_the_server_stops(tmp_path):
    from coterie.app.server import Server

    with Server(state=tmp_path) as server:
        client = Client(server.port, server.token)
        client.workspace()
        events = client.events()
    with events:
        assert events.next("stopping") == ("stopping", {})
