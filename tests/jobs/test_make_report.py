"""`coterie.make_report`, and jobs of data frames."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.cluster
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import Job, KMeans, make_report
from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.jobs import ReportJob, report

X, TRUTH = make_blobs(90, 2, centers=3, cluster_std=0.4, random_state=0)
FRAME = pd.DataFrame({"width": X[:, 0], "height": X[:, 1], "colour": np.array(["red", "green", "blue"])[TRUTH]})


def sizes(page):
    return {cluster.display_name: cluster.rows for cluster in page.result.clusters}


@pytest.fixture(scope="module")
def page():
    return make_report(FRAME, TRUTH, title="Three <blobs>", random_state=0)


def test_the_page_is_that_of_the_command(page, tmp_path):
    """A table with a column of labels has the same sections, but for remedies and how to reproduce it."""
    FRAME.assign(cluster=TRUTH).to_csv(tmp_path / "table.csv", index=False)
    report(ReportJob(tmp_path / "table.csv", labels="cluster", output=tmp_path / "report.html"))
    pages = [(tmp_path / "report.html").read_text(encoding="utf-8"), page.html]
    one, other = (dict(re.findall(r'<section id="(\w+)"(.*?)</section>', html, re.DOTALL)) for html in pages)
    assert one.keys() == other.keys()
    assert {key for key in one if one[key] != other[key]} == {"number", "reproduce"}  # remedies are calls, no command


def test_the_title_is_text(page):
    assert "<h1>Three &lt;blobs&gt;</h1>" in page.html
    assert "<blobs>" not in page.html


def test_a_notebook_shows_the_page_in_a_sandbox_and_a_terminal_a_table(page):
    assert page._repr_html_().startswith('<iframe sandbox="allow-scripts"')
    assert "given labels, k = 3" in repr(page)
    assert "stands out by" in repr(page)


def test_a_page_is_saved_once(page, tmp_path):
    path = tmp_path / "report.html"
    page.save(path)
    assert path.read_text(encoding="utf-8") == page.html
    with pytest.raises(FileExistsError, match="overwrite=True"):
        page.save(path)
    page.save(str(path), overwrite=True)
    with pytest.raises(ParameterError, match=r'path must end in .html; got "report.txt"'):
        page.save("report.txt")


def test_a_path_is_checked_before_and_written_after(tmp_path):
    page = make_report(X, TRUTH, tmp_path / "x.html", static=True, random_state=0)
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == page.html
    assert "<script" not in page.html
    with pytest.raises(FileExistsError):
        make_report(X, TRUTH, tmp_path / "x.html")
    with pytest.raises(ParameterError, match=r"path must end in .html"):
        make_report(X, TRUTH, tmp_path / "x.csv")


@pytest.mark.parametrize(
    "labels",
    [TRUTH.tolist(), pd.Series(TRUTH), pl.Series(TRUTH), TRUTH.astype(float), [f"group {label}" for label in TRUTH]],
    ids=["list", "pandas", "polars", "float", "names"],
)
def test_labels_of_any_type(labels):
    page = make_report(X, labels, random_state=0)
    assert sorted(sizes(page).values()) == [30, 30, 30]
    assert len(sizes(page)) == 3


@pytest.mark.parametrize(
    "convert", [lambda frame: frame, pl.from_pandas, lambda frame: pl.from_pandas(frame).lazy(), pa.Table.from_pandas]
)
def test_frames_of_any_library(convert):
    page = make_report(convert(FRAME), TRUTH, random_state=0)
    assert page.result.columns == ("width", "height")
    assert page.result.scale == "standard"


def test_rows_of_label_minus_one_are_in_no_cluster():
    labels = np.where(np.arange(90) < 5, -1, TRUTH)
    page = make_report(X, labels, random_state=0)
    assert sum(sizes(page).values()) == 85
    assert page.result.labels[:5].tolist() == [-1] * 5
    assert "5 rows in no cluster left out" in page.html


def test_labels_of_other_libraries_and_pipelines():
    dbscan = sklearn.cluster.DBSCAN(eps=0.8).fit(X)
    assert sum(sizes(make_report(X, dbscan, random_state=0)).values()) == np.count_nonzero(dbscan.labels_ >= 0)
    pipeline = make_pipeline(StandardScaler(), sklearn.cluster.KMeans(3, random_state=0)).fit(
        FRAME[["width", "height"]]
    )
    assert sorted(sizes(make_report(FRAME[["width", "height"]], pipeline, random_state=0)).values()) == [30, 30, 30]


def test_an_estimator_of_coterie_adds_stability_and_convergence():
    model = KMeans(3, random_state=0).fit(FRAME[["width", "height"]])
    page = make_report(FRAME, model, random_state=0)
    assert page.result.columns == ("width", "height")
    assert page.result.scale == "none"
    assert page.result.title == "KMeans"
    assert page.result.scores["inertia"] == pytest.approx(model.inertia_)
    assert "stable under resampling" in page.html
    alone = make_report(FRAME[["width", "height"]], model.labels_, scale="none", random_state=0)
    assert "stable under resampling (" not in alone.html


def test_remedies_are_calls_and_not_options(page):
    assert "pass the estimator" in page.html
    assert "coterie.choose_k" in page.html
    assert "--model" not in page.html
    unscaled = make_report(X * [1, 1e6], TRUTH, random_state=0)
    assert "Remedy: If the columns have different units, standardise them first" in unscaled.html
    assert "--scale" not in unscaled.html


def test_remedies_of_messy_tables_are_arguments():
    frame = FRAME.assign(id=np.arange(90) + 1000, double=2 * X[:, 1] + 1, when=pd.date_range("2020-01-01", periods=90))
    frame.loc[3, "width"] = np.nan
    for page in (make_report(frame, TRUTH, missing="ignore", random_state=0),
                 make_report(frame, "colour", missing="ignore", random_state=0)):  # fmt: skip
        texts = [
            *page.result.notes,
            *page.result.warnings,
            re.sub(r"<style>.*?</style>", "", page.html, flags=re.DOTALL),
        ]
        assert not [text for text in texts if re.search(r"(?<![\w-])--[a-z]|coterie choose-k", text)]
        assert 'use missing="drop" or missing="median"' in page.html.replace("&quot;", '"')
    with pytest.raises(
        InputError, match=r'missing="drop" \(keeps 89 rows\), missing="median", missing="ignore", or name the other'
    ):
        make_report(frame, TRUTH, random_state=0)


def test_a_map_can_be_chosen():
    wide = np.random.default_rng(0).normal(size=(40, 8))
    steps = []
    page = make_report(wide, np.arange(40) % 2, random_state=0, callback=steps.append)
    assert page.result.neighbour_map is not None
    assert "report: neighbour map" in [step.step for step in steps]
    assert make_report(wide, np.arange(40) % 2, map="axes", random_state=0).result.neighbour_map is None
    with pytest.raises(ParameterError, match="map must be one of auto, axes, neighbours"):
        make_report(wide, np.arange(40) % 2, map="tsne")


def test_a_column_of_labels():
    page = make_report(FRAME, "colour", title="Colours", random_state=0)
    assert "<h1>Colours</h1>" in page.html
    assert sizes(page) == {"blue": 30, "green": 30, "red": 30}
    assert "clusters of the column" in page.html


def test_a_cluster_whose_rows_have_no_weight_is_in_the_tree_and_on_the_map():
    page = make_report(X, TRUTH, sample_weight=np.where(TRUTH == 1, 0.0, 1.0), random_state=0)
    sections = dict(re.findall(r'<section id="(\w+)"(.*?)</section>', page.html, re.DOTALL))
    assert "tree of the 3 centers" in sections["hierarchy"]
    assert sections["clusters"].count('class="ids"') == 3


def test_weights_are_used():
    page = make_report(X, TRUTH, sample_weight=np.where(TRUTH == 0, 2.0, 1.0), random_state=0)
    assert [cluster.share for cluster in page.result.clusters] == [0.5, 0.25, 0.25]


def test_a_column_that_has_the_name_of_the_labels_is_not_replaced():
    frame = pd.DataFrame({"cluster": np.zeros(90, int), "width": X[:, 0], "height": X[:, 1]})
    page = make_report(frame, TRUTH, random_state=0)
    assert page.result.n_columns == 4
    assert sorted(sizes(page).values()) == [30, 30, 30]


def test_a_path_is_read(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert sorted(sizes(make_report(tmp_path / "t.csv", TRUTH, random_state=0)).values()) == [30, 30, 30]


def test_wrong_labels_are_errors():
    with pytest.raises(InputError, match="labels has 3 entries and X has 90 rows"):
        make_report(X, [0, 1, 2])
    with pytest.raises(ParameterError, match="model must be fitted"):
        make_report(X, KMeans(3))
    with pytest.raises(InputError, match='no column "color"'):
        make_report(FRAME, "color")
    with pytest.raises(InputError, match="no row has a cluster"):
        make_report(X, np.full(90, -1))


def test_progress_is_reported(capsys):
    steps = []
    make_report(X, TRUTH, random_state=0, callback=steps.append, verbose=2)
    assert "report: pictures" in [step.step for step in steps]
    assert "silhouettes" in capsys.readouterr().out


# Jobs


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_a_job_takes_a_frame(convert):
    result = Job(convert(FRAME), k=3).run()
    assert result.source == "the data frame"
    assert result.columns == ("width", "height")
    assert coterie.metrics.adjusted_rand_score(TRUTH, result.labels) == 1.0


def test_a_job_of_a_frame_is_that_of_the_file(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    by_path, by_name, by_frame = (
        Job(table, k=3).run() for table in (tmp_path / "t.csv", str(tmp_path / "t.csv"), FRAME)
    )
    np.testing.assert_array_equal(by_path.labels, by_name.labels)
    np.testing.assert_array_equal(by_path.labels, by_frame.labels)
    assert by_path.clusters == by_frame.clusters


def test_a_job_of_a_frame_writes_its_files(tmp_path):
    names = {"output": "out.csv", "report": "report.html", "model": "model.safetensors"}
    result = Job(FRAME, k=3, **{option: str(tmp_path / name) for option, name in names.items()}).run()
    assert pl.read_csv(tmp_path / "out.csv")["cluster"].to_list() == result.labels.tolist()
    assert "save it as a file" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert coterie.load(tmp_path / "model.safetensors") is not None


def test_the_text_of_a_result_is_that_of_the_terminal():
    result = Job(FRAME, k=3).run()
    assert "K-means, k = 3" in repr(result)
    assert "K-means, k = 3" in result._repr_html_()


def test_a_frame_without_rows_is_an_error():
    with pytest.raises(InputError, match="the data frame has no rows"):
        Job(FRAME.head(0), k=3).run()


@pytest.mark.parametrize("option", ["scale", "missing", "map"])
def test_unknown_choices_are_errors(option):
    with pytest.raises(ParameterError, match=f"{option} must be one of .*; got 'other'"):
        make_report(X, TRUTH, **{option: "other"})
