"""Runs: the same results as the library, progress, cancelling, edits, traces, cuts and comparisons."""

import threading
import time

import numpy as np
import polars as pl
import pytest

from coterie import KMeans
from coterie.jobs import Job
from coterie.metrics import adjusted_rand_score


@pytest.fixture
def path(server):
    return lambda: server.loader.session().table.path


def test_a_run_has_the_labels_of_the_job(penguins, path):
    run = penguins.fit(algorithm="kmeans", k=3)
    expected = Job(path(), k=3, missing="drop").run()
    assert penguins.labels(run["id"]).tolist() == expected.labels.tolist()
    assert run["scores"] == expected.scores
    assert run["sizes"] == [cluster.rows for cluster in expected.clusters]
    assert [each["rule"]["text"] for each in run["clusters"]] == [each.rule.text for each in expected.clusters]
    assert run["warnings"] == list(expected.warnings)


def test_silhouettes_of_rows_average_to_those_of_their_clusters(penguins):
    run = penguins.fit(algorithm="kmeans", k=3)
    _, arrays = penguins.get(f"/api/runs/{run['id']}/labels").blob
    for cluster in run["clusters"]:
        values = arrays["silhouettes"][arrays["labels"] == cluster["label"]]
        assert abs(values.mean() / 100 - cluster["silhouette"]) < 0.005
    assert (arrays["silhouettes"][arrays["labels"] == 255] == -128).all()


@pytest.mark.parametrize(
    "request_, field",
    [
        ({"algorithm": "nothing", "k": 3}, "algorithm"),
        ({"algorithm": "kmeans", "k": "six"}, "k"),
        ({"algorithm": "kmeans", "k": 0}, "k"),
        ({"algorithm": "kmeans", "k": [5, 2]}, "k"),
        ({"algorithm": "kmeans", "k": True}, "k"),
        ({"algorithm": "kmeans", "k": 5000}, "k"),
        ({"algorithm": "kmeans", "k": [2, 345]}, "k"),
        ({"algorithm": "gmm", "k": 3, "options": {"covariance": "nothing"}}, "option:covariance"),
        ({"algorithm": "kmeans", "k": 3, "options": {"tol": "x"}}, "option:tol"),
        ({"algorithm": "kmeans", "k": 3, "options": {"tol": float("nan")}}, "option:tol"),
        ({"algorithm": "kmeans", "k": 3, "options": {"tol": float("inf")}}, "option:tol"),
        ({"algorithm": "kernel", "k": 3, "options": {"kernel": "nothing"}}, "option:kernel"),
        ({"algorithm": "kmeans", "k": 3, "options": {"n_init": 10**9}}, "option:n_init"),
        ({"algorithm": "kmeans", "k": 3, "options": {"n_init": 0}}, "option:n_init"),
        ({"algorithm": "kmeans", "k": 3, "options": {"eps": 1.0}}, "option:eps"),
        ({"algorithm": "kmeans", "k": 3, "seed": -1}, "seed"),
        ({"algorithm": "kmeans", "k": 3, "seed": "x"}, "seed"),
        ({"algorithm": "kmeans", "k": 3, "sample": 0}, "sample"),
        ({"algorithm": "kmeans", "k": "auto", "budget": "all"}, "budget"),
        ({"algorithm": "hdbscan", "kind": "choose"}, "algorithm"),
    ],
)
def test_an_invalid_request_starts_nothing_and_names_its_control(penguins, request_, field):
    before = penguins.workspace()["revision"]
    answer = penguins.post("/api/runs", request_, 400)
    assert answer.error["field"] == field, answer.error
    assert penguins.workspace()["revision"] == before


@pytest.mark.parametrize(
    "request_, field",
    [
        ({"algorithm": "kmeans", "k": 343}, "k"),  # two rows of 344 are dropped
        ({"algorithm": "balanced", "k": 3, "options": {"size_min": 300}}, "option:size_min"),
        ({"algorithm": "fuzzy", "k": 3, "options": {"fuzzifier": 1}}, "option:fuzzifier"),
    ],
)
def test_an_error_during_a_run_is_a_sentence_beside_its_control(penguins, request_, field):
    run = penguins.wait(penguins.start(**request_))
    assert run["status"] == "failed"
    assert run["error"]["field"] == field, run["error"]
    assert run["error"]["message"].endswith(".")
    assert "--" not in run["error"]["message"]


