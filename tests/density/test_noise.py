"""Noise is the label -1 in all parts of the library: each row of the table in docs/density.md has a test."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie import DBSCAN, HDBSCAN, metrics, plots
from coterie.datasets import make_blobs
from coterie.errors import ParameterError
from coterie.palette import NOISE
from coterie.selection import stability

ROOT = Path(__file__).parents[2]
BLOBS = make_blobs(150, centers=[[0.0, 0.0], [3.0, 1.0]], cluster_std=0.3, random_state=0)[0]
X = np.concatenate([BLOBS, [[9.0, 9.0], [-9.0, 4.0], [7.0, -8.0]]])
MODEL = HDBSCAN(12, min_samples=5).fit(X)
FILES = "tests/cli/test_density.py"

TESTED = {  # a row of the table: file and test
    "`labels_`, `predict`, output files": f"{FILES}::test_the_output_has_minus_one_the_name_noise_and_probability_zero",
    "`probabilities_`, column `cluster_probability`": (
        f"{FILES}::test_the_output_has_minus_one_the_name_noise_and_probability_zero"
    ),
    "model files": f"{FILES}::test_a_model_file_predicts_noise_which_is_unusual",
    "`dbcv_score`": "tests/metrics/test_dbcv.py::test_noise_lowers_the_score_and_scale_and_order_do_not_change_it",
    "other metrics": "tests/density/test_noise.py::test_other_metrics_count_noise_as_a_label",
    "`stability`": "tests/density/test_noise.py::test_stability_counts_noise_as_a_group",
    "silhouettes, means and profiles of the command line and the report": (
        f"{FILES}::test_noise_is_a_line_of_its_own_and_is_left_out_of_the_clusters"
    ),
    "rules of `coterie fit`": "tests/explanation/test_explain.py::test_noise_has_no_rule_but_counts_against_rules",
    "shares of clusters": f"{FILES}::test_noise_is_a_line_of_its_own_and_is_left_out_of_the_clusters",
    "`explain`, `diagnose`, `make_report`": (
        "tests/density/test_noise.py::test_explanations_diagnoses_and_reports_leave_noise_out"
    ),
    "maps, `plots.clusters`, `plots.voronoi`": "tests/density/test_noise.py::test_noise_is_grey",
    "`plots.silhouette`, `plots.profiles`": (
        "tests/density/test_noise.py::test_silhouettes_and_profiles_of_figures_leave_noise_out"
    ),
    "`unusual` of `coterie predict`": f"{FILES}::test_a_model_file_predicts_noise_which_is_unusual",
    "`choose_k`, `coterie choose-k`, `coterie compare`": f"{FILES}::test_commands_about_k_say_that_it_is_found",
    "exports to SQL, ONNX and Python": f"{FILES}::test_exports_are_rejected",
}


def test_every_row_of_the_table_has_a_test():
    section = (ROOT / "docs/density.md").read_text(encoding="utf-8").split("\n## Noise\n")[1].split("\n## ")[0]
    rows = [match.strip() for match in re.findall(r"^\| (.*?) \|", section, re.MULTILINE)]
    assert set(rows) - {"where"} == set(TESTED)
    for place in TESTED.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [HDBSCAN(12, min_samples=5), DBSCAN(0.8)], ids=["HDBSCAN", "DBSCAN"])
def test_the_labels_of_scattered_rows_are_minus_one(kind):
    model = kind.fit(X)
    assert model.n_clusters_ == 2
    assert model.labels_[-3:].tolist() == [-1, -1, -1]
    assert model.predict([[50.0, 50.0]]).tolist() == [-1]


@pytest.mark.parametrize("name", ["silhouette_score", "calinski_harabasz_score", "davies_bouldin_score", "dunn_score"])
def test_other_metrics_count_noise_as_a_label(name):
    score = getattr(metrics, name)
    other_name = np.where(MODEL.labels_ < 0, 7, MODEL.labels_)
    assert score(X, MODEL.labels_) == pytest.approx(score(X, other_name), rel=1e-12)
    assert score(X, MODEL.labels_) != score(BLOBS, MODEL.labels_[:150])
    truth = np.repeat([0, 1, 2], [75, 75, 3])
    compare = metrics.adjusted_rand_score
    assert compare(truth, MODEL.labels_) == compare(truth, MODEL.labels_ + 1)


def test_stability_counts_noise_as_a_group():
    few_clusters = stability(HDBSCAN(), X, [12, 140], n_resamples=3, random_state=0)
    assert few_clusters.mean[0] > 0.8
    assert few_clusters.mean[1] == 0  # all rows are noise, in every sample


def test_explanations_diagnoses_and_reports_leave_noise_out():
    explanation = coterie.explain(MODEL, X)
    assert [rule.label for rule in explanation] == ["0", "1"]
    assert explanation.noise == 3
    assert coterie.diagnose(X, model=MODEL, random_state=0).n_clusters == 2
    result = coterie.make_report(X, MODEL.labels_, scale="none").result
    assert [cluster.rows for cluster in result.clusters] == [75, 75]
    assert "3 rows in no cluster" in str(result)


def test_noise_is_grey():
    from matplotlib.colors import to_hex

    pytest.importorskip("matplotlib")
    for draw in (plots.clusters, plots.voronoi):
        display = draw(MODEL, X)
        assert (display.cloud.codes == -1).sum() == 3
    colours = plots.reachability(MODEL).bars_
    is_grey = [to_hex(bar.get_facecolor()) == NOISE.lower() for bar in colours]
    np.testing.assert_array_equal(is_grey, MODEL.labels_[MODEL.ordering_] == -1)


def test_silhouettes_and_profiles_of_figures_leave_noise_out():
    pytest.importorskip("matplotlib")
    silhouette = plots.SilhouetteDisplay.from_estimator(MODEL, X)
    assert silhouette.mean == pytest.approx(metrics.silhouette_score(BLOBS, MODEL.labels_[:150]))
    profiles = plots.ProfilesDisplay.from_estimator(MODEL, X)
    assert list(profiles.sizes) == [75, 75]
    np.testing.assert_allclose(profiles.means[0], BLOBS[MODEL.labels_[:150] == 0].mean(axis=0))


def test_choosing_k_says_that_there_is_none_to_choose():
    with pytest.raises(ParameterError, match="HDBSCAN has no parameter for the number of clusters"):
        coterie.choose_k(X, estimator=MODEL)
