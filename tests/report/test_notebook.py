"""HTML and text of results and fitted estimators, as notebooks show them."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import is_dataclass, replace
from functools import cache
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import jobs, selection
from coterie.datasets import make_blobs
from coterie.hierarchy import linkage
from coterie.report.build.fitted_clusters import fitted_clusters

X = make_blobs(90, 3, centers=3, cluster_std=0.4, random_state=0)[0]
HOSTILE = ['<script>alert("1")</script>', "<img src=x onerror=alert(1)>", "a & b\u202e"]
FRAME = pd.DataFrame(X, columns=HOSTILE)
UNSCALED = FRAME * [1, 1, 1e6]
RESULTS = {
    "choose_k": lambda: coterie.choose_k(X, range(1, 6), budget="quick", random_state=0),
    "sweep": lambda: selection.sweep(coterie.KMeans(random_state=0), X, range(1, 6)),
    "curve": lambda: result("sweep").curve("silhouette"),
    "gap_statistic": lambda: selection.gap_statistic(X, range(1, 5), n_references=3, random_state=0),
    "stability": lambda: selection.stability(coterie.KMeans(), X, [2, 3, 4], n_resamples=3, random_state=0),
    "mixture_table": lambda: selection.mixture_table(X, [1, 2, 3], structures=["EII", "VVV"], random_state=0),
    "tendency": lambda: selection.tendency(X, [2, 3], n_references=3, random_state=0),
    "dendrogram_gap": lambda: selection.dendrogram_gap(linkage(X, "ward"), 8),
    "kneedle": lambda: selection.kneedle(range(1, 9), [1000, 400, 120, 100, 85, 72, 61, 52]),
    "no knee": lambda: selection.kneedle([0.0, 0.5, 1.0], [0.0, 0.5, 1.0]),
    "x_means": lambda: selection.x_means(X, random_state=0),
    "diagnose": lambda: coterie.diagnose(UNSCALED, model=coterie.KMeans(3, random_state=0).fit(UNSCALED)),
    "explain": lambda: coterie.explain(coterie.KMeans(3, random_state=0).fit(FRAME), FRAME),
    "job": lambda: coterie.Job(FRAME, k=3).run(),
}
JOBS = {
    "job to run": lambda: coterie.Job(FRAME, k=3, options={"n_init": 2}),
    "choice to run": lambda: jobs.ChooseJob("<b>.csv", report="r.html"),
}
ESTIMATORS = {
    "KMeans": lambda: coterie.KMeans(3, random_state=0),
    "MiniBatchKMeans": lambda: coterie.MiniBatchKMeans(3, random_state=0),
    "BisectingKMeans": lambda: coterie.BisectingKMeans(3, random_state=0),
    "KMedoids": lambda: coterie.KMedoids(3, random_state=0),
    "GaussianMixture": lambda: coterie.GaussianMixture(3, init_params="kmeans", random_state=0),
    "spherical": lambda: coterie.GaussianMixture(3, covariance_type="VII", init_params="kmeans", random_state=0),
    "tied": lambda: coterie.GaussianMixture(3, covariance_type="EEE", init_params="kmeans", random_state=0),
    "Mixture": lambda: coterie.Mixture(3, "gaussian", random_state=0),
    "AgglomerativeClustering": lambda: coterie.AgglomerativeClustering(3),
    "KernelKMeans": lambda: coterie.KernelKMeans(3, random_state=0),
}


@cache
def result(name):
    return {**RESULTS, **JOBS}[name]()


@cache
def fitted(name):
    return ESTIMATORS[name]().fit(FRAME)


class Checked(HTMLParser):
    """Checks that elements are nested correctly, run nothing and load nothing."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert tag not in ("script", "img", "link", "iframe", "object")
        assert not any(name.startswith("on") or name in ("src", "href", "style") for name, _ in attributes)
        if tag not in ("br", "meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", [*RESULTS, *JOBS])
def test_a_result_has_html_without_scripts_and_outside_requests(name):
    html = result(name)._repr_html_()
    tags = Checked(html).tags
    assert "table" in tags or "pre" in tags or "ul" in tags
    assert "url(" not in html
    assert "@import" not in html


@pytest.mark.parametrize("name", ["choose_k", "sweep", "curve", "gap_statistic", "stability", "mixture_table"])
def test_results_over_k_have_a_table_and_a_chart(name):
    html = result(name)._repr_html_()
    assert {"table", "svg"} <= set(Checked(html).tags)
    assert len(html) < 60_000


@pytest.mark.parametrize("name", [*RESULTS, *JOBS])
def test_the_text_of_a_result_is_a_short_table(name):
    text = repr(result(name))
    assert is_dataclass(result(name))
    assert text == str(result(name))
    assert "array(" not in text
    assert name in JOBS or not text.startswith(type(result(name)).__name__)
    assert len(text) < 6000


def test_a_job_shows_its_table_and_the_options_that_are_not_the_defaults():
    assert repr(result("job to run")) == "Job(data frame, k=3, options={'n_init': 2})"
    assert repr(result("choice to run")) == "ChooseJob('<b>.csv', report='r.html')"
    assert "<b>" not in result("choice to run")._repr_html_()


def test_the_result_of_a_job_shows_what_its_text_says():
    """Its clusters with their sizes and rules, the choice of their number, warnings and files."""
    done, text = result("job"), unescape(re.sub("<[^>]*>", "", result("job")._repr_html_()))
    said = [word for line in str(done).splitlines() for word in re.split(r"\s{2,}| · |: |, ", line)]
    assert [word for word in said if word.strip() not in text] == []
    warned = replace(done, warnings=(HOSTILE[0],), output="a.csv", noise=3, choice=None)
    html = warned._repr_html_()
    Checked(html)
    assert "Warning: &lt;script&gt;" in html
    assert "wrote a.csv" in html
    assert "rows in no cluster" in html