def test_pages_hear_about_progress_iterations_criteria_and_results(penguins):
    seen: dict[str, list] = {}
    with penguins.events() as events:
        run = penguins.start(algorithm="kmeans", k="auto", budget="quick")
        while True:
            name, data = events.next("progress", "step", "criteria", "run", "workspace")
            seen.setdefault(name, []).append(data)
            if name == "run" and data["status"] == "done":
                break
    assert any("choosing K" in data["stage"] for data in seen["progress"])
    result = penguins.get(f"/api/runs/{run}").json
    by_name = {data["criterion"]: data for data in seen["criteria"]}
    for stored in result["choice"]["criteria"]:
        assert by_name[stored["criterion"]]["ks"] == stored["ks"]
        assert by_name[stored["criterion"]]["values"] == stored["values"]


def test_live_steps_have_a_falling_objective_and_centers_on_the_map(client):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3_000, 6))
    text = "a,b,c,d,e,f\n" + "\n".join(",".join(f"{x:.3f}" for x in row) for row in rows)
    client.post("/api/paste", {"text": text})
    steps = []
    with client.events() as events:
        run = client.start(algorithm="kmeans", k=12)
        while True:
            name, data = events.next("step", "run")
            if name == "step":
                steps.append(data)
            elif data["status"] == "done":
                break
    assert steps
    for step in steps:
        assert step["run"] == run
        assert (np.diff(step["history"]) <= 1e-9 * abs(step["history"][0])).all()
        assert np.shape(step["centers"]) == (12, 2)
    stopped = client.start(algorithm="kmeans", k=40, options={"n_init": 2000, "tol": 0.0})
    while client.get(f"/api/runs/{stopped}").json["status"] == "queued":
        time.sleep(0.01)
    time.sleep(0.3)
    client.delete(f"/api/runs/{stopped}")
    view = client.wait(stopped)
    assert (view["status"], view["stopped"]) == ("done", True)
    assert sum(view["sizes"]) == 3_000
    assert "stopped early" in client.get(f"/api/export/python?run={stopped}&show=1").json["reason"]


def test_a_run_that_waits_is_cancelled_at_once_and_others_go_on(penguins):
    runs = [penguins.start(algorithm="kmeans", k=k) for k in (2, 3, 4)]
    penguins.delete(f"/api/runs/{runs[2]}")
    ended = [penguins.wait(run)["status"] for run in runs]
    assert ended[:2] == ["done", "done"]
    assert ended[2] in ("cancelled", "done")


@pytest.mark.parametrize("algorithm", ["kmeans", "gmm", "fuzzy", "minibatch", "kmedians", "spherical"])
def test_a_trace_ends_with_the_result_and_its_sizes_are_counts(penguins, algorithm):
    run = penguins.fit(algorithm=algorithm, k=3)
    header, arrays = penguins.get(f"/api/runs/{run['id']}/trace").blob
    labels = arrays["labels"]
    assert labels.shape[1] == header["m"] == 344
    assert labels[-1].tolist() == np.where(penguins.labels(run["id"]) < 0, 255, penguins.labels(run["id"])).tolist()
    frames = header["frames"]
    assert [frame["labels"] for frame in frames] == sorted(frame["labels"] for frame in frames)
    for frame in frames:
        if frame["labels"] >= 0 and frame["step"] == "assign" and not header["soft"]:
            assert np.bincount(labels[frame["labels"]], minlength=256)[:3].tolist() == frame["sizes"]
    if header["soft"]:
        assert arrays["rgb"].shape == (*labels.shape, 3)
    values = [frame["objective"] for frame in frames if frame["objective"] is not None]
    if algorithm in ("kmeans", "gmm", "fuzzy", "kmedians"):
        sign = 1 if header["objective"]["better"] == "lower" else -1
        assert (np.diff(np.array(values) * sign) <= 1e-9 * np.abs(values).max()).all()


