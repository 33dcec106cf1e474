"""The gap statistic of R's clusGap, printed for the ruspini table."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import KMeans
from coterie.selection import gap_statistic, sweep
from coterie.selection.gap import RULES, dispersion
from reference.shared_data import load, published


@pytest.fixture(scope="module")
def ruspini():
    X = load("r/ruspini")
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


@pytest.fixture(scope="module")
def printed():
    return {name: np.array(value) for name, value in published("gap.ruspini_scaled")["value"].items()}


@pytest.fixture(scope="module")
def found(ruspini):
    options = {"reference": "pca", "power": 1, "rule": "firstSEmax"}
    return gap_statistic(ruspini, range(1, 11), n_references=60, random_state=0, **options)


def test_log_w_of_the_optimal_clusters(ruspini, printed):
    """Half of the paper's W in R; to three decimals up to K = 7, from where on R's clusters were not the best."""
    best = sweep(KMeans(search="fast", random_state=0), ruspini, range(1, 11))
    found = np.log([dispersion(ruspini, labels, None, 1) / 2 for labels in best.labels])
    np.testing.assert_allclose(found[:7], printed["logW"][:7], atol=6e-4)
    assert (found[7:] < printed["logW"][7:] + 1e-3).all()


def test_log_w_without_a_search_is_close(found, printed):
    assert (np.abs(found.log_w - np.log(2) - printed["logW"])[:7] < 0.01).all()


def test_gaps_and_errors_are_within_chance(found, printed):
    """Both are means of draws: of ours and of theirs, each with its own error."""
    chance = np.hypot(found.se / np.sqrt(60), printed["SE"] / np.sqrt(100))
    assert (np.abs(found.expected - np.log(2) - printed["E_logW"])[:4] < 4 * chance[:4] + 5e-4).all()
    assert (np.abs(found.gap - printed["gap"])[:7] < 3 * printed["SE"][:7]).all()
    np.testing.assert_allclose(found.se, printed["SE"], rtol=0.4)


def test_four_clusters(found, printed):
    assert found.recommended == printed["k"] == 4


def test_the_rule_on_the_printed_numbers(printed):
    assert RULES["firstSEmax"](printed["gap"], printed["SE"]) + 1 == 4
    assert RULES["tibs2001SEmax"](printed["gap"], printed["SE"]) + 1 == 4
    assert RULES["globalmax"](printed["gap"], printed["SE"]) + 1 == 7
