"""Tables: opening, columns, preparation, rows, maps and values."""

import json

import numpy as np
import polars as pl
import pytest

from coterie.app import views
from coterie.app.failures import in_page
from coterie.app.routes import Routes
from coterie.datasets import load_demo
from coterie.jobs import Job, inspect
from coterie.preparation.fit_preparation import prepare

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a,b",
    "--missing drop",
    "a\tb",
    "é✓",
    "__proto__",
    "a:b",
]


def columns(view):
    return {column["name"]: column for column in view["table"]["columns"]}


def test_a_table_is_described_as_coterie_info_describes_it(penguins, server):
    view = penguins.workspace()
    info = inspect(server.loader.session().table.path)
    shown = columns(view)
    for column in info.columns:
        assert shown[column.name]["missing"] == column.missing
        assert shown[column.name]["distinct"] == column.distinct
        assert shown[column.name]["mean"] == column.mean
        assert sum(shown[column.name]["histogram"]["counts"]) == info.rows - column.missing
    assert shown["species"]["role"] == "ignored"
    assert shown["species"]["reason"] == "text"
    assert shown["bill_length_mm"]["role"] == "feature"


def test_few_incomplete_rows_are_dropped_at_first_and_the_page_says_so(penguins):
    preparation = penguins.workspace()["preparation"]
    assert preparation["missing"] == "drop"
    assert preparation["rows_dropped"] == 2
    assert "missing values: dropped 2 rows." in preparation["notes"]


def test_names_that_look_like_options_stay_as_they_are(client):
    name = "profit --net of -k 3"
    text = f"{name},b,c\n" + "".join(f"{10 ** (i % 40 / 8):.3f},{i % 7},{5}\n" for i in range(80))
    view = client.post("/api/paste", {"text": text}).json
    notes = [note for note in view["preparation"]["notes"] if note.startswith("log of")]
    assert [note.partition(":")[0] for note in notes] == [f"log of {name}"]
    assert in_page('"--net -k 3" in x--y and a-b: use --exclude "x--y" or -k 2', ["x--y"]) == (
        '"--net -k 3" in x--y and a-b: use leave out "x--y" or K = 2'
    )


def test_many_incomplete_rows_are_filled_at_first(client):
    text = "a,b\n" + "".join(f"{i},{'' if i % 3 == 0 else i * i}\n" for i in range(60))
    view = client.post("/api/paste", {"text": text}).json
    assert view["preparation"]["missing"] == "median"
    assert view["preparation"]["rows_dropped"] == 0


def test_the_choices_of_the_page_are_options_of_the_job(penguins, server):
    penguins.post("/api/columns", {"species": {"role": "feature"}, "bill_depth_mm": {"role": "ignored"}})
    penguins.post("/api/columns", {"body_mass_g": {"transform": "log"}, "year": {"role": "weight"}})
    view = penguins.post("/api/preparation", {"scale": "robust", "missing": "median"}).json
    path = server.loader.session().table.path
    job = Job(
        path, scale="robust", missing="median", exclude=("bill_depth_mm",), one_hot=("species",), weight="year",
        transform=("log:body_mass_g",),
    )  # fmt: skip
    from coterie.algorithms import algorithm_of
    from coterie.data.tables.reader import read

    expected = prepare(read(path), job, algorithm_of("kmeans"))
    prepared = server.loader.session().prepared().prepared
    assert prepared.preparation == expected.preparation
    np.testing.assert_array_equal(prepared.rows.X, expected.rows.X)
    np.testing.assert_array_equal(prepared.weight, expected.weight)
    shown = columns(view)
    assert shown["species"]["as"] == "category"
    assert shown["bill_depth_mm"]["reason"] == "you left it out"
    assert shown["year"]["role"] == "weight"
    assert shown["body_mass_g"]["transform"] == "log"


def test_a_second_weight_replaces_the_first(penguins):
    penguins.post("/api/columns", {"year": {"role": "weight"}})
    view = penguins.post("/api/columns", {"body_mass_g": {"role": "weight"}}).json
    roles = {name: column["role"] for name, column in columns(view).items()}
    assert [name for name, role in roles.items() if role == "weight"] == ["body_mass_g"]
    assert roles["year"] == "feature"


