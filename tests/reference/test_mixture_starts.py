"""Searches for starts against the best of 200 independent starts, and the default one against ten single starts."""

import numpy as np
import pytest

from coterie import GaussianMixture
from coterie.families.structures import STRUCTURES
from coterie.selection import mixture_table
from reference.independent_starts import best_of_starts, is_sound, rows_of, stored_values
from reference.shared_data import load

SLACK = 0.1  # of a log-likelihood
SEEDS = 5
# cells in which a search from the best run alone finds another optimum, or one with a degenerate component
CELLS = [
    ("mssc/german_towns", "VEV", 3),
    ("mssc/german_towns", "VVI", 3),
    ("r/EuroUnemployment", "VVV", 2),
    ("r/USArrests", "VEV", 3),
    ("r/butterfly", "EVV", 3),
    ("r/pluton", "EEV", 2),
    ("r/pluton", "VEV", 4),
    ("r/pluton", "VVV", 4),  # the best by the penalised objective is not the most likely
    ("r/hartigan_nutrients_meat_fish_fowl_1959", "VVV", 4),  # one start in 300 is sound
    ("sipu/spiral", "VEE", 3),  # a run that is hardly sound ends in a degenerate component
    ("r/ppclust_x12", "EEI", 3),
    ("mssc/breast_wbc", "EEE", 4),  # one random start in 3,000
    ("mssc/hatco", "EVV", 2),  # optima differ in a few rows
]


def stored_cells():
    """Tables and numbers of components; one component needs no search."""
    return [(name, int(k)) for name, of_table in stored_values().items() for k in of_table if k != "1"]


def stored(name, structure, k):
    """The stored log-likelihood of a cell; minus infinity if no start has a sound fit."""
    value = stored_values()[name][str(k)][structure]
    return -float("inf") if value is None else value


# cells with a sound fit
SOUND = [
    (name, structure, k)
    for name, k in stored_cells()
    for structure in STRUCTURES
    if stored(name, structure, k) > -float("inf")
]


@pytest.mark.parametrize("name, structure, k", CELLS)
def test_thorough_fits_are_sound_and_one_of_five_is_as_likely_as_the_best_of_200_starts(name, structure, k):
    """On the hardest two of these tables three of four seeds find the best optimum, on the others nearly all."""
    X = rows_of(name)
    for seed in range(SEEDS):
        model = GaussianMixture(k, covariance_type=structure, search="thorough", random_state=seed).fit(X)
        assert is_sound(model, X)
        if model.log_likelihood_ >= stored(name, structure, k) - SLACK:
            return
    pytest.fail(f"none of {SEEDS} seeds")


def test_default_fits_are_as_likely_as_the_best_of_ten_single_starts():
    """In at least 34 of 40 random cells; and in at least 28 as likely as the best of 200 starts."""
    as_ten = as_200 = 0
    for i in np.random.default_rng(0).choice(len(SOUND), 40, replace=False):
        name, structure, k = SOUND[i]
        X = rows_of(name)
        found = likelihood_of(X, k, covariance_type=structure, random_state=0)
        singles = [likelihood_of(X, k, covariance_type=structure, search="none", random_state=i) for i in range(10)]
        as_ten += found >= max(singles) - SLACK
        as_200 += found >= stored(name, structure, k) - SLACK
    assert as_ten >= 34
    assert as_200 >= 28


def likelihood_of(X, k, **options):
    """The log-likelihood of a fit; minus infinity if it is not sound."""
    model = GaussianMixture(k, **options).fit(X)
    return model.log_likelihood_ if is_sound(model, X) else -float("inf")


def test_a_search_whose_runs_are_all_degenerate_makes_more_starts():
    X = rows_of("mssc/pima")
    likelihoods = [likelihood_of(X, 4, covariance_type="EVI", search="thorough", random_state=i) for i in range(3)]
    assert min(likelihoods) > -float("inf")
    assert max(likelihoods) >= stored("mssc/pima", "EVI", 4) - SLACK


@pytest.mark.parametrize(
    "name, structures, k",
    [
        ("mssc/german_towns", tuple(STRUCTURES), 2),
        ("r/faithful", ("VEI", "VEV"), 3),  # runs of the first structure end in another optimum of the second
    ],
)
def test_every_cell_of_a_table_is_as_likely_as_the_best_of_200_starts(name, structures, k):
    table = mixture_table(load(name), [k], structures=structures, starts="thorough", random_state=0)
    likelihoods = dict(zip(table.structures, table.log_likelihood[0], strict=True))
    best = {structure: stored(name, structure, k) for structure in structures}
    assert {s: (likelihoods[s], best[s]) for s in structures if likelihoods[s] < best[s] - SLACK} == {}


@pytest.mark.parametrize(
    "name, structure, k", [("mssc/german_towns", "VVI", 3), ("r/pluton", "EEV", 2), ("r/USArrests", "EEE", 1)]
)
def test_stored_values_are_those_of_200_starts(name, structure, k):
    assert best_of_starts(load(name), structure, k) == pytest.approx(stored(name, structure, k), abs=SLACK)


def test_the_best_of_200_starts_is_not_a_saddle_point():
    X = load("r/butterfly")
    where_em_stops, best = (best_of_starts(X, "EVV", 3, perturbed=perturbed) for perturbed in (False, True))
    assert stored("r/butterfly", "EVV", 3) == pytest.approx(best, abs=SLACK)
    assert best < where_em_stops - SLACK


def test_starts_with_a_component_that_collapses_slowly_do_not_count():
    assert best_of_starts(load("r/ppclust_x16"), "VII", 3) == stored("r/ppclust_x16", "VII", 3) == -float("inf")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*did not converge")  # where all fits have a component that collapses slowly
@pytest.mark.parametrize("name, k", stored_cells())
def test_every_public_table_is_fitted_as_well_as_by_200_starts(name, k):
    """Both by a thorough fit and in a thorough table, for every structure that has a sound local optimum at all."""
    X = rows_of(name)
    table = mixture_table(X, [k], starts="thorough", random_state=0)
    worse = []
    for structure, likelihood in zip(table.structures, table.log_likelihood[0], strict=True):
        best = stored(name, structure, k)
        model = GaussianMixture(k, covariance_type=structure, search="thorough", random_state=0).fit(X)
        alone = model.log_likelihood_ if is_sound(model, X) else -float("inf")
        if min(alone, likelihood) < best - SLACK:
            worse.append(f"{structure}: {best:.2f} by 200 starts, {alone:.2f} by a fit, {likelihood:.2f} in the table")
    assert worse == []