def test_the_centers_of_a_trace_are_those_of_the_rows_on_the_map(penguins):
    run = penguins.fit(algorithm="kmeans", k=3)
    header, _ = penguins.get(f"/api/runs/{run['id']}/trace").blob
    about, map_ = penguins.get("/api/map?kind=axes").blob
    labels = penguins.labels(run["id"])
    x0, x1, y0, y1 = about["box"]
    for j, center in enumerate(header["frames"][-1]["centers"]):
        rows = labels == j
        mean = [x0 + map_["x"][rows].mean() / 65535 * (x1 - x0), y0 + map_["y"][rows].mean() / 65535 * (y1 - y0)]
        np.testing.assert_allclose(center, mean, atol=1e-3)


def test_algorithms_without_iterations_say_so(penguins):
    run = penguins.fit(algorithm="ward", k=3)
    assert not run["watch"]
    answer = penguins.get(f"/api/runs/{run['id']}/trace", 404)
    assert "no iterations" in answer.error["message"]


def test_one_k_of_a_comparison_opens_with_the_labels_of_its_preview(penguins):
    run = penguins.fit(kind="choose", algorithm="kmeans", k=[2, 5], budget="quick")
    assert run["clusters"] == []
    assert [row["k"] for row in run["choice"]["table"]] == [2, 3, 4, 5]
    _, preview = penguins.get(f"/api/runs/{run['id']}/labels?k=4").blob
    opened = penguins.wait(penguins.post(f"/api/runs/{run['id']}/open-k", {"k": 4}).json["id"])
    assert (opened["status"], opened["k"], opened["parent"]) == ("done", 4, run["id"])
    labels = penguins.labels(opened["id"])
    assert np.where(labels < 0, 255, labels).tolist() == preview["labels"].tolist()
    assert penguins.get(f"/api/runs/{run['id']}/labels?k=9", 404).error["field"] == "k"


def test_a_cut_of_a_tree_is_the_fit_with_that_number(penguins):
    tree = penguins.fit(algorithm="ward", k=3)["id"]
    heights = penguins.get(f"/api/runs/{tree}/tree").json["heights"]
    assert heights == sorted(heights, reverse=True)
    by_k = penguins.wait(penguins.post(f"/api/runs/{tree}/cut", {"k": 5}).json["id"])
    fitted = penguins.fit(algorithm="ward", k=5)
    assert by_k["k"] == 5
    assert penguins.labels(by_k["id"]).tolist() == penguins.labels(fitted["id"]).tolist()
    assert penguins.post(f"/api/runs/{penguins.fit(algorithm='kmeans', k=2)['id']}/cut", {"k": 3}, 409).error


def test_merged_clusters_are_unions_and_undo_brings_the_parts_back(penguins):
    run = penguins.fit(algorithm="kmeans", k=4)["id"]
    before = penguins.labels(run)
    penguins.post(f"/api/runs/{run}/edit", {"rename": {"1": "one", "3": "three"}})
    merged = penguins.wait(penguins.post(f"/api/runs/{run}/edit", {"merge": [1, 3]}).json["id"])
    after = penguins.labels(merged["id"])
    assert merged["k"] == 3
    assert merged["names"][1] == "one + three"
    groups = np.array([0, 1, 2, 1])
    assert after.tolist() == np.where(before < 0, -1, groups[before]).tolist()
    view = penguins.post("/api/undo").json
    assert [each["id"] for each in view["runs"]] == [run]
    view = penguins.post("/api/redo").json
    assert view["current"] == merged["id"]
    assert penguins.labels(merged["id"]).tolist() == after.tolist()
    assert penguins.get(f"/api/export/model?run={merged['id']}", 409).error["field"] == "run"


def test_names_and_colours_can_be_undone_and_must_differ(penguins):
    run = penguins.fit(algorithm="kmeans", k=3)["id"]
    original = penguins.get(f"/api/runs/{run}").json
    view = penguins.post(f"/api/runs/{run}/edit", {"rename": {"0": "  big \n birds "}}).json
    assert view["names"] == ["big birds", "1", "2"]
    assert view["clusters"][0]["name"] == "big birds"
    assert penguins.post(f"/api/runs/{run}/edit", {"recolor": {"1": "#123456"}}).json["colors"][1] == "#123456"
    assert penguins.post(f"/api/runs/{run}/edit", {"rename": {"1": "big birds"}}, 400).error["field"] == "names"
    for bad in ({"rename": {"7": "x"}}, {"recolor": {"0": "red"}}, {"recolor": {"x": "#000000"}}, {"merge": [1]}, {}):
        assert penguins.post(f"/api/runs/{run}/edit", bad, 400).error["message"]
    penguins.post("/api/undo")
    penguins.post("/api/undo")
    now = penguins.get(f"/api/runs/{run}").json
    assert (now["names"], now["colors"]) == (original["names"], original["colors"])
    assert penguins.get("/api/workspace").json["can_redo"] is not None