def test_an_error_of_the_preparation_is_shown_and_the_choice_stays(penguins):
    view = penguins.post("/api/preparation", {"missing": "error"}).json
    assert view["preparation"]["error"]["field"] == "missing"
    assert "2 of 344 rows" in view["preparation"]["error"]["message"]
    assert penguins.get("/api/map?kind=axes", 400).error["field"] == "missing"
    assert penguins.post("/api/undo").json["preparation"]["error"] is None


@pytest.mark.parametrize(
    "path, body, field",
    [
        ("/api/columns", {"nothing": {"role": "feature"}}, "column:nothing"),
        ("/api/columns", {"year": {"role": "king"}}, "column:year"),
        ("/api/columns", {"year": {"colour": "red"}}, "column:year"),
        ("/api/columns", {"year": 3}, "column:year"),
        ("/api/preparation", {"scale": "huge"}, "scale"),
        ("/api/preparation", {"nothing": 1}, "nothing"),
        ("/api/open", {"demo": "nothing"}, "file"),
        ("/api/open", {"recent": "nothing"}, "file"),
        ("/api/open", {}, "file"),
        ("/api/paste", {"text": "  "}, "paste"),
        ("/api/paste", {"text": "only names"}, "paste"),
    ],
)
def test_an_invalid_choice_changes_nothing_and_names_its_control(penguins, path, body, field):
    before = penguins.workspace()["revision"]
    answer = penguins.post(path, body, 400)
    assert answer.error["field"] == field
    assert penguins.workspace()["revision"] == before


def test_a_file_that_cannot_be_read_leaves_the_open_table(penguins):
    answer = penguins.post("/api/upload?name=broken.parquet", b"no parquet", 400)
    assert answer.error["field"] == "file"
    view = penguins.workspace()
    assert view["table"]["name"] == "penguins.csv"
    assert view["busy"] is None


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_cells_that_are_pasted_are_a_table(client, separator):
    text = "\n".join(separator.join(row) for row in (["x", "y"], ["1", "2"], ["3", "4"], ["5", "7"]))
    view = client.post("/api/paste", {"text": text}).json
    assert [column["name"] for column in view["table"]["columns"]] == ["x", "y"]
    assert view["table"]["rows"] == 3


def test_an_upload_is_the_file(client, tmp_path):
    frame = pl.DataFrame({"a": [1.5, 2.5, 9.0], "b": ["x", "y", "x"]})
    frame.write_parquet(tmp_path / "t.parquet")
    view = client.post("/api/upload?name=t.parquet", (tmp_path / "t.parquet").read_bytes()).json
    assert view["table"]["rows"] == 3
    rows = client.get("/api/rows").json
    assert [row["cells"] for row in rows["rows"]] == [["1.5", "x"], ["2.5", "y"], ["9", "x"]]


def test_a_file_of_the_start_folder_continues_its_workspace_until_it_changes(client, folder):
    (folder / "again.csv").write_text("a,b\n1,2\n3,4\n5,9\n")
    client.post("/api/open", {"path": "again.csv"})
    client.fit(algorithm="kmeans", k=2)
    client.post("/api/open", {"demo": "penguins"})
    assert len(client.post("/api/open", {"path": "again.csv"}).json["runs"]) == 1
    (folder / "again.csv").write_text("a,b\n1,2\n3,4\n5,9\n7,7\n")
    view = client.post("/api/open", {"path": "again.csv"}).json
    assert (view["table"]["rows"], view["runs"]) == (4, [])


