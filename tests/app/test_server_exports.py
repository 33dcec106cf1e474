"""Exports: files that can be read again, and code that gives the same labels."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.cli import main

pytestmark = pytest.mark.whole_search  # scripts and commands run with whole searches

REQUESTS = {
    "kmeans": {"algorithm": "kmeans", "k": 3, "options": {"n_init": 3}, "seed": 5},
    "auto": {"algorithm": "kmeans", "k": "auto", "budget": "quick"},
    "gmm": {"algorithm": "gmm", "k": 2, "options": {"covariance": "diag"}},
    "ward": {"algorithm": "ward", "k": 4},
    "hdbscan": {"algorithm": "hdbscan", "options": {"min_cluster_size": 20}},
}


def script_labels(code: str) -> list[int]:
    names: dict = {}
    exec(compile(code, "clusters.py", "exec"), names)
    return np.asarray(names["labels"]).tolist()


def command_labels(text: str, folder: Path) -> list[int]:
    import shlex

    words = shlex.split(text)
    assert words[:2] == ["coterie", "fit"]
    assert main([*words[1:], "-o", str(folder / "out.npy"), "-q", "--force"]) == 0
    return np.load(folder / "out.npy").tolist()


@pytest.fixture(scope="module")
def runs(client):
    """Runs of several algorithms, with choices for columns, and an edit of each kind."""
    client.post("/api/open", {"demo": "penguins"})
    client.post(
        "/api/columns",
        {"species": {"role": "feature"}, "year": {"role": "ignored"}, "body_mass_g": {"transform": "log"}},
    )
    client.post("/api/preparation", {"missing": "median"})
    made = {name: client.fit(**request)["id"] for name, request in REQUESTS.items()}
    client.post(f"/api/runs/{made['kmeans']}/edit", {"rename": {"0": "a, b", "1": 'say "x"'}})
    made["cut"] = client.wait(client.post(f"/api/runs/{made['ward']}/cut", {"k": 3}).json["id"])["id"]
    made["open"] = client.wait(client.post(f"/api/runs/{made['auto']}/open-k", {"k": 5}).json["id"])["id"]
    made["merge"] = client.wait(client.post(f"/api/runs/{made['ward']}/edit", {"merge": [0, 2]}).json["id"])["id"]
    return made


@pytest.mark.parametrize("name", [*REQUESTS, "cut", "open", "merge"])
def test_the_script_gives_the_same_labels(client, runs, name):
    code = client.get(f"/api/export/python?run={runs[name]}").data.decode()
    assert script_labels(code) == client.labels(runs[name]).tolist()
    assert client.get(f"/api/export/python?run={runs[name]}&show=1").json == {"text": code}


@pytest.mark.parametrize("name", [*REQUESTS, "cut"])
def test_the_command_gives_the_same_labels(client, runs, name, tmp_path, capsys):
    text = client.get(f"/api/export/command?run={runs[name]}").data.decode()
    assert command_labels(text, tmp_path) == client.labels(runs[name]).tolist()


@pytest.mark.parametrize("name", ["open", "merge"])
def test_what_no_command_can_do_is_explained(client, runs, name):
    answer = client.get(f"/api/export/command?run={runs[name]}", 409)
    assert "Python script" in answer.error["message"]
    assert client.get(f"/api/export/command?run={runs[name]}&show=1").json["reason"] == answer.error["message"]


@pytest.mark.parametrize(
    "kind, read", [("table.csv", pl.read_csv), ("table.parquet", pl.read_parquet), ("table.xlsx", pl.read_excel)]
)
def test_the_table_has_the_labels_and_names(client, runs, kind, read):
    answer = client.get(f"/api/export/{kind}?run={runs['kmeans']}")
    assert "attachment" in answer.headers["content-disposition"]
    frame = read(io.BytesIO(answer.data))
    labels = client.labels(runs["kmeans"])
    assert frame["cluster"].to_list() == labels.tolist()
    assert frame["cluster_name"].to_list() == [["a, b", 'say "x"', "2"][label] for label in labels]


def test_the_model_predicts_the_labels_and_knows_the_names(client, runs, tmp_path, capsys):
    (tmp_path / "m.safetensors").write_bytes(client.get(f"/api/export/model?run={runs['kmeans']}").data)
    client.get(f"/api/export/table.csv?run={runs['kmeans']}")
    text = client.get(f"/api/export/command?run={runs['kmeans']}").data.decode()
    table = text.split()[2]
    assert main(["predict", str(tmp_path / "m.safetensors"), table, "-o", str(tmp_path / "p.csv"), "-q"]) == 0
    frame = pl.read_csv(tmp_path / "p.csv")
    assert frame["cluster"].to_list() == client.labels(runs["kmeans"]).tolist()
    assert "a, b" in frame["cluster_name"].to_list()
    assert coterie.load(tmp_path / "m.safetensors")[-1].n_clusters == 3


def test_the_report_is_a_page_with_the_names_and_runs_nothing_here(client, runs):
    answer = client.get(f"/api/export/report?run={runs['kmeans']}")
    text = answer.data.decode()
    assert text.startswith("<!doctype html>")
    assert "say &quot;x&quot;" in text
    assert "attachment" in answer.headers["content-disposition"]
    assert answer.headers["content-security-policy"] == "sandbox"
    assert client.get(f"/api/export/report?run={runs['merge']}").data.startswith(b"<!doctype html>")


def test_profiles_have_a_row_for_each_cluster(client, runs):
    frame = pl.read_csv(io.BytesIO(client.get(f"/api/export/profiles?run={runs['kmeans']}").data))
    assert frame["rows"].to_list() == client.get(f"/api/runs/{runs['kmeans']}").json["sizes"]


def test_a_workspace_opens_again_with_everything(client, runs):
    before = client.workspace()
    labels = {run: client.labels(run).tolist() for name, run in runs.items()}
    data = client.get("/api/export/workspace").data
    client.post("/api/open", {"demo": "moons"})
    after = client.post("/api/workspace/open", data).json
    skipped = ("seconds", "progress")
    for old, new in zip(before["runs"], after["runs"], strict=True):
        assert {k: v for k, v in old.items() if k not in skipped} == {k: v for k, v in new.items() if k not in skipped}
    assert after["preparation"]["missing"] == "median"
    for run, expected in labels.items():
        assert client.labels(run).tolist() == expected
    assert after["can_undo"] == before["can_undo"]
    code = client.get(f"/api/export/python?run={runs['open']}").data.decode()
    assert script_labels(code) == labels[runs["open"]]


@pytest.mark.parametrize("damage", ["not a zip", "other zip", "bad json", "newer", "outside", "huge"])
def test_a_damaged_workspace_is_an_error_and_leaves_the_open_one(client, runs, server, damage, monkeypatch):
    client.post("/api/open", {"demo": "moons"})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if damage == "bad json":
            archive.writestr("workspace.json", "{")
        elif damage == "newer":
            archive.writestr("workspace.json", '{"format": 99, "source": {}, "history": {}}')
        elif damage == "huge":
            monkeypatch.setattr("coterie.app.store.MAX_UNPACKED", 10)
            archive.writestr("workspace.json", " " * 1000)
        else:
            archive.writestr("../outside.txt", "x")
            archive.writestr("runs/../../outside.txt", "x")
            archive.writestr("table/../../outside.txt", "x")
    data = b"PK but not a zip" if damage == "not a zip" else buffer.getvalue()
    answer = client.post("/api/workspace/open", data, 400)
    assert answer.error["message"].endswith(".")
    assert client.workspace()["table"]["name"] == "moons.csv"
    folder = server.loader.session().store.folder
    assert not list(folder.parent.rglob("outside.txt"))


def rewritten(data, changes=None, extra=()):
    """A workspace file with members changed by functions of their content, and with others."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            change = (changes or {}).get(name)
            target.writestr(name, source.read(name) if change is None else change(source.read(name)))
        for member, content in extra:
            target.writestr(member, content)
    return buffer.getvalue()


