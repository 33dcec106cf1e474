"""Every number that the app answers about a table and its clusters is recomputed from the input file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="the extra app is not installed")
pytest.importorskip("uvicorn", reason="the extra app is not installed")

from app.app_client import Client
from coterie.app.server import Server
from coterie.report.build import reliability
from coterie.report.html import Absent
from descriptions import recomputed as again
from descriptions.checks import SHARED, Description
from descriptions.tables import Case, cases, read_values
from report.pages import read

CASES = cases()
CHARTS = ("profiles", "cards")
FREQUENT = 6  # values of a category whose shares of selected rows are compared


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with Server(state=tmp_path_factory.mktemp("state"), folder=tmp_path_factory.mktemp("start")) as server:
        yield Client(server.port, server.token)


def choices(case: Case) -> dict[str, dict[str, str]]:
    """The choices for columns on the page that are the options of a job."""
    options = case.options
    result = {name: {"role": "feature"} for name in options.get("include", ())}
    result |= {name: {"role": "feature", "as": "category"} for name in options.get("one_hot", ())}
    result |= {name: {"transform": transform} for transform, name in map(_parts, options.get("transform", ()))}
    return result | ({options["weight"]: {"role": "weight"}} if "weight" in options else {})


def _parts(transform: str) -> tuple[str, str]:
    name, _, column = transform.partition(":")
    return name, column


def view_of(client: Client, case: Case) -> dict[str, Any]:
    """The result of a run with the options of a job."""
    options = {"k": 3, "options": {"n_init": 2}, "algorithm": "kmeans", **case.options}
    client.post("/api/preparation", {name: options[name] for name in ("missing", "scale") if name in options})
    client.post("/api/columns", choices(case))
    run = client.fit(**{name: options[name] for name in ("algorithm", "k", "options")})["id"]
    if names := case.options.get("names"):
        client.post(f"/api/runs/{run}/edit", {"rename": {str(j): name for j, name in enumerate(names)}})
    return client.get(f"/api/runs/{run}").json


def described(client: Client, case: Case, view: dict[str, Any], table: pd.DataFrame) -> Description:
    """What the app says, in the form of a job's JSON."""
    numbers = [name for name in view["columns"] if name in table.columns]
    categories = list(dict.fromkeys(name.partition("=")[0] for name in view["columns"] if name not in numbers))
    for name in categories:
        table[name] = table[name].map(str, na_action="ignore")
    header, arrays = client.get(f"/api/runs/{view['id']}/labels").blob
    labels = pd.Series(client.labels(view["id"]).astype(float))
    unused = table[[*numbers, *categories]].isna().any(axis=1) & (case.options.get("missing") == "drop")
    assert header["unused"] == unused.sum()
    labels[unused] = np.nan
    result = {
        **{name: view[name] for name in ("notes", "warnings", "scores", "noise", "rows_used")},
        "rows": len(table), "columns": numbers, "categories": categories, "method": view["algorithm"],
        "weight": case.options.get("weight"),
        "clusters": [
            {**each, "cluster": each["label"], "stands_out_by": {t["column"]: _trait(t) for t in each["stands_out_by"]}}
            for each in view["clusters"]
        ],
    }  # fmt: skip
    charts = "".join(client.get(f"/api/runs/{view['id']}/charts/{name}").data.decode() for name in CHARTS)
    said = Description(case, table, result, "", read(f"<section id='profiles'>{charts}</section>"), table, labels)
    if said.silhouettes is not None:
        expected = said.silhouettes[~said.silhouettes.index.duplicated()]
        np.testing.assert_allclose(arrays["silhouettes"][expected.index], 100 * expected, atol=0.51)
        assert view["silhouette"] == pytest.approx(said.silhouettes.mean(), abs=1e-6)
    return said


def _trait(trait: dict[str, Any]) -> Any:
    return trait["deviation"] if trait["share"] is None else {part: trait[part] for part in ("share", "overall")}


@pytest.mark.parametrize("name", CASES)
def test_every_answer_is_that_of_the_input_file(client, name, tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "resampling_stability", lambda *_: Absent("left out"))
    monkeypatch.setattr(reliability, "diagnosis", lambda *_: Absent("left out"))
    case = CASES[name]
    path = case.write(tmp_path)
    client.ask("POST", f"/api/upload?name={path.name}", path.read_bytes(), Content_Type="application/octet-stream")
    view, table = view_of(client, case), read_values(path, case.kinds)
    said = described(client, case, view, table)
    problems = [f"{check.__name__}: {problem}" for check in SHARED for problem in check(said)]
    problems += [f"columns: {problem}" for problem in columns(client.workspace()["table"]["columns"], table)]
    for one in view["clusters"]:
        rows = said.rows_of({"cluster": one["label"]})
        answer = client.get(f"/api/runs/{view['id']}/clusters/{one['label']}").json
        problems += [f"cluster: {problem}" for problem in cluster(answer, said, rows)]
        bits = np.packbits(rows, bitorder="little").tobytes()
        answer = client.post(f"/api/runs/{view['id']}/means", bits).json
        problems += [f"selected rows: {problem}" for problem in selected(answer, said, rows)]
    assert not problems, "\n".join(problems)


