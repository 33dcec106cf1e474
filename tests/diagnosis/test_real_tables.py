"""Tables whose faults are known."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import diagnose
from reference.shared_data import load


def found(X):
    return {finding.check for finding in diagnose(X, random_state=0).findings}


@pytest.mark.parametrize("name", ["sipu/r15", "r/xclara", "r/ruspini", "g2mg/g2mg_2_30", "g2mg/g2mg_16_30"])
def test_round_clusters_have_no_faults(name):
    assert found(load(name)) == set()


def test_wine_is_not_scaled():
    X = load("uci/wine")
    assert {"unscaled_columns", "dominating_column"} <= found(X)
    assert not {"unscaled_columns", "dominating_column", "one_cluster"} & found((X - X.mean(axis=0)) / X.std(axis=0))


@pytest.mark.parametrize("name", ["graves/ring", "graves/ring_noisy"])
def test_rings_lie_around_one_another(name):
    assert "nested_clusters" in found(load(name))


@pytest.mark.parametrize("name", ["fcps/chainlink", "graves/zigzag", "wut/stripes", "fcps/lsun", "wut/smile"])
def test_links_zigzags_and_stripes_are_missed_by_centers(name):
    assert "missed_pieces" in found(load(name))


def test_circles_are_empty_in_the_middle():
    assert "hollow_clusters" in found(load("wut/circles"))


def test_unbalanced_clusters_are_of_unequal_size_and_width():
    assert found(load("sipu/unbalance")) == {"unequal_sizes", "unequal_spread"}


def test_old_faithful_is_measured_in_units_that_do_not_compare():
    X = load("r/faithful")
    assert "unscaled_columns" in found(X)
    assert diagnose(X / X.std(axis=0), random_state=0).n_clusters == 2


def test_letters_of_twenty_thousand_rows_repeat_themselves():
    X = load("mssc/letter")
    check = diagnose(X, random_state=0)["duplicated_rows"]
    assert check.value == pytest.approx(1 - len(np.unique(X, axis=0)) / len(X))
    assert check.finding is not None
