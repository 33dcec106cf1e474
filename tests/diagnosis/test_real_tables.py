"""Real and benchmark tables whose problems are known."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import diagnose
from reference.shared_data import load

pytestmark = pytest.mark.whole_search


def problems(X):
    """Names of the checks that have a finding."""
    return {finding.check for finding in diagnose(X, random_state=0).findings}


def some_slow(quick, slow):
    return pytest.mark.parametrize("name", [*quick, *(pytest.param(name, marks=pytest.mark.slow) for name in slow)])


@some_slow(["sipu/r15", "r/ruspini"], ["r/xclara", "g2mg/g2mg_2_30", "g2mg/g2mg_16_30"])
def test_round_clusters_have_no_faults(name):
    assert problems(load(name)) == set()


def test_wine_needs_scaling():
    X = load("uci/wine")
    assert {"unscaled_columns", "dominating_column"} <= problems(X)
    assert not {"unscaled_columns", "dominating_column", "one_cluster"} & problems((X - X.mean(axis=0)) / X.std(axis=0))


@some_slow(["graves/ring"], ["graves/ring_noisy"])
def test_rings_are_nested(name):
    assert "nested_clusters" in problems(load(name))


@some_slow(["graves/zigzag", "fcps/lsun"], ["fcps/chainlink", "wut/stripes", "wut/smile"])
def test_k_means_misses_links_zigzags_and_stripes(name):
    assert "missed_pieces" in problems(load(name))


def test_circles_are_empty_in_the_middle():
    assert "hollow_clusters" in problems(load("wut/circles"))


def test_unbalanced_clusters_are_of_unequal_size_and_width():
    assert problems(load("sipu/unbalance")) == {"unequal_sizes", "unequal_spread"}


def test_columns_of_old_faithful_have_different_units():
    X = load("r/faithful")
    assert "unscaled_columns" in problems(X)
    assert diagnose(X / X.std(axis=0), random_state=0).n_clusters == 2


def test_letter_has_duplicate_rows():
    X = load("mssc/letter")
    check = diagnose(X, random_state=0)["duplicated_rows"]
    assert check.value == pytest.approx(1 - len(np.unique(X, axis=0)) / len(X))
    assert check.finding is not None
