"""Reports as pages: sections, charts and tables, with the numbers of the result."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from coterie import GaussianMixture
from coterie.algorithms import ALGORITHMS
from coterie.datasets import write_demo
from coterie.errors import InputError, ParameterError
from coterie.jobs import ChooseJob, CompareJob, Job, ReportJob
from coterie.report.formatting import number, percent, two_places
from coterie.report.html import Absent, as_html
from coterie.report.html.report import Stability
from report.pages import HOSTILE, blobs, mixed, page_of, read, run
from unpacking import unpack_counts

SECTIONS = [
    "sure", "clusters", "place", "number", "fitting", "profiles", "hierarchy", "convergence", "watch", "reproduce",
]  # fmt: skip


# Properties of every page


def check_charts(tree):
    """Every chart has a text for screen readers, scales, and has a table of its numbers."""
    figures = tree.all("figure")
    assert figures
    for figure in figures:
        charts = figure.all("svg", "chart")
        assert charts
        for chart in charts:
            assert chart.attributes["role"] == "img"
            assert chart.attributes["aria-label"]
            assert re.fullmatch(r"0 0 \d+(\.\d+)? \d+(\.\d+)?", chart.attributes["viewbox"])
        if "data-map" not in figure.attributes and "data-player" not in figure.attributes:
            assert figure.one("details").all("table")[0].rows()


def check_self_contained(html, tree):
    for node in tree.all():
        for key in ("src", "href", "xlink:href", "action", "srcset", "poster"):
            address = node.attributes.get(key)
            assert address is None or address.startswith(("#", "data:")), address
        assert "style" not in node.attributes
        assert not any(key.startswith("on") for key in node.attributes)
    assert "@import" not in html
    assert "url(" not in html


def check_numbers_agree_with_nouns(tree):
    """No text or label has a plural after 1, such as 1 columns."""
    nouns = "columns|rows|clusters|criteria|checks|starts|restarts|iterations|merges|resamples|values|findings|centers"
    labels = [node.attributes.get("aria-label") or "" for node in tree.all()]
    mistakes = re.findall(rf"(?<![\d.,])1 (?:{nouns})\b", " · ".join([tree.one("main").text, *labels]))
    assert not mistakes, mistakes


def check_numbers_are_finite(tree):
    for node in tree.all():
        for key, value in node.attributes.items():
            assert not re.search(r"\b(nan|inf|None)\b", value or ""), (node.name, key, value)
    assert not re.search(r"\bnan\b|\binf\b|\bNone\b", tree.one("main").text)


def one_column(folder):
    """A table of one column."""
    path = folder / "one_column.csv"
    pl.DataFrame({"x": [*range(20), *range(100, 121)]}).write_csv(path)
    return path


CASES = {
    "one cluster": lambda folder: Job(blobs(folder, 200, 2, 1, 3.0), k=(1, 4), budget="quick"),
    "one cluster requested": lambda folder: Job(blobs(folder), k=1),
    "one column in all": lambda folder: Job(one_column(folder), k=2),
    "one column": lambda folder: Job(blobs(folder, d=1), k=3),
    "two columns": lambda folder: Job(blobs(folder, d=2), k=3, scale="minmax"),
    "many clusters": lambda folder: Job(blobs(folder, 300, 2, 40, 0.1), k=70, options={"n_init": 1}),
    "weights": lambda folder: Job(blobs(folder, w=np.arange(300) % 3), k=3, weight="w"),
    "missing values": lambda folder: Job(blobs(folder, y=[None, 1.0, 2.0] * 100), k=3, missing="ignore"),
    "dropped rows": lambda folder: Job(blobs(folder, y=[None, 1.0, 2.0] * 100), k=3, missing="drop"),
    "mixed column types": lambda folder: Job(mixed(folder), algorithm="mixture", k=3),
    "categories": lambda folder: Job(mixed(folder), k=3, one_hot=("city",)),
    "a tree": lambda folder: Job(blobs(folder), algorithm="ward", k=4),
    "a mixture": lambda folder: Job(blobs(folder, n=150), algorithm="gmm", k=2),
    "a sample": lambda folder: Job(blobs(folder), k=3, sample=100),
    "medoids": lambda folder: Job(blobs(folder), k=3, algorithm="kmedoids", options={"metric": "manhattan"}),
    "two rows": lambda folder: Job(blobs(folder, n=2), k=2),
    "animation": lambda folder: Job(blobs(folder), k=3, animate=folder / "play.html"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_result_has_a_complete_page(case, tmp_path):
    _, report, html, tree = page_of(replace(CASES[case](tmp_path), report=tmp_path / "r.html"))
    assert [node.attributes["id"] for node in tree.all("section")] == SECTIONS
    check_charts(tree)
    check_self_contained(html, tree)
    check_numbers_are_finite(tree)
    check_numbers_agree_with_nouns(tree)
    assert len(html.encode()) < 1_000_000
    assert len(tree.one("div", "cards").all("div", "card")) == 5
    links = [link.attributes["href"] for link in tree.one("nav").all("a")]
    assert links == [f"#{key}" for key in SECTIONS[1:]]
    assert len(tree.one("table", "clusters").rows()) == len(report.names)


@pytest.mark.parametrize("method", ALGORITHMS)
def test_every_algorithm_has_a_page_and_code_that_gives_its_labels(method, tmp_path):
    table = mixed(tmp_path, 60) if ALGORITHMS[method].mixed else blobs(tmp_path, 60)
    k = "auto" if ALGORITHMS[method].finds_k else 3
    result, report, _, tree = page_of(Job(table, algorithm=method, k=k, report=tmp_path / "r.html"))
    assert [node.attributes["id"] for node in tree.all("section")] == SECTIONS
    names: dict = {}
    exec(report.reproduce.python, names)
    np.testing.assert_array_equal(names["labels"], result.labels)


def test_many_clusters_of_many_columns_stay_below_a_megabyte(tmp_path, monkeypatch):
    for name in ("resampling_stability", "diagnosis"):
        monkeypatch.setattr(f"coterie.report.build.reliability.{name}", lambda *_: Absent("not looked at"))
    table = blobs(tmp_path, 3000, 40, 60, 1.0)
    result, report, html, _ = page_of(Job(table, k=60, options={"n_init": 1}, report=tmp_path / "r.html"))
    assert len(html.encode()) < 920_000
    assert result.report_size == (tmp_path / "r.html").stat().st_size
    assert len(report.profiles.shown) * len(report.names) <= 3_000
    differences = np.abs(report.profiles.scores).max(axis=0)[report.profiles.shown]
    assert (np.diff(differences) <= 0).all()
    assert "Columns are sorted by the largest difference" in html


def test_the_static_page_has_no_script_and_the_same_text(penguins):
    _, report, _, tree = penguins
    html = as_html(report, static=True)
    static = read(html)
    assert not static.all("script")
    policy = static.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    assert "script-src 'none'" in policy
    assert static.one("main").text == tree.one("main").text


def test_the_same_report_is_the_same_page(penguins, tmp_path):
    _, report, _, _ = penguins
    assert as_html(report) == as_html(report)
    for name in ("a.html", "b.html"):
        run(Job(blobs(tmp_path), k=3, report=tmp_path / name))
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


# Numbers are those of the result


def test_the_table_has_the_clusters_of_the_result(penguins):
    result, report, _, tree = penguins
    rows = tree.one("table", "clusters").rows()
    for row, cluster, ids in zip(rows, result.clusters, report.examples, strict=True):
        assert row[:4] == [
            str(cluster.label), f"{cluster.rows:,}", percent(cluster.share), two_places(cluster.silhouette),
        ]  # fmt: skip
        assert row[5] == ", ".join(ids)
        for trait in cluster.stands_out_by:
            assert f"{trait.column} " in row[4]


def test_the_cards_have_the_numbers_of_the_report(penguins):
    result, report, _, tree = penguins
    values = [card.one("div", "value").text for card in tree.one("div", "cards").all("div", "card")]
    assert values[0] == str(result.k)
    assert values[1] == two_places(report.silhouettes.mean)
    assert values[3] == two_places(report.stability.mean)


def test_silhouettes_are_those_of_the_library_and_weigh_up_to_the_mean(penguins):
    result, report, _, _ = penguins
    shares = np.array([cluster.share for cluster in result.clusters])
    silhouettes = np.array([cluster.silhouette for cluster in result.clusters])
    assert shares @ silhouettes == pytest.approx(report.silhouettes.mean)


def test_examples_are_the_rows_nearest_to_the_means(tmp_path):
    result, report = run(Job(blobs(tmp_path), k=3, report=tmp_path / "r.html"))
    frame = pl.read_parquet(tmp_path / "blobs.parquet")
    X = frame.select("x0", "x1", "x2").to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for label, ids in enumerate(report.examples):
        rows = np.flatnonzero(result.labels == label)
        distances = ((X[rows] - X[rows].mean(axis=0)) ** 2).sum(axis=1)
        assert ids == [f"r{place}" for place in rows[np.argsort(distances, kind="stable")[:3]]]  # by their identifiers


def test_a_column_named_by_id_names_the_examples(tmp_path):
    _, report = run(Job(blobs(tmp_path), k=3, id="id", report=tmp_path / "r.html"))
    assert report.id_name == "id"
    assert all(name.startswith("r") for ids in report.examples for name in ids)


def test_the_votes_of_the_page_are_those_of_the_choice(penguins):
    result, _, _, tree = penguins
    figure = next(one for one in tree.one("section", id="number").all("figure") if "Votes of the criteria" in one.text)
    votes = {row[0]: row[1] for row in figure.one("details").one("table").rows()}
    assert votes == {vote.criterion: "–" if vote.k is None else str(vote.k) for vote in result.choice.votes}


def test_criteria_that_were_not_computed_name_the_option_that_computes_them(penguins):
    assert "Not computed:" in penguins[3].one("section", id="number").text
    assert "--budget normal" in penguins[3].one("section", id="number").text
    assert "--budget thorough" in penguins[3].one("section", id="number").text


def test_means_and_quantiles_are_those_of_the_rows(penguins, tmp_path):
    result, report, _, _ = penguins
    path = write_demo("penguins", tmp_path / "p.csv")
    frame = pl.read_csv(path, null_values="NA").with_columns(label=pl.Series(result.labels))
    for i, cluster in enumerate(result.clusters):
        rows = frame.filter(pl.col("label") == cluster.label)
        for j, name in enumerate(report.profiles.columns):
            assert report.profiles.means[i, j] == pytest.approx(rows[name].mean())
        for j, name in enumerate(report.spreads.columns):
            wanted = np.quantile(rows[name].to_numpy(), [0.05, 0.25, 0.5, 0.75, 0.95])
            np.testing.assert_allclose(report.spreads.quantiles[i, j], wanted)


def test_shares_of_categories_add_up_to_one(penguins):
    _, report, _, _ = penguins
    assert {each.column for each in report.shares} == {"species", "island", "sex"}
    for each in report.shares:
        assert not each.used
        has_value = np.array(each.values) != "(missing)"
        np.testing.assert_allclose(each.shares[:, has_value].sum(axis=1), 1.0)


def test_every_restart_is_drawn_and_the_best_ends_at_the_inertia(tmp_path):
    result, report = run(Job(blobs(tmp_path), k=6, report=tmp_path / "r.html"))
    tree = read((tmp_path / "r.html").read_text(encoding="utf-8"))
    ends = [values[-1] for values in report.convergence.values]
    assert len(ends) == 10
    assert min(ends) == pytest.approx(result.scores["inertia"])
    for size in ("roomy", "slim"):
        assert len(tree.one("section", id="convergence").one("div", size).all("path", "curve")) == 10


@pytest.mark.parametrize(
    "job, text",
    [
        (lambda folder: Job(blobs(folder), algorithm="gmm", k=3), "The log-likelihood stayed at"),
        (lambda folder: Job(blobs(folder, d=1), k=3), "The objective stayed at 7.593."),
        (lambda folder: Job(blobs(folder, spread=0.1), k=3), "The objective of the best of 10 restarts went from"),
    ],
)
def test_a_fit_of_one_iteration_has_a_text_instead_of_a_curve(job, text, tmp_path):
    _, report, _, tree = page_of(replace(job(tmp_path), report=tmp_path / "r.html"))
    assert max(steps[-1] for steps in report.convergence.iterations) == 1
    block = tree.one("section", id="convergence")
    assert not block.all("svg")
    assert text in block.text
    assert "there is no curve" in block.text


def test_whole_numbers_that_the_model_takes_as_categories_are_shown_as_such(tmp_path):
    """A year has shares, and no mean; the page of the saved model says the same."""
    frame = pl.read_parquet(mixed(tmp_path))
    path, model = tmp_path / "years.parquet", tmp_path / "m.safetensors"
    frame.with_columns(year=pl.Series([2007 + i * i % 5 for i in range(len(frame))])).write_parquet(path)
    result, report = run(Job(path, algorithm="mixture", k=3, model=model, report=tmp_path / "r.html"))
    _, again = run(ReportJob(path, model=model, output=tmp_path / "again.html"))
    assert result.columns == ("age", "visits")
    assert result.categories == ("city", "year")
    for page in (report, again):
        assert list(page.profiles.columns) == ["age", "visits"]
        (years,) = (each for each in page.shares if each.column == "year")
        assert years.used
        assert years.values == ["2007", "2008", "2011"]
        np.testing.assert_allclose(years.shares.sum(axis=1), 1.0)


def test_the_tree_of_an_agglomeration_has_the_colours_of_its_clusters(tmp_path):
    result, report = run(Job(blobs(tmp_path, n=40), algorithm="average", k=3, report=tmp_path / "r.html"))
    display = report.tree.display
    labels = {f"r{i}": label for i, label in enumerate(result.labels.tolist())}
    assert not report.tree.of_centers
    for name, size, cluster in zip(display.leaves, display.sizes, display.leaf_cluster, strict=True):
        assert size != 1 or labels[name] == cluster


def test_more_than_fifty_thousand_rows_are_shown_as_densities(tmp_path):
    _, _, html, tree = page_of(Job(blobs(tmp_path, 51_000, 2), k=3, report=tmp_path / "r.html"))
    assert "density of all 51,000 rows" in tree.one("section", id="place").text
    assert re.search(r"of [\d,]+ of 51,000 rows", tree.one("div", "cards").text)
    assert len(html.encode()) < 600_000


def test_the_density_of_a_page_counts_every_row_in_its_cluster(tmp_path, monkeypatch):
    """Along every two axes; the table has 60 times more rows than are counted at a time."""
    monkeypatch.setattr("coterie.report.build.feature_space.BLOCK", 4 * 850)
    result, report, _, tree = page_of(Job(blobs(tmp_path, 51_000, 4), k=3, report=tmp_path / "r.html"))
    data = json.loads(tree.one("script", id="map").text)
    assert [grid["axes"] for grid in data["grids"]] == [[i, j] for i in range(5) for j in range(i + 1, 5)]
    for grid in data["grids"]:
        places, counts = unpack_counts(grid["counts"])
        sizes = np.bincount(places // np.prod(grid["shape"]), counts, 4)
        assert sizes.tolist() == [*np.bincount(result.labels, minlength=3), 0]
    for axis in data["axes"][2:]:
        column = pl.read_parquet(tmp_path / "blobs.parquet")[axis["name"]]
        assert axis["low"] < column.min()
        assert axis["high"] > column.max()
    assert report.map.description.startswith("density of all 51,000 rows")


# What to watch for


def test_findings_have_a_sentence_and_a_remedy_each(penguins):
    _, report, _, tree = penguins
    entries = tree.one("section", id="watch").one("ul", "findings").all("li")
    assert len(entries) == len(report.diagnosis.findings) > 0
    for entry, finding in zip(entries, report.diagnosis.findings, strict=True):
        assert finding.sentence in entry.text
        assert finding.remedy in entry.text


# Text from tables


@pytest.fixture
def hostile(tmp_path):
    """A table with text that would be markup if it could, in names, values and labels."""
    rng = np.random.default_rng(0)
    group = np.arange(90) % 3
    columns = {name: rng.normal(4 * (group == j % 3), 0.3) for j, name in enumerate(HOSTILE)}
    labels = [HOSTILE[g] for g in group]
    path = tmp_path / "<b>&'table'.parquet"
    pl.DataFrame({**columns, "label": labels, "kind": labels[1:] + labels[:1]}).write_parquet(path)
    return path


@pytest.mark.parametrize("static", [False, True])
def test_hostile_text_stays_text(hostile, tmp_path, static):
    _, report = run(ReportJob(hostile, labels="label", output=tmp_path / "r.html", static=static))
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    tree = read(html)
    check_self_contained(html, tree)
    scripts = [node for node in tree.all("script") if node.attributes.get("type") != "application/json"]
    assert len(scripts) == (0 if static else 1)
    assert not tree.all("b")
    assert "alert(1)" not in "".join(node.text for node in scripts)
    assert HOSTILE[0] in tree.one("table", "clusters").text
    assert HOSTILE[0] in tree.one("section", id="profiles").text
    assert "\u202e" not in html
    assert set(report.names) == set(HOSTILE[:3])
    assert len(html.encode()) < 1_000_000


# Probabilities


def test_rows_of_a_mixture_have_the_probabilities_of_the_model(tmp_path):
    result, report, _, tree = page_of(
        Job(blobs(tmp_path, spread=3.0), algorithm="gmm", k=2, report=tmp_path / "r.html")
    )
    frame = pl.read_parquet(tmp_path / "blobs.parquet").select("x0", "x1", "x2")
    X = frame.to_numpy()
    model = GaussianMixture(2, random_state=0).fit((X - X.mean(axis=0)) / X.std(axis=0))
    probabilities = model.predict_proba((X - X.mean(axis=0)) / X.std(axis=0)).max(axis=1)
    assert report.certainty.mean == pytest.approx(probabilities.mean())
    for j, below in enumerate(report.certainty.below):
        assert below == pytest.approx((probabilities[result.labels == j] < 0.9).mean())
    titles = [figure.one("h3").text for figure in tree.one("section", id="fitting").all("figure")]
    assert titles == ["Silhouettes", "Probabilities"]


def test_kmeans_has_no_probabilities(penguins):
    assert penguins[1].certainty is None


# Clusters from elsewhere


def test_labels_of_a_column_are_the_clusters_of_the_page(tmp_path):
    labels = ["b"] * 100 + ["a"] * 150 + [None] * 50
    path = blobs(tmp_path, cluster_by_hand=labels)
    result, report, _, tree = page_of(ReportJob(path, labels="cluster_by_hand", output=tmp_path / "r.html"))
    assert report.names == ["a", "b"]
    assert [row[:2] for row in tree.one("table", "clusters").rows()] == [["a", "150"], ["b", "100"]]
    assert "50 rows in no cluster left out" in tree.one("header").text
    assert result.labels.tolist() == [1] * 100 + [0] * 150 + [-1] * 50
    assert "cluster_by_hand" not in result.columns
    assert np.unique(report.map.labels, return_counts=True)[1].tolist() == [50, 150, 100]  # in none, in a, in b
    assert isinstance(report.stability, Absent)
    assert [node.attributes["id"] for node in tree.all("section")] == SECTIONS


def test_numbers_as_labels_are_in_the_order_of_numbers_and_minus_one_is_none(tmp_path):
    path = blobs(tmp_path, label=[10, 9, -1] * 100)
    _, report = run(ReportJob(path, labels="label", output=tmp_path / "r.html"))
    assert report.names == ["9", "10"]


def test_a_model_has_the_clusters_of_predict(tmp_path):
    path = blobs(tmp_path)
    fitted, _ = run(Job(path, k=3, model=tmp_path / "m.safetensors"))
    result, report, _, tree = page_of(ReportJob(path, model=tmp_path / "m.safetensors", output=tmp_path / "r.html"))
    np.testing.assert_array_equal(result.labels, fitted.labels)
    names: dict = {}
    exec(report.reproduce.python, names)
    np.testing.assert_array_equal(names["labels"], fitted.labels)
    assert result.scale == "standard"
    assert isinstance(report.stability, Stability)
    check_charts(tree)


@pytest.mark.parametrize(
    "options, message",
    [({}, "either --labels COLUMN or --model FILE"), ({"labels": "x0", "model": "m.safetensors"}, "leave out one")],
)
def test_a_report_needs_either_labels_or_a_model(tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        run(ReportJob(blobs(tmp_path), **options, output=tmp_path / "r.html"))


def test_a_column_without_clusters_is_rejected(tmp_path):
    with pytest.raises(InputError, match="is it the column of the clusters"):
        run(ReportJob(blobs(tmp_path, n=1200), labels="x0", output=tmp_path / "r.html"))
    with pytest.raises(InputError, match="Did you mean"):
        run(ReportJob(tmp_path / "blobs.parquet", labels="x00", output=tmp_path / "r.html"))
    assert not (tmp_path / "r.html").exists()


def test_a_page_that_fails_leaves_no_files(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no page")

    monkeypatch.setattr("coterie.report.html.as_html", broken)
    with pytest.raises(RuntimeError, match="no page"):
        run(Job(blobs(tmp_path), k=3, report=tmp_path / "r.html", output=tmp_path / "out.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["blobs.parquet"]


# Other pages


def test_the_page_of_a_choice_has_the_criteria(tmp_path):
    job = ChooseJob(blobs(tmp_path), k=(2, 6), criteria=("silhouette", "elbow", "gap"), report=tmp_path / "r.html")
    result, _, html, tree = page_of(job)
    assert [node.attributes["id"] for node in tree.all("section")] == ["number", "reproduce"]
    check_charts(tree)
    check_self_contained(html, tree)
    assert result.choice.reason in tree.one("section", id="number").text
    assert "--criteria" in tree.one("section", id="number").text
    gap = next(figure for figure in tree.all("figure") if figure.text.startswith("Gap"))
    values = {row[0].rstrip(" ◀"): row[1] for row in gap.one("details").one("table").rows()}
    assert values == {str(row["k"]): number(row["gap"]) for row in result.choice.table}


def test_the_page_of_a_comparison_has_runs_agreement_and_a_map_of_each_algorithm(tmp_path):
    job = CompareJob(blobs(tmp_path), algorithms=("kmeans", "ward", "gmm"), k=(3, 4), report=tmp_path / "r.html")
    result, report, html, tree = page_of(job)
    assert [node.attributes["id"] for node in tree.all("section")] == ["runs", "agreement", "maps", "reproduce"]
    assert len(tree.one("section", id="runs").one("table").rows()) == 6
    table = tree.one("section", id="agreement").one("details").one("table").rows()
    assert [row[1:] for row in table] == [[two_places(value) for value in row] for row in result.agreement]
    first, *others = (shown for _, shown in report.maps)
    assert len(others) == 2
    assert all((first.labels == other.labels).mean() > 0.9 for other in others)  # the same clusters, the same colours
    assert result.recommendation.reason in tree.one("section", id="runs").text
    check_self_contained(html, tree)