def test_the_map_has_the_principal_axes_of_the_prepared_rows(penguins, server):
    header, arrays = penguins.get("/api/map?kind=axes").blob
    prepared = server.loader.session().prepared().prepared
    X = prepared.rows.X - prepared.rows.X.mean(axis=0)
    _, _, V = np.linalg.svd(X, full_matrices=False)
    points = X @ V[:2].T
    is_used = prepared.rows.row_mask
    assert ((arrays["x"] == 65535) & (arrays["y"] == 65535)).tolist() == (~is_used).tolist()
    x0, x1, y0, y1 = header["box"]
    shown = np.column_stack([x0 + arrays["x"] / 65535 * (x1 - x0), y0 + arrays["y"] / 65535 * (y1 - y0)])[is_used]
    for j in (0, 1):
        sign = np.sign(points[:, j] @ shown[:, j])
        assert np.abs(shown[:, j] - sign * points[:, j]).max() < (x1 - x0) / 65535 + 1e-9


def test_the_map_of_two_columns_is_in_their_units(penguins):
    header, arrays = penguins.get("/api/map?kind=columns&x=year&y=body_mass_g").blob
    mass = load_demo("penguins")["body_mass_g"]
    y0, y1 = header["box"][2:]
    shown = y0 + arrays["y"] / 65535 * (y1 - y0)
    is_known = ~np.isnan(mass)
    np.testing.assert_allclose(shown[is_known], mass[is_known], atol=(y1 - y0) / 65535)
    assert header["missing"] == (~is_known).sum()
    assert penguins.get("/api/map?kind=columns&x=species&y=year", 400).error["field"] == "column:species"


def test_the_neighbour_map_shows_some_of_the_displayed_rows(penguins):
    header, arrays = penguins.get("/api/map?kind=neighbours").blob
    assert header["kind"] == "neighbours"
    assert len(arrays["positions"]) == len(arrays["x"]) == 342
    assert (np.diff(arrays["positions"].astype(int)) > 0).all()


def test_values_are_bins_of_equal_width_and_categories(penguins):
    header, arrays = penguins.get("/api/values?columns=body_mass_g&columns=sex").blob
    mass, sex = load_demo("penguins")["body_mass_g"], load_demo("penguins")["sex"]
    bounds = np.array(header["columns"][0]["bounds"])
    codes = arrays["c0"]
    assert ((codes == 255) == np.isnan(mass)).all()
    known = ~np.isnan(mass)
    assert (bounds[codes[known]] <= mass[known] + 1e-9).all()
    assert (mass[known] <= bounds[codes[known] + 1] + 1e-9).all()
    labels = np.array([*header["columns"][1]["labels"], *[""] * 253], dtype=object)
    assert [labels[code] if code != 255 else "" for code in arrays["c1"]] == list(sex)


def test_rows_are_sorted_searched_and_selected(penguins):
    everything = penguins.get("/api/rows?count=1000").json
    assert everything["total"] == 344
    assert [row["row"] for row in everything["rows"]] == list(range(344))
    heavy = penguins.get("/api/rows?sort=-body_mass_g&count=400").json["rows"]
    masses = [float(row["cells"][5]) for row in heavy if row["cells"][5] is not None]
    assert masses == sorted(masses, reverse=True)
    assert heavy[-1]["cells"][5] is None
    found = penguins.get("/api/rows?q=TORG&count=400").json
    assert found["total"] == 52
    assert all("Torgersen" in row["cells"] for row in found["rows"])
    chosen = penguins.get("/api/rows?rows=7,3").json
    assert [row["row"] for row in chosen["rows"]] == [3, 7]
    mask = np.zeros(344, bool)
    mask[[0, 8, 343]] = True
    bits = np.packbits(mask, bitorder="little").tobytes()
    answer = penguins.ask("POST", "/api/rows", bits, Content_Type="application/octet-stream")
    assert [row["row"] for row in answer.json["rows"]] == [0, 8, 343]


@pytest.mark.parametrize("query", ["rows=-1", "rows=999", "offset=x", "sort=nothing", "cluster=1", "run=nothing"])
def test_rows_that_do_not_exist_are_an_error(penguins, query):
    answer = penguins.ask("GET", f"/api/rows?{query}")
    assert answer.status in (400, 404)
    assert answer.error["message"].endswith(".")