def edited(change):
    """A function that changes the JSON of a member."""

    def edit(data):
        content = json.loads(data)
        change(content)
        return json.dumps(content).encode()

    return edit


def link(name):
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o120777 << 16
    return member


@pytest.fixture(scope="module")
def packed(client):
    client.post("/api/open", {"demo": "moons"})
    client.fit(algorithm="kmeans", k=3)
    return client.get("/api/export/workspace").data


STATE = "workspace.json"
ELSEWHERE = "below the folder of the app"
HOSTILE_ARCHIVES = {
    "the id of a run is a path": (lambda now, _: now["runs"][0].update(id="../../r1"), "id must be the id of a run"),
    "the id of a run is a number": (lambda now, _: now["runs"][0].update(id=1), "id must be the id of a run"),
    "the id of the parent is a path": (lambda now, _: now["runs"][0].update(parent="/etc"), "parent must be"),
    "K is a text": (lambda now, _: now["runs"][0].update(k="three"), "k must be"),
    "runs are an object": (lambda now, _: now.update(runs={}), "runs must be a list"),
    "the table is elsewhere": (lambda _, source: source.update(is_copy=False, path="/etc/passwd"), ELSEWHERE),
    "the table is nowhere": (lambda _, source: source.update(is_copy=False, path="/etc/no/x"), ELSEWHERE),
    "the table is a folder": (lambda _, source: source.update(path=".."), "no longer there"),
    "the path is a number": (lambda _, source: source.update(path=5), "path must be"),
}


