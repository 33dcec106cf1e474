"""Maps, heat maps of many columns, and lines of series in reports."""

import json
import re

import numpy as np
import polars as pl
import pytest
from sklearn.manifold import trustworthiness

from coterie.distances import pairwise
from coterie.errors import ParameterError
from coterie.jobs import Job, ReportJob
from coterie.metrics import silhouette_score
from coterie.report import as_dict
from coterie.report.build import feature_space
from coterie.report.html import Absent
from coterie.web import ClusterMap
from report.pages import keep, page_of, run

GROUPS = np.arange(120) % 6
WIDE = np.random.default_rng(0).normal(size=(120, 34)) + 6 * np.eye(34)[GROUPS]
NAMES = [f"column {j}" for j in range(34)]


@pytest.fixture(scope="module", autouse=True)
def short_reports():
    """Reports without resampling and checks, which other tests look at."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("resampling_stability", "diagnosis"):
            patch.setattr(f"coterie.report.build.reliability.{name}", lambda *_: Absent("not looked at"))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    labels = pl.Series(np.where(np.arange(120) < 9, -1, GROUPS))
    pl.DataFrame(WIDE, schema=NAMES).with_columns(group=labels).write_csv(folder / "wide.csv")
    rng = np.random.default_rng(1)
    far = rng.normal(size=(80, 3))
    far[7, 0] = 1e6
    pl.DataFrame(far, schema=["a", "b", "c"]).write_csv(folder / "far.csv")
    series = [np.sin(np.arange(n) / 3) * (1 if n % 2 else 3) + rng.normal(0, 0.1, n) for n in range(20, 44)]
    table = np.full((24, 43), np.nan)
    for i, values in enumerate(series):
        table[i, : len(values)] = values
    frame = pl.DataFrame(table, schema=[f"h{j}" for j in range(43)]).fill_nan(None)
    frame.write_csv(folder / "series.csv")
    return folder


@pytest.fixture(scope="module")
def wide(folder):
    """A report with a neighbour map and a heat map of many columns."""
    with pytest.MonkeyPatch.context() as patch:
        keep(patch)
        job = Job(folder / "wide.csv", k=6, scale="none", exclude=("group",), report=folder / "wide.html", force=True)
        return page_of(job)


@pytest.fixture(scope="module")
def series(folder):
    with pytest.MonkeyPatch.context() as patch:
        keep(patch)
        return page_of(Job(folder / "series.csv", k=2, algorithm="kmeans-dtw", report=folder / "series.html"))


# the neighbour map


def test_a_report_of_many_columns_has_both_maps(wide):
    _, report, html, tree = wide
    titles = [node.text for node in tree.one("section", id="place").all("h3")]
    assert titles == ["Principal axes", "Neighbour map (t-SNE)"]
    assert report.neighbours.map.title == "neighbour map (t-SNE)"
    assert len(re.findall(r'data-map="(\w+)"', html)) == 2
    assert "% of the variance: clusters that are apart may overlap." in report.map_note


def test_the_page_says_how_far_to_trust_the_neighbour_map(wide):
    result, report, _, tree = wide
    summary, note = result.neighbour_map, report.neighbours.note
    expected = trustworthiness(WIDE, report.neighbours.map.points, n_neighbors=10)
    assert summary.trustworthiness == pytest.approx(expected, abs=1e-9)
    assert f"{100 * summary.neighbours_kept:.0f} % are among its 10 nearest in the data" in note
    assert f"Trustworthiness {summary.trustworthiness:.2f} (1 is best, 0.5 is random)" in note
    assert "Distances between groups, and the sizes of groups, mean nothing here." in note
    assert note in tree.one("div", id="by-neighbours").text


def test_json_has_the_trustworthiness(wide):
    plain = json.loads(json.dumps(as_dict(wide[0])))
    assert plain["neighbour_map"]["trustworthiness"] == wide[0].neighbour_map.trustworthiness
    assert plain["neighbour_map"]["rows"] == 120


def test_numbers_of_clusters_are_at_their_rows(wide):
    drawn = wide[1].neighbours.map
    for center, label in zip(drawn.centers, range(6), strict=True):
        assert (drawn.points[drawn.labels == label] == center).all(axis=1).any()


def test_on_request_the_neighbour_map_comes_first_and_has_rows_in_no_cluster(folder):
    path = folder / "neighbours.html"
    job = ReportJob(folder / "wide.csv", labels="group", map="neighbours", output=path, static=True)
    _, report, _, tree = page_of(job)
    titles = [node.text for node in tree.one("section", id="place").all("h3")]
    assert titles == ["Neighbour map (t-SNE)", "Principal axes"]
    assert np.count_nonzero(report.neighbours.map.labels == -1) == 9


def test_one_cluster_has_a_neighbour_map_without_colours(folder):
    job = Job(folder / "far.csv", k=1, map="neighbours", report=folder / "one.html")
    with pytest.MonkeyPatch.context() as patch:
        keep(patch)
        _, report, _, _ = page_of(job)
    assert set(report.neighbours.map.labels) == {-1}


def test_two_identical_runs_write_identical_files(wide, folder):
    job = Job(folder / "wide.csv", k=6, scale="none", exclude=("group",), report=folder / "again.html", threads=1)
    run(job)
    assert (folder / "again.html").read_bytes() == (folder / "wide.html").read_bytes()


def test_few_rows_have_no_neighbour_map_and_the_page_says_so(tmp_path):
    pl.DataFrame({"a": [1.0, 2, 9, 10], "b": [1.0, 2, 9, 11], "c": [0.0, 1, 8, 9]}).write_csv(tmp_path / "few.csv")
    job = Job(tmp_path / "few.csv", k=2, map="neighbours", report=tmp_path / "few.html")
    result, _, _, tree = page_of(job)
    assert result.neighbour_map is None
    assert "No neighbour map: the neighbour map needs at least 5 rows; got 4 rows." in tree.text


def test_an_invalid_map_is_rejected(folder):
    for options, words in (({"map": "axes"}, "--map axes needs a report"), ({"map": "umap"}, "map must be one of")):
        with pytest.raises(ParameterError, match=words):
            run(Job(folder / "wide.csv", k=2, **options))


# far rows


def test_one_far_row_does_not_squeeze_the_map(folder):
    job = Job(folder / "far.csv", k=2, scale="none", report=folder / "far.html", force=True)
    _, report, _, tree = page_of(job)
    assert isinstance(report.map, ClusterMap)
    low, high = report.map._spans[:, 0]
    assert high - low < 20
    assert "80 rows; 1 row beyond the border (arrow)" in tree.one("section", id="place").text


@pytest.mark.parametrize("n", [1_200, 6_000])
def test_far_rows_among_many_are_counted_and_marked(tmp_path, monkeypatch, n):
    """The map shows a sample of the rows; of the second table, also densities."""
    monkeypatch.setattr(feature_space, "DENSE", 5_000)
    monkeypatch.setattr(feature_space, "POINTS", 1_000)
    rows = np.random.default_rng(0).normal(size=(n, 3))
    rows[3, 0] = rows[5, 1] = 1e6
    labels = (rows[:, 0] > 0).astype(int)
    frame = pl.DataFrame(rows, schema=["a", "b", "c"]).with_columns(label=pl.Series(labels))
    frame.write_parquet(tmp_path / "many.parquet")
    job = ReportJob(tmp_path / "many.parquet", labels="label", scale="none", output=tmp_path / "many.html")
    shown = run(job)[1].map
    assert (shown.densities is not None) == (n > 5_000)
    assert int(shown._beyond[0, 1]) == 2
    assert "2 rows beyond the border (arrows)" in shown.description
    assert str(shown.picture()).count('class="far"') in (1, 2)  # a path for each colour
    assert (shown._spans[1, :2] - shown._spans[0, :2] < 50).all()


def test_one_far_value_does_not_squeeze_the_histogram(tmp_path):
    values = np.append(np.random.default_rng(0).normal(size=80), 1e6)
    pl.DataFrame({"a": values}).write_csv(tmp_path / "one.csv")
    job = Job(tmp_path / "one.csv", k=2, scale="none", report=tmp_path / "one.html")
    _, report, _, tree = page_of(job)
    assert report.map.limits.max() < 10
    assert "1 row beyond the border (arrow)." in tree.one("section", id="place").text


# the heat map


def test_the_heat_map_of_many_columns_is_a_table_with_the_most_telling_first(wide):
    _, report, _, tree = wide
    table = tree.one("section", id="profiles").one("table", cls="heat")
    heads = [node.text for node in table.all("th", scope="row")]
    largest = np.abs(report.profiles.scores).max(axis=0)
    assert heads == [NAMES[j] for j in np.argsort(-largest, kind="stable")]
    assert len(heads) == 34
    values = [float(cell.attributes["data-value"]) for cell in (row[0] for row in _cells(table))]
    assert values == sorted(values, reverse=True)


def _cells(table):
    return [row.all("td") for row in table.all("tr") if row.all("td")]


def test_no_mean_is_a_rounding_error(tmp_path):
    rng = np.random.default_rng(0)
    values = 1e6 * rng.normal(size=(40, 3))
    values[:20] -= values[:20].mean(axis=0)
    pl.DataFrame(values, schema=["a", "b", "c"]).with_columns(g=pl.Series([0] * 20 + [1] * 20)).write_csv(
        tmp_path / "zero.csv"
    )
    job = ReportJob(tmp_path / "zero.csv", labels="g", scale="none", output=tmp_path / "zero.html")
    result, _, html, _ = page_of(job)
    assert set(result.clusters[0].means.values()) == {0.0}
    assert not re.search(r"\de−1\d", html)


# series


def test_series_are_drawn_as_lines_with_their_barycenters(series):
    _, report, _, tree = series
    section = tree.one("section", id="profiles")
    assert len(section.all("path", cls="strand")) == 2
    assert len(section.all("path", cls="ink")) == 2
    assert "the thick line is the DTW barycenter of the cluster" in section.text
    assert not section.all("svg", cls="matrix")
    assert report.series.sizes.tolist() == [one.rows for one in report.result.clusters]


def test_silhouettes_of_series_are_in_the_metric_of_the_model(series, folder):
    result, report, _, _ = series
    table = pl.read_csv(folder / "series.csv").to_numpy().astype(float)
    distances = pairwise(table, metric="dtw")
    expected = silhouette_score(distances, result.labels, metric="precomputed")
    assert report.silhouettes.mean == pytest.approx(expected, rel=1e-6)
    assert result.clusters[0].silhouette is not None


# in a browser


def test_tabs_switch_maps_by_mouse_and_keyboard(visit, wide):
    seen = visit(wide[2])
    tabs = seen.page.get_by_role("tab")
    axes, neighbours = (seen.page.locator(f"#by-{name}") for name in ("axes", "neighbours"))
    assert tabs.all_inner_texts() == ["Principal axes", "Neighbour map (t-SNE)"]
    assert [axes.is_visible(), neighbours.is_visible()] == [True, False]
    tabs.nth(1).click()
    seen.settle()
    assert [neighbours.is_visible(), axes.is_visible()] == [True, False]
    assert seen.colours("#by-neighbours canvas") > 3
    seen.page.keyboard.press("ArrowRight")  # around to the first
    assert [axes.is_visible(), neighbours.is_visible()] == [True, False]
    assert seen.page.evaluate("document.activeElement.textContent") == "Principal axes"
    assert tabs.nth(0).get_attribute("aria-selected") == "true"
    assert tabs.nth(1).get_attribute("tabindex") == "-1"


def test_without_a_script_and_in_print_both_maps_are_shown(visit, wide):
    seen = visit(wide[2], scripts=False)
    assert seen.page.locator("#by-axes svg.still").is_visible()
    assert seen.page.locator("#by-neighbours svg.still").is_visible()
    assert seen.page.locator("#by-neighbours h3").is_visible()
    printed = visit(wide[2])
    printed.page.emulate_media(media="print")
    assert printed.page.locator("#by-axes svg.still").is_visible()
    assert printed.page.locator("#by-neighbours svg.still").is_visible()


def test_the_heat_map_is_sorted_by_a_cluster_and_searched(visit, wide):
    seen = visit(wide[2])
    table = seen.page.locator("table.heat")
    rows = table.locator("tbody tr:visible")
    assert rows.count() == 30
    table.locator("thead button").nth(2).click()
    values = rows.locator("td:nth-child(3)").evaluate_all("cells => cells.map(cell => Number(cell.dataset.value))")
    assert values == sorted(values)
    field = seen.page.locator("#profiles input.search")
    field.fill("column 33")
    assert rows.count() == 1


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_maps_heat_map_and_series_without_sideways_scrolling(visit, wide, series, dark):
    for html in (wide[2], series[2]):
        seen = visit(html, width=390, dark=dark)
        seen.settle()
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
