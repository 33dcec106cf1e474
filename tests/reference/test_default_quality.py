"""On public tables the default fit of the relatives of K-means is about as good as the best of many starts."""

from __future__ import annotations

import pytest

from reference.best_of_starts import ESTIMATORS, Cell, read, round_cost

WORSE = 1.005  # times the lowest known cost
RARELY = 0.02  # share of the fits that may be worse than that
QUICK_STARTS = 100
CHEAP = [("medoids", "r/butterfly", 3), ("medoids", "r/pluton", 3), ("spherical", "r/butterfly", 7)]


@pytest.mark.parametrize(
    "name, k",
    [
        ("medoids", 4),
        ("medoids", 6),
        ("spherical", 4),
        ("spherical", 6),
        ("l1", 4),
        ("l1", 6),
    ],
)
def test_the_default_is_within_half_a_percent_on_ruspini(name, k):
    cell = Cell(name, "r/ruspini", k)
    assert cell.default(0) <= WORSE * cell.best_of(QUICK_STARTS)


@pytest.mark.parametrize(
    "cell, seed",
    [
        (Cell("medoids", "mssc/german_towns", 7), 1),  # with 40 jumps 0.8 % above the optimum
        (Cell("medoids", "wut/mk2", 7), 0),  # one random start in ten ends in the optimum, and few jumps do
        (Cell("medoids", "wut/mk2", 12), 1),
        (Cell("medoids", "sipu/s1", 7), 0),  # with three descents 1.4 % above the best known
        (Cell("medoids", "wut/stripes", 12), 1),
        (Cell("spherical", "uci/sonar", 7), 0),  # with one jump 0.6 % above the optimum
        (Cell("spherical", "mssc/image_segmentation", 12), 0),  # searched by a sample, more than 0.5 % above
        (Cell("fuzzy", "mssc/image_segmentation", 7), 0),
        (Cell("l1", "uci/wdbc", 12), 0),  # with three jumps 0.9 % above
    ],
    ids=str,
)
def test_the_default_is_within_half_a_percent_where_it_was_not(cell, seed):
    assert cell.default(seed) <= WORSE * read()[cell][1]


@pytest.mark.parametrize("cell", CHEAP, ids=str)
def test_stored_costs_are_those_of_the_script(cell):
    starts, best = read()[cell]
    assert round_cost(Cell(*cell).best_of(starts)) == best


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_default_is_within_half_a_percent_on_public_tables(name):
    """With three seeds, except of a few fits; where every row can be on a center, the cost is zero but for rounding."""
    cells = {cell: best for cell, (_, best) in read().items() if cell.estimator == name}
    assert len(cells) > 0
    fits = [(cell, seed, best) for cell, best in cells.items() for seed in range(3)]
    worse = [(cell, seed) for cell, seed, best in fits if cell.default(seed) > WORSE * best + 1e-12]
    assert len(worse) <= RARELY * len(fits), worse
