"""The tables of mclust by one call: 14 structures, one to nine components.

mclust stops EM early and tries one start. A higher likelihood than printed is no mistake, a lower one is.
"""

from functools import cache

import numpy as np
import pytest

from coterie.families.structures import STRUCTURES
from coterie.selection import mixture_table
from reference.shared_data import load, published

SLACK = 0.2  # of BIC


TABLES = [
    pytest.param("iris", 3, marks=pytest.mark.slow),  # as many components as the best three cells have
    pytest.param("iris", 9, marks=pytest.mark.slow),
    pytest.param("faithful", 9, marks=pytest.mark.slow),
]


@cache
def table(name, most):
    return mixture_table(load(f"r/{name}"), range(1, most + 1), starts="thorough", random_state=0)


@pytest.mark.parametrize("name, most", TABLES)
def test_every_cell_is_as_good_as_printed_and_none_is_spurious(name, most):
    found, printed = table(name, most).table(mclust=True), published(f"mclust.{name}.bic")["value"]
    worse = []
    for row in found:
        for structure in STRUCTURES:
            bic = printed[structure][str(row["k"])]
            if bic is not None and (row[structure] is None or row[structure] < bic - SLACK):
                worse.append((structure, row["k"], row[structure], bic))
    assert worse == []
    assert table(name, most).failures == {}


@pytest.mark.parametrize("name, digits", [("iris", 4), ("faithful", 3)])
def test_one_component_is_as_printed_to_the_last_digit(name, digits):
    found, printed = table(name, 1).table(mclust=True)[0], published(f"mclust.{name}.bic")["value"]
    for structure in STRUCTURES:
        assert round(found[structure], digits) == printed[structure]["1"]


@pytest.mark.parametrize("name, most", TABLES)
def test_the_best_is_what_mclust_chooses(name, most):
    printed = published(f"mclust.{name}.bic")["value"]
    best = max((v, s, int(k)) for s, row in printed.items() for k, v in row.items() if v is not None)
    first = table(name, most).best(1)[0]
    assert (first.structure, first.k) == best[1:]
    assert first.value == pytest.approx(-best[0], abs=0.05)


@pytest.mark.parametrize("most", [3, pytest.param(9, marks=pytest.mark.slow)])
def test_the_best_three_of_iris_by_bic_and_icl(most):
    assert [str(choice) for choice in table("iris", most).best()] == ["VEV,2", "VEV,3", "VVV,2"]
    assert [str(choice) for choice in table("iris", most).best(2, "icl")] == ["VEV,2", "VEV,3"]
    assert np.isclose(table("iris", most).models[2, "VEV"].log_likelihood_, -215.726, atol=0.01)