def test_a_removed_run_comes_back_by_undo(penguins):
    run = penguins.fit(algorithm="kmeans", k=3)["id"]
    labels = penguins.labels(run)
    assert penguins.delete(f"/api/runs/{run}").json["runs"] == []
    assert penguins.get(f"/api/runs/{run}", 404).error["field"] == "run"
    penguins.post("/api/undo")
    assert penguins.labels(run).tolist() == labels.tolist()


def test_two_runs_agree_as_the_metric_says(penguins):
    a, b = (penguins.fit(algorithm=name, k=3)["id"] for name in ("kmeans", "ward"))
    view = penguins.get(f"/api/compare?a={a}&b={b}").json
    x, y = penguins.labels(a), penguins.labels(b)
    used = x >= 0
    assert view["adjusted_rand"] == pytest.approx(adjusted_rand_score(x[used], y[used]))
    assert view["rows"] == used.sum() == np.sum(view["table"])
    matched = np.array([view["matching"].get(str(label), -1) for label in range(3)])
    moved = used & (matched[y] != x)
    assert view["moved"] == moved.sum()
    assert view["moved_rows"] == np.flatnonzero(moved).tolist()
    _, arrays = penguins.get(f"/api/compare/moved?a={a}&b={b}").blob
    assert arrays["moved"].astype(bool).tolist() == moved.tolist()
    same = penguins.get(f"/api/compare?a={a}&b={a}").json
    assert (same["adjusted_rand"], same["moved"]) == (1.0, 0)


def test_a_cluster_has_its_distributions_and_examples(penguins, server):
    run = penguins.fit(algorithm="kmeans", k=3)["id"]
    view = penguins.get(f"/api/runs/{run}/clusters/1").json
    labels = penguins.labels(run)
    frame = server.loader.session().table.table.frame()
    for column in view["distributions"]:
        present = frame[column["column"]].is_not_null().to_numpy()
        assert sum(column["cluster"]) == (present & (labels == 1)).sum()
    distances = [row["distance"] for row in view["typical"]["rows"]]
    far = [row["distance"] for row in view["untypical"]["rows"]]
    assert distances == sorted(distances)
    assert far == sorted(far, reverse=True)
    assert distances[-1] <= far[-1]
    assert {row["cluster"] for row in view["typical"]["rows"]} == {1}
    assert penguins.get(f"/api/runs/{run}/clusters/7", 404).error["field"] == "cluster:7"


def test_means_of_rows_without_values_are_missing_and_a_date_may_be_used_by_its_time_of_year_only(client):
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 3, 30), eager=True)
    x = [None if i < 10 else i % 7 for i in range(len(days))]
    frame = pl.DataFrame(
        {"x": x, "y": [i * i % 11 for i in range(len(days))], "age": range(0, 2 * len(days), 2), "day": days}
    )
    client.post("/api/paste", {"text": frame.write_csv()})
    client.post("/api/preparation", {"missing": "median", "dates": "cyclic"})
    run = client.fit(algorithm="kmeans", k=2)["id"]
    bits = np.packbits(np.arange(len(days)) < 10, bitorder="little").tobytes()
    view = client.post(f"/api/runs/{run}/means", bits).json
    shown = {column["column"]: (column["mean"], column["missing"]) for column in view["columns"]}
    assert view["rows"] == 10
    assert shown["x"] == (None, 10)
    assert shown["y"] == (frame["y"][:10].mean(), 0)
    assert "day" not in shown  # the age in days is a duplicate of a column


def test_rows_of_a_run_have_the_distances_of_the_model(penguins, server):
    run = penguins.fit(algorithm="kmeans", k=3)["id"]
    rows = penguins.get(f"/api/rows?run={run}&sort=-distance&count=5").json["rows"]
    prepared = server.loader.session().prepared().prepared
    model = KMeans(3, n_init=10, random_state=0).fit(prepared.rows.X)
    distances = model.transform(prepared.rows.X).min(axis=1)
    np.testing.assert_allclose([row["distance"] for row in rows], np.sort(distances)[::-1][:5])