def test_choose_k_shows_its_recommendation_and_marks_it():
    html = result("choose_k")._repr_html_()
    k = result("choose_k").recommended
    assert f"<strong>{result('choose_k').heading}</strong>" in html
    assert f">{k} ◀</td>" in html
    assert coterie.web.markup.escape(result("choose_k").reason) in html


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fitted_estimator_shows_its_clusters_below_the_diagram(name):
    model = fitted(name)
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    html = bundle["text/html"]
    assert html.index("sk-top-container") < html.index("coterie-result")
    panel = html[html.index('<div class="coterie-result">') :]
    Checked(panel)
    sizes = np.bincount(np.asarray(model.labels_))
    assert all(f"<td>{size}</td>" in panel for size in sizes)
    assert "<script>alert" not in panel


def test_an_estimator_that_is_not_fitted_shows_the_diagram_only():
    html = coterie.KMeans(3)._repr_mimebundle_()["text/html"]
    assert "sk-top-container" in html
    assert "coterie-result" not in html


def test_pipelines_show_the_diagram_of_scikit_learn():
    pipeline = make_pipeline(StandardScaler(), coterie.KMeans(3, random_state=0)).fit(X)
    html = pipeline._repr_mimebundle_()["text/html"]
    assert "KMeans" in html
    assert "coterie-result" not in html


def test_the_option_for_text_of_scikit_learn_is_respected():
    with config_context(display="text"):
        assert "text/html" not in fitted("KMeans")._repr_mimebundle_()
        assert not hasattr(fitted("KMeans"), "_repr_html_")


def test_columns_in_which_centers_differ_are_named_with_their_values():
    frame = pd.DataFrame({"noise": [0.0, 0.1, 0.0, 0.1], "age": [20.0, 21.0, 60.0, 61.0]})
    clusters = fitted_clusters(coterie.KMeans(2, random_state=0).fit(frame))
    assert sorted(clusters.traits) == [[("age", 20.5, 40.5)], [("age", 60.5, 40.5)]]
    assert clusters.sizes == [2, 2]
    assert clusters.facts[:2] == ["2 clusters", "4 rows"]


def test_columns_of_a_mixture_are_compared_in_standard_deviations():
    rng = np.random.default_rng(0)
    wide, separated = 1000 * rng.normal(size=300), np.repeat([0.0, 5.0], 150) + rng.normal(size=300) / 2
    model = coterie.GaussianMixture(2, covariance_type="diag", init_params=np.repeat([0, 1], 150))
    model.fit(np.column_stack([wide, separated]))
    assert [traits[0][0] for traits in fitted_clusters(model).traits] == ["x1", "x1"]


def test_names_of_columns_stay_text():
    html = fitted("KMeans")._repr_mimebundle_()["text/html"]
    assert "&lt;script&gt;" in html
    assert "<script>alert" not in html
    assert "<img" not in html


def test_many_clusters_are_shortened():
    model = coterie.KMeans(50, n_init=1, search="none", random_state=0).fit(X)
    html = model._repr_mimebundle_()["text/html"]
    assert "The 30 largest of 50 clusters." in html


def test_a_linkage_matrix_is_an_array_that_notebooks_show_as_a_tree():
    Z = linkage(X[:20], "average")
    assert isinstance(Z, np.ndarray)
    assert repr(Z) == repr(np.asarray(Z))
    assert "Tree of 20 rows" in Z._repr_html_()
    assert "average linkage" in Z._repr_html_()
    Checked(Z._repr_html_())
    assert type(2 * Z) is np.ndarray
    assert isinstance(Z[:, 2].max(), float)
    assert Z[:, :2]._repr_html_() is None
    assert Z[3:]._repr_html_() is None


def test_the_style_applies_to_results_only():
    style = re.search(r"<style>(.*?)</style>", result("sweep")._repr_html_(), re.DOTALL).group(1)
    depth, outside = 0, ""
    for character in re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL):
        depth += {"{": 1, "}": -1}.get(character, 0)
        outside += character if depth == 0 else ""
    assert depth == 0
    assert set(outside.replace("}", " ").split()) == {".coterie-result"}


def test_classes_of_charts_have_rules():
    style = re.search(r"<style>(.*?)</style>", result("sweep")._repr_html_(), re.DOTALL).group(1)
    html = "".join(result(name)._repr_html_().split("</style>")[1] for name in ("sweep", "stability", "mixture_table"))
    classes = {name for names in re.findall(r'class="([^"]+)"', html) for name in names.split()}
    plain = {"x-axis", "y-axis", "grid", "left"}
    assert {name for name in classes - plain if f".{name}" not in style} == set()


def test_results_are_shown_without_polars_and_matplotlib():
    code = """
import sys
sys.modules["polars"] = sys.modules["matplotlib"] = None
import numpy as np, coterie
from coterie.selection import sweep
X = np.random.default_rng(0).normal(size=(60, 2))
model = coterie.KMeans(3, random_state=0).fit(X)
assert "coterie-result" in model._repr_mimebundle_()["text/html"]
assert "<svg" in sweep(coterie.KMeans(random_state=0), X, [2, 3])._repr_html_()
assert coterie.diagnose(X, model=model, random_state=0)._repr_html_()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