def close(shown: Any, value: Any, column: pd.Series) -> bool:
    """Whether an answer is the value; a date is its day."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return shown == value.date().isoformat()
    return again.close(shown, value, again.numbers(column).std())


def columns(views: list[dict[str, Any]], table: pd.DataFrame):
    assert [view["name"] for view in views] == list(table.columns)
    for view in views:
        values = table[view["name"]]
        present = values.dropna()
        if (view["missing"], view["distinct"]) != (values.isna().sum(), present.nunique()):
            yield f"{view['name']}: {view['missing']} missing, {view['distinct']} distinct"
        histogram = view["histogram"]
        if present.empty:
            assert (view["min"], view["mean"], view["max"], histogram) == (None, None, None, None)
        elif view["min"] is None:  # words
            counts = present.map(str).value_counts()
            if dict(zip(histogram["labels"], histogram["counts"], strict=True)) != counts.to_dict():
                yield f"{view['name']}: {histogram}"
        else:
            for key, value in {"min": present.min(), "mean": present.mean(), "max": present.max()}.items():
                if not close(view[key], value, present):
                    yield f"{key} of {view['name']} is {view[key]}, not {value}"
            ends = close(histogram["low"], present.min(), present), close(histogram["high"], present.max(), present)
            if ends != (True, True) or sum(histogram["counts"]) != len(present):
                yield f"{view['name']}: {histogram}"


def cluster(answer: dict[str, Any], said: Description, rows: pd.Series):
    """Distributions of the cluster and of the other rows, and the rows that are nearest to its center."""
    for each in answer["distributions"]:
        values = said.table[each["column"]]
        for key, part in (("cluster", values[rows]), ("rest", values[~rows])):
            counts = part.map(str, na_action="ignore").value_counts() if "labels" in each else None
            shown = each[key] if counts is None else dict(zip(each["labels"], each[key], strict=True))
            right = sum(shown) == part.notna().sum() if counts is None else shown == {
                text: counts.get(text, 0) for text in each["labels"]
            }  # fmt: skip
            if not right:
                yield f"{key} of {each['column']} is {shown}"
    if said.X is None:
        return
    X = pd.DataFrame(said.X, index=said.table.index[said.used]).loc[rows[rows].index]
    what = "distance" if said.result["method"] == "kmeans" else "silhouette"
    if what == "distance":
        distances = ((X - np.average(X, axis=0, weights=said.mass[X.index])) ** 2).sum(axis=1) ** 0.5
    else:
        distances = -said.silhouettes[rows[said.silhouettes.index]]
    for key, order in (("typical", distances.sort_values()), ("untypical", distances.sort_values(ascending=False))):
        shown = [row[what] * (1 if what == "distance" else -1) for row in answer[key]["rows"]]
        if not np.allclose(shown, order[: len(shown)], rtol=1e-6, atol=1e-9):
            yield f"{key} rows have distances {shown}"
        if not np.allclose(shown, [distances[row["row"]] for row in answer[key]["rows"]], rtol=1e-6, atol=1e-9):
            yield f"{key} rows are other ones"


def selected(answer: dict[str, Any], said: Description, rows: pd.Series):
    """Means of selected rows: those of a cluster are the means of the cluster."""
    assert answer["rows"] == rows.sum()
    names = [(each["column"], each.get("value")) for each in answer["columns"]]
    frequent = {name: said.table[name].value_counts() for name in said.result["categories"]}
    frequent = {name: sorted(counts.index, key=lambda value: (-counts[value], value))[:FREQUENT]
                for name, counts in frequent.items()}  # fmt: skip
    expected = [(name, None) for name in said.result["columns"]]
    if names != expected + [(name, value) for name, values in frequent.items() for value in values]:
        yield f"columns are {names}"
    everyone = pd.Series(True, said.table.index)
    for each in answer["columns"]:
        key = each["column"] if "value" not in each else f"{each['column']}={each['value']}"
        values, transform = said.values(key), said.transforms.get(key)
        if each["missing"] != values[rows].isna().sum():
            yield f"{each['missing']} of {key} are missing"
        for part, mask in (("mean", rows), ("overall", everyone)):
            mean: Any = again.mean(values[mask], said.weight)
            if pd.api.types.is_datetime64_any_dtype(values):
                mean = pd.Timestamp("1970-01-01") + pd.Timedelta(days=mean)
            if not close(each[part], mean, values):
                yield f"{part} of {key} is {each[part]}, not {mean}"
        difference = again.difference(values, rows, everyone, said.weight, transform)
        if not again.close(each["deviation"], difference, 1.0):
            yield f"{key} differs by {each['deviation']}, not {difference}"
