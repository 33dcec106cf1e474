"""A notebook with a real kernel: every cell runs once, and its outputs are those that a reader sees."""

from __future__ import annotations

import os
import re

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = {
    "setup": """
        import numpy as np, pandas as pd
        from matplotlib.figure import Figure
        from coterie import AgglomerativeClustering, GaussianMixture, KMeans
        from coterie import Job, choose_k, diagnose, make_report, plots
        from coterie.datasets import make_blobs
        from coterie.hierarchy import linkage
        from coterie.selection import gap_statistic, mixture_table, stability, sweep, tendency
        X, truth = make_blobs(200, 3, centers=3, cluster_std=0.6, random_state=0)
        frame = pd.DataFrame(X, columns=["<b>width</b>", "height", "depth"])
        model = KMeans(3, random_state=0).fit(frame)
    """,
    "figure": "plots.clusters(model, frame)",
    "figure that is assigned": "display = plots.silhouette(model, frame)",
    "figure of a result": "choice = choose_k(frame, range(1, 6), budget='quick', random_state=0); choice.plot()",
    "figure in given axes": "left, right = Figure().subplots(1, 2)\nplots.clusters(model, frame, ax=left)",
    "figure of pyplot": """
        import matplotlib.pyplot as plt
        figure, ax = plt.subplots()
        plots.profiles(model, frame, ax=ax)
    """,
    "figure after pyplot": "plots.voronoi(model, frame)",
    "figure and another line": "plots.clusters(model, frame)\n1 + 1",
    "estimator": "model",
    "mixture": "GaussianMixture(3, init_params='kmeans', random_state=0).fit(frame)",
    "tree estimator": "AgglomerativeClustering(3).fit(X[:60])",
    "choose_k": "choice",
    "sweep": "result = sweep(KMeans(random_state=0), frame, range(1, 6)); result",
    "stability": "stability(KMeans(), frame, [2, 3, 4], n_resamples=3, random_state=0)",
    "gap": "gap_statistic(frame, range(1, 5), n_references=3, random_state=0)",
    "mixtures": "mixture_table(frame, [1, 2, 3], structures=['EII', 'VVV'], random_state=0)",
    "tendency": "tendency(frame, [2, 3], n_references=3, random_state=0)",
    "diagnose": "diagnose(frame, model=model, random_state=0)",
    "linkage": "linkage(X[:30], 'average')",
    "report": "make_report(frame, truth, title='Three blobs', random_state=0)",
    "job": "Job(frame, k=3).run()",
    "progress of a fit": "fit = KMeans(3, verbose=1, random_state=0).fit(frame)",
    "progress of a sweep": "result = sweep(KMeans(random_state=0), frame, range(1, 6), verbose=1)",
    "progress of a diagnosis": "diagnosis = diagnose(frame, model=model, random_state=0, verbose=1)",
}
FIGURES = {
    "figure": 1, "figure that is assigned": 0, "figure of a result": 1, "figure in given axes": 1,
    "figure of pyplot": 1, "figure after pyplot": 1, "figure and another line": 0,
}  # fmt: skip
RESULTS = ("estimator", "mixture", "tree estimator", "choose_k", "sweep", "stability", "gap", "mixtures", "tendency",
           "diagnose", "linkage", "job")  # fmt: skip


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The outputs of each cell of a notebook, which is executed once."""
    cells = [
        nbformat.v4.new_code_cell("\n".join(line.strip() for line in code.splitlines())) for code in CELLS.values()
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    client = NotebookClient(
        notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(tmp_path_factory.mktemp("nb"))}}
    )
    client.execute(env=environment)
    return dict(zip(CELLS, (cell.outputs for cell in notebook.cells), strict=True))


def images(cell):
    return sum("image/png" in output.get("data", {}) for output in cell)


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_runs_without_errors_and_warnings(name, outputs):
    kinds = [(output.output_type, output.get("name"), output.get("text", "")) for output in outputs[name]]
    assert [kind for kind in kinds if kind[0] == "error" or kind[1] == "stderr"] == []


@pytest.mark.parametrize("name, number", FIGURES.items())
def test_a_figure_is_shown_exactly_once(name, number, outputs):
    assert images(outputs[name]) == number


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_shown_as_html_with_text_as_alternative(name, outputs):
    (output,) = outputs[name]
    assert output.output_type == "execute_result"
    html, text = output.data["text/html"], output.data["text/plain"]
    assert "coterie-result" in html
    panel = html[html.index("coterie-result") :]
    assert "<script" not in panel
    assert "<b>width" not in panel
    assert len(text) < 5000
    assert "object at 0x" not in text


def test_a_report_is_shown_in_a_sandbox(outputs):
    (output,) = outputs["report"]
    html = output.data["text/html"]
    assert re.match(r'<iframe sandbox="allow-scripts" [^>]*srcdoc="', html)
    assert "Three blobs" in html
    assert "given labels, k = 3" in output.data["text/plain"]


@pytest.mark.parametrize("name", ["progress of a fit", "progress of a sweep", "progress of a diagnosis"])
def test_progress_is_one_output_that_is_updated(name, outputs):
    (output,) = outputs[name]
    assert output.output_type == "display_data"
    assert output.data["text/plain"]
    if name != "progress of a fit":
        assert '<progress value="1.0000"' in output.data["text/html"]
