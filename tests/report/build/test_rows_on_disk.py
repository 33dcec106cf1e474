"""What jobs tell of rows: the same wherever they lie, and however many are looked at together."""

import hashlib
import tracemalloc
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from coterie.data import memory
from coterie.data.tables import reader as table
from coterie.jobs import CompareJob, Job, ReportJob
from coterie.plots import projection, silhouette_display
from coterie.preparation import scaling
from coterie.report.build import cluster_moments as passes
from coterie.report.build import feature_space as spaces
from coterie.report.build import fit_report, neighbour_view, profiles, python_code, reliability, report_source
from coterie.report.build.cluster_summaries import silhouettes, summaries
from coterie.report.formatting import percent
from coterie.report.html import Absent, as_html
from report.pages import blobs, keep, mixed, read, run


@pytest.fixture(autouse=True)
def kept_reports(monkeypatch):
    keep(monkeypatch)


# Pages


def on_disk(folder, prepared):
    """The same rows in a file."""
    rows = prepared.rows
    S = np.memmap(folder / f"rows{len(list(folder.iterdir()))}", rows.X.dtype, "w+", shape=rows.X.shape)
    S[:] = rows.X
    return replace(prepared, rows=replace(rows, X=S, model_input=S if rows.model_input is rows.X else rows.model_input))


def kept_calls(monkeypatch):
    """What `fit_report.build` was called with."""
    calls, build = [], fit_report.build

    def keeping(*args, **options):
        calls.append((args, options))
        return build(*args, **options)

    monkeypatch.setattr(fit_report, "build", keeping)
    return calls


def leave_out_resamples(monkeypatch):
    """What takes most of the time, and looks at drawn rows alone."""
    monkeypatch.setattr(reliability, "resampling_stability", lambda *_: Absent("left out"))
    monkeypatch.setattr(reliability, "diagnosis", lambda *_: Absent("left out"))


def jobs_of(folder):
    """Of every kind of page, one: holes, weights, categories, one column, rows in no cluster."""
    page = {"report": folder / "r.html"}
    more = {"city": np.array(["Oslo", "Rome", None])[np.arange(300) % 3], "w": np.arange(300) % 4 + 0.5}
    path = blobs(folder, **more)
    frame = pl.read_parquet(path)
    frame.with_columns(
        x1=pl.when(pl.int_range(300) % 7 > 0).then("x1"), group=pl.Series(["a", "b", "-1"] * 100)
    ).write_parquet(folder / "holes.parquet")
    return {
        "weights": Job(path, k=3, weight="w", id="id", **page),
        "gmm": Job(path, k=3, algorithm="gmm", **page),
        "one hot": Job(path, k=3, one_hot=("city",), missing="drop", **page),
        "holes": Job(folder / "holes.parquet", k=3, missing="ignore", **page),
        "dropped": Job(folder / "holes.parquet", k=2, missing="drop", scale="minmax", **page),
        "one column": Job(path, k=3, columns=("x1",), **page),
        "two columns": Job(path, k=3, columns=("x1", "x0"), scale="none", **page),
        "one cluster": Job(path, k=1, **page),
        "labels": ReportJob(folder / "holes.parquet", labels="group", missing="median", output=folder / "r.html"),
        "mixed": Job(mixed(folder), k=3, algorithm="mixture", **page),
    }