def test_noise_is_no_cluster(penguins):
    run = penguins.fit(algorithm="hdbscan", options={"min_cluster_size": 40})
    labels = penguins.labels(run["id"])
    header, _ = penguins.get(f"/api/runs/{run['id']}/labels").blob
    assert header["noise"] == run["noise"] == (labels < 0).sum() - header["unused"]
    assert sum(run["sizes"]) == (labels >= 0).sum()


def test_runs_of_other_algorithms_have_the_same_preparation(penguins):
    for algorithm in ("kmeans", "ward", "spherical", "mixture"):
        assert penguins.fit(algorithm=algorithm, k=2)["current_preparation"]
    penguins.post("/api/preparation", {"missing": "ignore"})
    assert penguins.fit(algorithm="kmeans", k=2)["current_preparation"]
    failed = penguins.wait(penguins.start(algorithm="ward", k=2))
    assert (failed["status"], failed["error"]["field"]) == ("failed", "missing")


def test_a_change_of_columns_leaves_earlier_runs_as_they_are(penguins):
    run = penguins.fit(algorithm="kmeans", k=3)["id"]
    before = penguins.labels(run)
    penguins.post("/api/columns", {"year": {"role": "ignored"}})
    assert not penguins.get(f"/api/runs/{run}").json["current_preparation"]
    assert penguins.labels(run).tolist() == before.tolist()
    again = penguins.fit(algorithm="kmeans", k=3)
    assert again["columns"] == ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def test_after_a_request_and_a_run_memory_is_returned(client, monkeypatch, server):
    calls = []
    monkeypatch.setattr(server.loader.session().memory, "used", lambda: calls.append(threading.current_thread().name))
    client.post("/api/open", {"demo": "moons"})
    client.fit(algorithm="kmeans", k=2)
    assert "coterie-runs" in calls
    assert any(name.startswith("AnyIO") for name in calls)  # threads of requests


@pytest.fixture
def hold(monkeypatch):
    """`hold()` lets the next run wait before it computes, and returns what lets it go on."""
    from coterie.app import session

    execute, started, released = session.execute, threading.Event(), threading.Event()

    def held(*arguments):
        monkeypatch.setattr(session, "execute", execute)
        started.set()
        assert released.wait(30)
        return execute(*arguments)

    def release():
        assert started.wait(30)
        released.set()

    def hold():
        monkeypatch.setattr(session, "execute", held)
        return release

    yield hold
    released.set()


def test_a_run_that_ends_after_another_table_was_opened_leaves_its_runs_alone(client, hold, folder):
    """Runs of different workspaces have the same names."""
    (folder / "small.csv").write_text("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(60)), encoding="utf-8")
    client.post("/api/open", {"path": "small.csv"})
    run = client.fit(algorithm="kmeans", k=2)
    client.post("/api/open", {"demo": "moons"})
    release = hold()
    assert client.start(algorithm="kmeans", k=5) == run["id"]
    client.post("/api/open", {"path": "small.csv"})
    release()
    client.fit(algorithm="kmeans", k=3)  # after the run of the other table
    assert client.get(f"/api/runs/{run['id']}").json["sizes"] == run["sizes"]
    assert client.get(f"/api/export/table.csv?run={run['id']}").data.count(b"\n") == 61


@pytest.mark.parametrize("algorithm", ["kmeans", "ward"])
def test_runs_go_on_after_another_table_was_opened(client, hold, folder, algorithm):
    (folder / "other.csv").write_text("a,b\n" + "".join(f"{i},{i % 5}\n" for i in range(60)), encoding="utf-8")
    client.post("/api/open", {"path": "other.csv"})
    client.fit(algorithm="kmeans", k=2)
    release = hold()
    closed = client.start(algorithm=algorithm, k=3)
    client.post("/api/open", {"demo": "penguins"})
    release()
    assert client.fit(algorithm="kmeans", k=3)["id"] != closed
    client.post("/api/open", {"path": "other.csv"})
    view = client.get(f"/api/runs/{closed}").json
    assert view["status"] == "failed"
    assert "Run it again" in view["error"]["message"]
