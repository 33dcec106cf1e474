"""Remedies in reports of commands name options, and findings do not contradict each other."""

import re

import numpy as np

import coterie
from coterie.diagnosis import run_checks
from coterie.diagnosis.findings import Check, Finding
from coterie.diagnosis.n_clusters_checks import without_contradiction
from coterie.report.build.command_remedies import REMEDIES, command_remedy, with_command_remedies

PYTHON = re.compile(r"\w+\(|n_clusters|n_init|sklearn|sample_weight|[A-Z]\w+(Means|Medians|Mixture)\b|='")


def finding(check: str, **details) -> Check:
    sentence = f"{check}."
    return Check(check, 1.0, 0.5, 10, Finding(check, 1.0, 0.5, "warning", sentence, "Use KMeans().", details))


def test_every_check_has_a_remedy_on_the_command_line():
    X = np.random.default_rng(0).normal(size=(60, 2))
    names = coterie.diagnose(X, model=np.arange(60) % 2, random_state=0).checks
    assert set(REMEDIES) == set(names)
    assert set(run_checks.CLUSTER_CHECKS) <= set(REMEDIES)
    assert [text for text in REMEDIES.values() if PYTHON.search(text)] == []


def test_remedies_depend_on_the_finding():
    both = finding("too_few_clusters", pairs=[["0", "1"]]).finding
    assert "--search thorough" in command_remedy(both)
    assert "larger -k" not in command_remedy(both)
    assert "-a gmm" in command_remedy(finding("missed_pieces", form="elongated or unequal").finding)
    assert "-a single" in command_remedy(finding("missed_pieces", form="curved").finding)


def test_too_many_and_too_few_clusters_are_one_finding():
    many, few = finding("too_many_clusters", pairs=[["0", "1"]]), finding("too_few_clusters", clusters=["2"])
    assert without_contradiction(many, Check("too_few_clusters", 0.5, 0.01, 10)) == (
        many, Check("too_few_clusters", 0.5, 0.01, 10),
    )  # fmt: skip
    left, right = without_contradiction(many, few)
    assert left.finding is None
    assert left.value == many.value
    assert "no gap between clusters 0 and 1" in right.finding.sentence
    assert "n_clusters" not in right.finding.remedy


def test_a_diagnosis_of_misplaced_centers_has_no_contradiction():
    """Two centers in one group, one center for two groups."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    X[200:300, 0] += 30
    X[300:, 0] += 40
    labels = np.where(np.arange(400) >= 200, 2, X[:, 0] > 0)
    diagnosis = coterie.diagnose(X, model=labels, random_state=0)
    assert diagnosis["too_many_clusters"].finding is None
    assert "too few or too many" in diagnosis["too_few_clusters"].finding.sentence
    remedies = [each.remedy for each in with_command_remedies(diagnosis).findings]
    assert remedies
    assert not any(PYTHON.search(text) for text in remedies)
