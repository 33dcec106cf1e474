"""How many clusters, of tables where that is known: beside what each criterion would say alone."""

import numpy as np
import pytest

from coterie import choose_k
from reference.shared_data import load

# clusters that are more or less Gaussian; columns of different units are scaled
QUICK = {"r/ruspini": 4, "fcps/hepta": 7, "r/faithful": 2}
CLEAR = {"fcps/tetra": 4, "wut/x1": 3, "wut/mk1": 3}
SLOW = {
    "sipu/s1": 15, "sipu/s2": 15, "sipu/a1": 20, "sipu/a3": 50, "sipu/r15": 15, "sipu/unbalance": 8,
    "sipu/aggregation": 7, "fcps/engytime": 2, "fcps/twodiamonds": 2, "fcps/lsun": 3, "graves/dense": 2,
    "graves/fuzzyx": 5, "wut/mk4": 3, "wut/x2": 3, "g2mg/g2mg_2_30": 2, "g2mg/g2mg_16_30": 2, "g2mg/g2mg_64_50": 2,
    "h2mg/h2mg_2_30": 2, "r/iris": 3, "r/xclara": 3, "r/banknote": 2, "r/penguins": 3, "uci/wdbc": 2,
    "uci/wine": 3, "mssc/seeds": 3, "mssc/breast_wbc": 2,
}  # fmt: skip
SCALED = ("uci/", "mssc/", "r/iris", "r/banknote", "r/penguins", "r/faithful")


def answers(table):
    """The recommended K, and that of each criterion."""
    X = load(table)
    X = X[~np.isnan(X).any(axis=1)]
    if table.startswith(SCALED):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = choose_k(X, random_state=0)
    return {"all": found.recommended} | {vote.criterion: vote.k for vote in found.votes}


def right(tables, within):
    """Of the tables, how many each gets right."""
    count: dict[str, int] = {}
    for name, k in tables.items():
        for criterion, said in answers(name).items():
            count[criterion] = count.get(criterion, 0) + (said is not None and abs(said - k) <= within)
    return count


@pytest.mark.parametrize("table", [*QUICK, *(pytest.param(table, marks=pytest.mark.slow) for table in CLEAR)])
def test_clear_numbers_are_found(table):
    assert answers(table)["all"] == (QUICK | CLEAR)[table]


@pytest.mark.slow
@pytest.mark.parametrize("within", [0, 1])
def test_all_together_are_right_as_often_as_the_best_alone(within):
    count = right(QUICK | CLEAR | SLOW, within)
    together = count.pop("all")
    assert together >= max(count.values()), count
    assert together >= (23, 30)[within]
