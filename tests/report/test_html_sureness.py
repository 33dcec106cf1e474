"""How sure is this? What the page says by the numbers that it has, and by those that nobody measured."""

from dataclasses import replace

import numpy as np
import pytest

from coterie.jobs import Job
from coterie.report.html import Absent
from coterie.report.html.report import Stable
from coterie.report.html.sections.sureness import sentences
from coterie.report.html.words import percent, two_places
from report.pages import blobs, mixed, page_of, run


def test_one_cluster_is_told_honestly(tmp_path):
    _, report, _, tree = page_of(
        Job(blobs(tmp_path, 200, 2, 1, 3.0), k=(1, 4), budget="quick", report=tmp_path / "r.html")
    )
    assert report.result.k == 1
    assert "No structure was found" in tree.one("section", id="sure").text
    assert "warn" in tree.one("section", id="sure").attributes["class"]
    assert isinstance(report.silhouettes, Absent)


@pytest.mark.parametrize("mean, weak", [(0.9, False), (0.6, False), (0.4, False), (0.1, True)])
def test_low_silhouettes_are_a_reason_to_doubt(penguins, mean, weak):
    report = penguins[1]
    told = sentences(replace(report, silhouettes=replace(report.silhouettes, mean=mean)))
    assert [sentence.weak for sentence in told if f"is {mean:.2f}" in sentence.text] == [weak]


@pytest.mark.parametrize("mean, weak", [(0.95, False), (0.8, False), (0.5, True)])
def test_clusters_that_do_not_come_back_are_a_reason_to_doubt(penguins, mean, weak):
    told = sentences(replace(penguins[1], stable=Stable(mean, 20, 342)))
    assert [sentence.weak for sentence in told if "drawn anew" in sentence.text] == [weak]


@pytest.mark.parametrize("support, weak", [(0.9, False), (0.7, False), (0.3, True)])
def test_criteria_that_disagree_are_a_reason_to_doubt(penguins, support, weak):
    report = penguins[1]
    told = sentences(replace(report, criteria=replace(report.criteria, confidence=support)))
    assert told[0].weak == weak
    assert report.criteria.reason in told[0].text


def test_a_fit_that_did_not_converge_says_so(tmp_path):
    job = Job(blobs(tmp_path, spread=6.0), k=5, options={"max_iter": 1, "n_init": 1}, report=tmp_path / "r.html")
    _, report = run(job)
    assert any("--max-iter" in sentence.text and sentence.weak for sentence in sentences(report))


def test_a_mixture_of_mixed_columns_says_what_it_knows_and_what_nobody_measured(tmp_path):
    job = Job(mixed(tmp_path), method="mixture", k=3, report=tmp_path / "r.html")
    _, report, _, tree = page_of(job)
    block = tree.one("section", id="sure")
    doubtful = (report.certainty.below * report.certainty.sizes).sum() / report.certainty.sizes.sum()
    below = percent(doubtful) if doubtful else "none"
    assert f"{two_places(report.certainty.mean)} in the mean, and below 0.9 for {below} of the rows" in block.text
    assert "Not measured: how far they lie apart" in block.text
    assert "whether they come back" in block.text
    assert "nothing but the fit itself speaks for these clusters" in block.text
    assert block.attributes["class"] == "note plain sure"


def test_rows_that_a_mixture_is_not_sure_of_are_a_reason_to_doubt(tmp_path):
    _, report = run(Job(blobs(tmp_path), method="gmm", k=3, report=tmp_path / "r.html"))
    for share, weak in [(0.01, False), (0.2, False), (0.5, True)]:
        unsure = replace(report, certainty=replace(report.certainty, below=np.full(3, share)))
        told = [sentence for sentence in sentences(unsure) if "The model itself" in sentence.text]
        assert [sentence.weak for sentence in told] == [weak]


def test_what_was_measured_is_not_said_to_be_unmeasured(penguins):
    assert "Not measured" not in penguins[3].one("section", id="sure").text