KINDS = [
    "weights", "gmm", "one hot", "holes", "dropped", "one column", "two columns", "one cluster", "labels", "mixed",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_the_same_of_rows_in_memory_and_on_disk(tmp_path, monkeypatch, kind):
    calls = kept_calls(monkeypatch)
    monkeypatch.setattr(spaces, "DENSE", 100)
    if kind != "weights":
        leave_out_resamples(monkeypatch)
    run(jobs_of(tmp_path)[kind])
    ((result, source), options) = calls[0]
    here = as_html(fit_report.build(result, source, **options))
    if options.get("all_rows") is not None:
        options["all_rows"] = on_disk(tmp_path, options["all_rows"])
    assert (
        as_html(fit_report.build(result, replace(source, prepared=on_disk(tmp_path, source.prepared)), **options))
        == here
    )


def numbers_of(report):
    """What a page tells of all rows, as arrays."""
    shown = report.map
    places = [shown.centers, shown.covariances] if hasattr(shown, "covariances") else [shown.centers]
    return [
        *[np.array(list(one.means.values())) for one in report.result.clusters],
        *[np.array([trait.deviation for trait in one.stands_out_by]) for one in report.result.clusters],
        report.profiles.means, report.profiles.scores, report.spreads.quantiles, shown.points,
        *[each for each in places if each is not None],
        *[each.shares for each in report.shares],
        *([report.tree.display.y] if hasattr(report.tree, "display") else []),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_of_parts_changes_no_number_beyond_rounding(tmp_path, monkeypatch, kind):
    leave_out_resamples(monkeypatch)
    job = replace(jobs_of(tmp_path)[kind], force=True)
    found = []
    for size in (7, 10**9):
        monkeypatch.setattr(passes, "ROWS", size)
        found.append(run(job)[1])
    one, other = found
    assert one.examples == other.examples
    assert one.explained == other.explained
    for a, b in zip(numbers_of(one), numbers_of(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["weights", "one hot", "holes", "one column", "mixed"])
def test_points_have_the_mean_and_variance_of_the_rows_for_axes(tmp_path, monkeypatch, kind):
    leave_out_resamples(monkeypatch)
    calls = kept_calls(monkeypatch)
    run(jobs_of(tmp_path)[kind])
    space = spaces.feature_space(calls[0][0][1].prepared)
    rows, points = space.rows(), space[:]
    np.testing.assert_allclose(rows.mean, points.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(rows.variance, points.var(axis=0), atol=1e-12)
    assert np.isfinite(points).all()


def test_weights_count_in_the_variance_explained_and_in_the_diagnosis(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "resampling_stability", lambda *_: Absent("left out"))
    w = np.where(np.arange(300) % 3 == 0, 0, np.arange(300) % 3 * 5)
    path = blobs(tmp_path, spread=4.0, w=w)
    result, report = run(Job(path, k=3, weight="w", report=tmp_path / "r.html"))
    X = pl.read_parquet(path).select("x0", "x1", "x2").to_numpy()
    X = X.repeat(w, axis=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = result.labels.repeat(w)
    within = sum(((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum() for j in range(3))
    share = 1 - within / ((X - X.mean(axis=0)) ** 2).sum()
    assert report.explained.value == percent(share, 0)
    assert report.diagnosis.rows == 200


def test_a_report_of_rows_on_disk_never_has_them_in_memory(tmp_path, monkeypatch):
    """Neither as values, nor as a mark of one byte for each."""
    leave_out_resamples(monkeypatch)
    calls = kept_calls(monkeypatch)
    small = {
        passes: {"ROWS": 200, "PIVOT_ROWS": 50}, spaces: {"BLOCK": 1 << 14, "POINTS": 200, "VALUES": 1000},
        profiles: {"MANY_ROWS": 200, "MIN_ROWS": 100}, projection: {"BLOCK": 200}, neighbour_view: {"ROWS": 200},
        silhouette_display: {"EXACT": 200}, memory: {"SMALL_PART": 1 << 18, "LARGE_PART": 1 << 18},
        scaling: {"BLOCK": 1 << 17},
    }  # fmt: skip
    for module, values in small.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    n, d = 20_000, 200
    X = np.random.default_rng(0).normal(size=(n, d)) + 8 * np.eye(3, d)[np.arange(n) % 3]
    np.save(tmp_path / "x.npy", X)
    page = {"report": tmp_path / "r.html"}
    run(Job(tmp_path / "x.npy", k=3, scale="standard", options={"n_init": 1, "max_iter": 3}, batch_rows=1000, **page))
    ((result, source), options) = calls[0]
    tracemalloc.start()
    try:
        measured = silhouettes(source.prepared, result.labels, options["fit"].model)
        summaries(source.prepared, result.labels, 3, measured)
        fit_report.build(result, source, **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < X.size


def test_a_page_is_the_same_however_many_rows_are_read_at_a_time(tmp_path, monkeypatch):
    calls = kept_calls(monkeypatch)
    leave_out_resamples(monkeypatch)
    path = tmp_path / "t.csv"
    pl.read_parquet(blobs(tmp_path, city=np.array(["Oslo", "Rome", None])[np.arange(300) % 3])).write_csv(path)
    for batch_rows in (None, 1, 70):
        run(Job(path, k=3, id="id", batch_rows=batch_rows, report=tmp_path / "r.html", force=True))
    pages = [as_html(fit_report.build(result, *rest, **options)) for (result, *rest), options in calls[:3]]
    assert pages[1] == pages[0]
    assert pages[2] == pages[0]


def test_runs_of_a_comparison_are_drawn_of_rows_on_disk(tmp_path, monkeypatch):
    path = blobs(tmp_path)
    pages = [
        run(CompareJob(path, algorithms=("kmeans", "gmm"), k=3, batch_rows=rows, report=tmp_path / f"{rows}.html"))[1]
        for rows in (None, 50)
    ]
    for (_, one), (_, other) in zip(pages[0].maps, pages[1].maps, strict=True):
        assert one.to_dict() == other.to_dict()


# Random samples of rows


def test_quantiles_of_large_clusters_are_those_of_a_sample_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(profiles, "MANY_ROWS", 1000)
    monkeypatch.setattr(profiles, "MIN_ROWS", 200)
    leave_out_resamples(monkeypatch)
    X = np.sort(np.random.default_rng(0).normal(size=(3_000, 2)), axis=0) + 20.0 * (np.arange(3_000) < 100)[:, None]
    np.save(tmp_path / "x.npy", X)
    result, report = run(Job(tmp_path / "x.npy", k=2, report=tmp_path / "r.html"))
    small = np.argmin([one.rows for one in result.clusters])
    assert report.spreads.sampled == 500
    note = "Clusters with more than 500 rows are represented by a random sample of that size."
    assert note in read(as_html(report)).one(id="profiles").text
    exact = np.quantile(X[:100], profiles.QUANTILES, axis=0).T
    np.testing.assert_allclose(report.spreads.quantiles[small], exact, rtol=1e-12)
    whole = np.quantile(X[100:], profiles.QUANTILES, axis=0).T
    np.testing.assert_allclose(report.spreads.quantiles[1 - small], whole, atol=0.35)  # 5 % of 500: s.e. 0.1


def test_without_samples_the_page_mentions_none(tmp_path, monkeypatch):
    leave_out_resamples(monkeypatch)
    _, report = run(Job(blobs(tmp_path), k=3, report=tmp_path / "r.html"))
    assert report.spreads.sampled is None
    assert report.checked_rows == 300
    assert "random sample" not in read(as_html(report)).one("main").text


def test_findings_of_a_sample_have_the_row_numbers_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "CHECKED", 400)
    monkeypatch.setattr(reliability, "MIN_CHECKED", 100)
    monkeypatch.setattr(reliability, "resampling_stability", lambda *_: Absent("left out"))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 2)) + 30.0 * (np.arange(1_000) % 2)[:, None]
    X[:50] = np.nan
    shown = reliability.sample_rows(950, 400) + 50
    far = shown[[3, 17, 250]]
    X[far] = [[400.0, -400.0], [380.0, 380.0], [-420.0, 420.0]]
    np.save(tmp_path / "x.npy", X)
    _, report = run(Job(tmp_path / "x.npy", k=2, missing="drop", report=tmp_path / "r.html"))
    found = report.diagnosis["outliers"].finding
    assert sorted(found.details["indices"]) == far.tolist()
    assert sorted(found.sentence.rstrip(".").rpartition("rows ")[2].split(", ")) == sorted(map(str, far))
    text = read(as_html(report)).one(id="watch").text
    assert "Checked on a random sample of 400 of 950 rows." in text


def test_axes_of_a_very_wide_table_are_those_of_a_sample_and_the_page_says_so(tmp_path, monkeypatch):
    leave_out_resamples(monkeypatch)
    monkeypatch.setattr(spaces, "WIDE", 3)
    monkeypatch.setattr(projection, "WIDE", 3)
    monkeypatch.setattr(spaces, "AXIS_VALUES", 4 * 1200)
    X = np.random.default_rng(0).normal(size=(3_000, 4)) * [1, 9, 1, 4]
    np.save(tmp_path / "x.npy", X)
    _, report = run(Job(tmp_path / "x.npy", k=2, report=tmp_path / "r.html"))
    assert "The axes are computed from a random sample of 1,200 rows." in report.map_note
    seen = np.abs(np.corrcoef(report.map.points[:, 0], X[:, 1][spaces.sample_rows(3_000, spaces.POINTS)])[0, 1])
    assert seen > 0.99


# Categories, names and fingerprints, some rows at a time


class Cut(table.WholeTable):
    """A table that is handed out three rows at a time."""

    @classmethod
    def of(cls, path, raw, typed):
        return cls(path, dict(typed.schema), typed.height, (), raw, typed)

    def batches(self, columns):
        return self.typed.select(columns).iter_slices(3)

    def raw_batches(self, columns=None):
        return (self.raw if columns is None else self.raw.select(columns)).iter_slices(3)


@pytest.fixture
def people(tmp_path):
    n = 100
    frame = pl.DataFrame(
        {
            "x": np.arange(n) % 5 * 1.0,
            "city": [None if i % 10 == 9 else f"c{i % 17 * i % 19}" for i in range(n)],
            "name": [f"person {i}" for i in range(n)],
            "same": ["a"] * n,
            "half": ["a"] * 50 + [None] * 50,
        }
    )
    return Cut.of(tmp_path / "p.csv", frame.cast(pl.String), frame)


def test_columns_of_few_values_are_found(people):
    assert profiles.few_values(people, ["city", "name", "same", "half"]) == ["city", "half"]
    assert profiles.few_values(people, []) == []


def test_a_column_of_many_values_is_rejected(people, monkeypatch):
    asked = []
    unique = pl.Series.unique
    monkeypatch.setattr(pl.Series, "unique", lambda self, **more: asked.append(self.name) or unique(self, **more))
    profiles.few_values(people, ["name", "half"])
    assert asked.count("half") == 34
    assert asked.count("name") == 21  # 61 values are too many


def test_shares_are_those_of_a_count_of_the_rows_with_a_value(people):
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, size=100)
    counts = profiles._counts(people, ["city"], codes, np.ones(100))["city"]
    sizes = np.bincount(codes[codes >= 0])
    found = profiles._shares("city", counts, False, ["0", "1", "2"], sizes, sizes.astype(np.float64))
    texts = np.array(people.typed["city"].fill_null("(missing)").to_list())
    is_missing = texts == "(missing)"
    inside = texts[(codes >= 0) & ~is_missing].tolist()
    often = sorted(set(inside), key=lambda value: (-inside.count(value), value))
    assert len(often) > profiles.VALUES
    assert found.values == [*often[:11], "all others", "(missing)"]
    for i in range(3):
        for j, value in enumerate(found.values[:-1]):
            own = ~np.isin(texts, found.values) if value == "all others" else texts == value
            assert found.shares[i, j] == pytest.approx(own[(codes == i) & ~is_missing].mean())
        assert found.shares[i, -1] == pytest.approx(is_missing[codes == i].mean())
    np.testing.assert_allclose(found.shares[:, :-1].sum(axis=1), 1.0)


def test_rows_far_down_are_called_by_their_own_names(people):
    places = np.array([99, 0, 42, 43, 42])
    assert fit_report._values(people, "name", places) == [f"person {i}" for i in places]


def test_a_table_without_a_file_has_the_fingerprint_of_its_csv(people):
    from_stdin = Cut.of(table.STANDARD_INPUT, people.raw, people.typed)
    digest = hashlib.sha256(people.raw.write_csv().encode()).hexdigest()
    assert (
        report_source.fingerprint(from_stdin)
        == f"standard input: 100 rows, 5 columns; SHA-256 of the table as CSV {digest}"
    )


@pytest.mark.parametrize("row, plain", [("1,5;a", False), ("1.5;a,b", True)])
def test_a_comma_before_decimals_far_down_is_seen(tmp_path, row, plain):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x;y", *["2;a"] * 20, row]), encoding="utf-8")
    read_whole = table.read(path)
    assert python_code._is_plain(Cut.of(path, read_whole.raw, read_whole.typed)) is plain