def test_hostile_names_and_values_stay_text(client):
    names = [*HOSTILE, "x", "y"]
    rng = np.random.default_rng(0)
    rows = [[*HOSTILE, *rng.normal(size=2)] for _ in range(30)]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    client.post("/api/paste", {"text": frame.write_csv()})
    view = client.workspace()
    assert [column["name"] for column in view["table"]["columns"]] == names
    run = client.fit(algorithm="kmeans", k=2)["id"]
    client.post(f"/api/runs/{run}/edit", {"rename": {"0": HOSTILE[0]}})
    for chart in ("silhouettes", "profiles", "convergence", "reliability", "checks", "cards"):
        assert "<script" not in client.get(f"/api/runs/{run}/charts/{chart}").data.decode()
    assert client.get("/api/rows?count=1").json["rows"][0]["cells"][0] == HOSTILE[0]
    for column in HOSTILE:
        changed = client.post("/api/columns", {column: {"role": "ignored"}}).json
        assert columns(changed)[column]["role"] == "ignored"
    assert client.get(f"/api/export/report?run={run}").data.decode().count("<script>alert(1)") == 0


def test_columns_of_codes_and_dates_are_explained(client):
    lines = ["id,price,when,flag"]
    lines += [f'K{i:03d},"${1000 + 7 * i:,}.50",2024-01-{1 + i % 28:02d},{"yes" if i % 2 else "no"}' for i in range(60)]
    view = client.post("/api/paste", {"text": "\n".join(lines)}).json
    shown = columns(view)
    assert shown["id"]["role"] == "id"
    assert "read as numbers" in shown["price"]["reading"]
    assert shown["price"]["role"] == "feature"
    assert json.dumps(view)


def test_a_page_that_shows_another_table_is_rejected_at_every_address_and_changes_nothing(penguins, server):
    first = penguins.workspace()["table"]["id"]
    penguins.post("/api/open", {"demo": "penguins"})
    now = penguins.fit(algorithm="kmeans", k=2)
    addresses = [(route.path, method) for route in Routes(server.loader, None).all() for method in route.methods]
    opening = ("/", "/api/ping", "/api/events", "/api/workspace", "/api/open", "/api/upload", "/api/paste",
               "/api/workspace/open")  # fmt: skip
    before = penguins.workspace()
    assert before["table"]["id"] != first
    for path, method in addresses:
        if path in opening or method == "HEAD":
            continue
        path = path.format(run=now["id"], label=0, name="profiles", kind="table.csv")
        answer = penguins.ask(method, path, None if method == "GET" else {}, X_Coterie_Table=first)
        assert (answer.status, answer.error["field"]) == (409, None), path
        assert "Another table" in answer.error["message"]
    assert penguins.workspace() == before


def test_an_answer_that_was_computed_while_another_table_was_opened_is_not_sent(penguins, monkeypatch):
    run = penguins.fit(algorithm="kmeans", k=2)["id"]
    labels_of, shown = views.labels_of, penguins.workspace()["table"]["id"]

    def slow(session, **arguments):
        session.open({"demo": "moons"})
        return labels_of(session, **arguments)

    monkeypatch.setattr(views, "labels_of", slow)
    answer = penguins.ask("GET", f"/api/runs/{run}/labels", X_Coterie_Table=shown)
    assert (answer.status, answer.error["message"][:13]) == (409, "Another table")


def test_every_opening_of_a_table_has_its_own_id_and_events_name_it(penguins):
    first, again = penguins.workspace(), penguins.get("/api/workspace").json
    assert first["table"]["id"] == again["table"]["id"]
    recent = next(each["id"] for each in first["recent"] if each["current"])
    with penguins.events() as events:
        second = penguins.post("/api/open", {"recent": recent}).json["table"]
        assert second["id"] != first["table"]["id"]
        assert second["columns"] == first["table"]["columns"]
        penguins.start(kind="choose", algorithm="kmeans", k=[2, 3], budget="quick")
        for name in ("progress", "criteria", "run"):
            assert events.next(name)[1]["table"] == second["id"]
