"""How reliable is this result? The sentences of the page for given measures, and for missing ones."""

from dataclasses import replace

import numpy as np
import pytest

from coterie.jobs import Job
from coterie.report.formatting import percent, two_places
from coterie.report.html import Absent
from coterie.report.html.report import Stability
from coterie.report.html.sections.reliability import sentences
from report.pages import blobs, mixed, page_of, run


def test_one_cluster_means_that_no_structure_was_found(tmp_path):
    _, report, _, tree = page_of(
        Job(blobs(tmp_path, 200, 2, 1, 3.0), k=(1, 4), budget="quick", report=tmp_path / "r.html")
    )
    assert report.result.k == 1
    assert "No number of clusters is clear: all rows are in one cluster." in tree.one("section", id="sure").text
    assert "warn" in tree.one("section", id="sure").attributes["class"]
    assert isinstance(report.silhouettes, Absent)


@pytest.mark.parametrize("mean, weak", [(0.9, False), (0.6, False), (0.4, False), (0.1, True)])
def test_low_silhouettes_are_a_reason_to_doubt(penguins, mean, weak):
    report = penguins[1]
    items = sentences(replace(report, silhouettes=replace(report.silhouettes, mean=mean)))
    assert [sentence.weak for sentence in items if f"is {mean:.2f}" in sentence.text] == [weak]


@pytest.mark.parametrize("mean, weak", [(0.95, False), (0.8, False), (0.5, True)])
def test_unstable_clusters_are_a_reason_to_doubt(penguins, mean, weak):
    items = sentences(replace(penguins[1], stability=Stability(mean, 20, 342)))
    assert [sentence.weak for sentence in items if "under resampling" in sentence.text] == [weak]


@pytest.mark.parametrize("strength, weak", [("clear", False), ("weak", True), ("none", True)])
def test_a_number_that_is_not_clear_is_a_reason_to_doubt(penguins, strength, weak):
    report = penguins[1]
    choice = replace(report.criteria.choice, strength=strength)
    items = sentences(replace(report, criteria=replace(report.criteria, choice=choice)))
    assert items[0].weak == weak
    assert items[0].details == choice.reason


def test_a_fit_that_did_not_converge_says_so(tmp_path):
    job = Job(blobs(tmp_path, spread=6.0), k=5, options={"max_iter": 1, "n_init": 1}, report=tmp_path / "r.html")
    _, report = run(job)
    assert any("--max-iter" in sentence.text and sentence.weak for sentence in sentences(report))


def test_a_mixture_of_mixed_columns_lists_the_measures_that_are_not_available(tmp_path):
    job = Job(mixed(tmp_path), algorithm="mixture", k=3, report=tmp_path / "r.html")
    _, report, _, tree = page_of(job)
    block = tree.one("section", id="sure")
    doubtful = (report.certainty.below * report.certainty.sizes).sum() / report.certainty.sizes.sum()
    below = percent(doubtful) if doubtful else "none"
    assert f"{two_places(report.certainty.mean)}. It is below 0.9 for {below} of the rows" in block.text
    assert "Not measured: separation of the clusters" in block.text
    assert "stability under resampling" in block.text
    assert "These clusters could not be checked independently" in block.text
    assert block.attributes["class"] == "note plain sure"


def test_uncertain_rows_of_a_mixture_are_a_reason_to_doubt(tmp_path):
    _, report = run(Job(blobs(tmp_path), algorithm="gmm", k=3, report=tmp_path / "r.html"))
    for share, weak in [(0.01, False), (0.2, False), (0.5, True)]:
        unsure = replace(report, certainty=replace(report.certainty, below=np.full(3, share)))
        items = [sentence for sentence in sentences(unsure) if "The model is" in sentence.text]
        assert [sentence.weak for sentence in items] == [weak]


def test_available_measures_are_not_listed_as_not_measured(penguins):
    assert "Not measured" not in penguins[3].one("section", id="sure").text