@pytest.mark.parametrize("hostile", HOSTILE_ARCHIVES)
def test_a_workspace_with_invalid_values_is_rejected_and_leaves_nothing(client, packed, server, hostile):
    change, words = HOSTILE_ARCHIVES[hostile]
    store, before = server.loader.session().store.folder, client.workspace()["table"]
    folders = sorted(store.iterdir())
    data = rewritten(packed, {STATE: edited(lambda content: change(content["history"]["now"], content["source"]))})
    answer = client.post("/api/workspace/open", data, 400)
    assert words in answer.error["message"]
    assert client.workspace()["table"] == before
    assert sorted(store.iterdir()) == folders


@pytest.mark.parametrize(
    "member",
    [
        "table/..",
        "table/a\\b.csv",
        "table/x.exe",
        "table/.csv/",
        "/etc/x",
        "../x.csv",
        "runs/r\u0663/info.json",
        "C:/x.csv",
    ],
)
def test_members_with_other_names_are_not_written(client, packed, server, tmp_path_factory, member):
    root = server.loader.session().store.folder.parent.parent
    before = {path for path in root.rglob("*x*") if path.is_file()}
    answer = client.ask("POST", "/api/workspace/open", rewritten(packed, extra=[(member, "a,b\n1,2\n")]))
    assert answer.status in (200, 400)
    assert {path for path in root.rglob("*x*") if path.is_file()} - before == set()


def test_links_in_an_archive_are_not_links_on_disk(client, packed, server):
    data = rewritten(packed, extra=[(link("runs/r7/labels.npy"), "/etc/passwd"), (link("table/l.csv"), "/etc/passwd")])
    client.post("/api/workspace/open", data)
    assert not [path for path in server.loader.session().workspace.folder.rglob("*") if path.is_symlink()]


@pytest.mark.parametrize(
    "name, change",
    [
        ("info.json", edited(lambda info: info["clusters"][0].update(label=9))),
        ("info.json", edited(lambda info: info.update(k="3"))),
        ("info.json", edited(lambda info: info["fit"].update(options=5))),
        ("info.json", edited(lambda info: info.update(clusters=[5]))),
        ("labels.npy", lambda data: data[:-8]),
        ("labels.npy", lambda data: data.replace(b"{'descr'", b"{'desc\n(")),
        ("labels.npy", lambda data: data.replace(b"<i8", b"<f8")),
        ("labels.npy", lambda data: data[:-8] + b"\xff" * 7 + b"\x7f"),
        ("model.safetensors", lambda data: data[:50]),
    ],
)
def test_a_stored_result_that_is_damaged_asks_for_another_run(client, packed, name, change):
    client.post("/api/workspace/open", rewritten(packed, {f"runs/r1/{name}": change}))
    answer = client.ask("GET", "/api/runs/r1/labels")
    assert answer.status in (400, 409)
    assert answer.error["message"].endswith(".")
    assert client.fit(algorithm="kmeans", k=2)["id"] == "r2"


def test_an_export_that_does_not_exist_is_an_error(client):
    client.post("/api/open", {"demo": "moons"})
    assert client.get("/api/export/nothing", 400).error["message"]
    assert client.get("/api/export/python", 409).error["field"] == "run"
    assert client.get("/api/export/python?run=r99", 404).error["field"] == "run"


def test_the_script_runs_in_a_process_of_its_own(client, tmp_path):
    client.post("/api/open", {"demo": "moons"})
    run = client.fit(algorithm="kmeans", k=2)["id"]
    code = client.get(f"/api/export/python?run={run}").data.decode() + "print(labels.tolist())\n"
    (tmp_path / "script.py").write_text(code)
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(client.labels(run).tolist())
