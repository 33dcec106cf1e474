"""Information criteria over numbers of components and structures."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from coterie import GaussianMixture
from coterie.datasets import make_gaussians
from coterie.errors import InputError, ParameterError
from coterie.families.structures import STRUCTURES
from coterie.selection import mixture_table
from coterie.selection.mixture_starts import is_special_case
from short_searches import short_searches

pytestmark = pytest.mark.whole_search
SOME = ["EII", "VVI", "EEE", "VVV"]


@pytest.fixture(scope="module")
def rows():
    X, _, _ = make_gaussians(150, 2, 3, separation=3.0, random_state=3)
    return X


@pytest.fixture(scope="module")
def full(rows):
    """A short search is enough for these rows: its cells are compared with whole searches below."""
    with short_searches():
        return mixture_table(rows, range(1, 5), random_state=0)


def test_criteria_follow_from_the_likelihood(full, rows):
    n = len(rows)
    np.testing.assert_allclose(full.bic, -2 * full.log_likelihood + full.n_parameters * np.log(n))
    np.testing.assert_allclose(full.aic, -2 * full.log_likelihood + 2 * full.n_parameters)
    assert (full.icl >= full.bic - 1e-9).all()
    np.testing.assert_allclose(full.icl[0], full.bic[0])  # one component: nothing to be uncertain of


def test_models_are_those_of_the_table(full, rows):
    kept = {(c.k, c.structure) for criterion in ("bic", "aic", "icl") for c in full.best(3, criterion)}
    assert set(full.models) == kept
    for (k, structure), model in full.models.items():
        i, j = full.ks.tolist().index(k), full.structures.index(structure)
        assert model.bic(rows) == pytest.approx(full.bic[i, j], rel=1e-9)
        assert model.aic(rows) == pytest.approx(full.aic[i, j], rel=1e-9)
        assert model.icl(rows) == pytest.approx(full.icl[i, j], rel=1e-9)
        assert model.n_parameters_ == full.n_parameters[i, j]
        np.testing.assert_array_equal(model.predict(rows), model.labels_)


def test_the_truth_is_best(full):
    assert full.structures == tuple(STRUCTURES)
    first, second, third = full.best()
    assert first.k == 3
    assert first.behind == 0 < second.behind < third.behind
    assert first.value == full.bic.min()
    assert full.best(1, "icl")[0].k == 3


def test_parameters_are_those_of_a_mixture(full, rows):
    for j, structure in enumerate(full.structures):
        model = GaussianMixture(3, covariance_type=structure, init_params="kmeans").fit(rows)
        assert full.n_parameters[2, j] == model.n_parameters_


def most_behind(found):
    """By how much a cell is less likely than one it contains, at worst."""
    pairs = [(a, b) for a in found.structures for b in found.structures if is_special_case(a, b)]
    likelihood = dict(zip(found.structures, found.log_likelihood.T, strict=True))
    return max((likelihood[special] - likelihood[general]).max() for special, general in pairs)


def test_no_cell_is_less_likely_than_a_special_case_of_it(full):
    assert most_behind(full) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_nor_where_there_is_nothing_to_find(seed):
    """Rows without clusters have many optima: of these seeds, the second leaves EEV above VEV at first."""
    even = np.random.default_rng(0).random((120, 3))
    found = mixture_table(even, [6], structures=("EEV", "VEV", "EVV", "VVV"), random_state=seed)
    assert most_behind(found) < 0.05


QUICK_CELLS = [(structure, 3) for structure in (*SOME, "VEV", "EVE")]
SLOW_CELLS = [cell for cell in product(STRUCTURES, (2, 3)) if cell not in QUICK_CELLS]


@pytest.mark.parametrize(
    "structure, k", [*QUICK_CELLS, *(pytest.param(*cell, marks=pytest.mark.slow) for cell in SLOW_CELLS)]
)
def test_cells_are_about_as_likely_as_a_search_of_their_own(structure, k, full, rows):
    j = full.structures.index(structure)
    alone = GaussianMixture(k, covariance_type=structure, random_state=1).fit(rows)
    assert full.log_likelihood[k - 1, j] >= alone.log_likelihood_ - 0.1


def test_what_is_the_same_for_one_component_is_fitted_once(full):
    for group in (("EII", "VII"), ("EEI", "VEI", "EVI", "VVI"), ("EEE", "VEE", "VVE", "EEV", "VVV")):
        places = [full.structures.index(name) for name in group]
        assert len(set(full.bic[0, places])) == 1
    ones = mixture_table(np.random.default_rng(0).normal(size=(200, 2)), [1]).best(14)
    assert [choice.structure for choice in sorted(ones, key=lambda choice: choice.structure)] == ["EEE", "EEI", "EII"]


@pytest.mark.parametrize("special, general, truly", [
    ("EII", "VVV", True), ("EII", "VII", True), ("VII", "EEE", False), ("EEE", "VEE", True), ("EVI", "EVE", True),
    ("EVE", "VVI", False), ("VVV", "VVV", False),
])  # fmt: skip
def test_letters_say_what_is_a_special_case(special, general, truly):
    assert is_special_case(special, general) == truly


@pytest.mark.usefixtures("short_searches")
def test_the_same_bits_on_any_number_of_threads(rows):
    one, three = (mixture_table(rows, [2, 3], structures=SOME, n_jobs=n_jobs, random_state=0) for n_jobs in (1, 3))
    for name in ("bic", "aic", "icl", "log_likelihood"):
        np.testing.assert_array_equal(getattr(one, name), getattr(three, name))


@pytest.mark.usefixtures("short_searches")
def test_weight_two_is_the_row_twice(rows):
    w = np.where(np.arange(len(rows)) % 2 == 0, 2.0, 1.0)
    weighted = mixture_table(rows, [1, 3], structures=SOME, sample_weight=w, random_state=0)
    repeated = mixture_table(np.repeat(rows, w.astype(int), axis=0), [1, 3], structures=SOME, random_state=0)
    np.testing.assert_allclose(weighted.bic, repeated.bic, atol=0.05)
    np.testing.assert_allclose(weighted.icl, repeated.icl, atol=0.5)


@pytest.mark.usefixtures("short_searches")
def test_float32_stays_and_frames_work(rows):
    single = mixture_table(rows.astype(np.float32), [3], structures=["VVV"], random_state=0)
    assert single.models[3, "VVV"].means_.dtype == np.float32
    frame = mixture_table(pd.DataFrame(rows, columns=["a", "b"]), [3], structures=["VVV"], random_state=0)
    np.testing.assert_allclose(single.bic, frame.bic, rtol=1e-3)


@pytest.mark.usefixtures("short_searches")
def test_one_column_has_two_structures():
    x = np.concatenate([np.random.default_rng(0).normal(-4, 1, 60), np.random.default_rng(1).normal(4, 1, 60)])[:, None]
    found = mixture_table(x, range(1, 4), random_state=0)
    assert found.structures == ("E", "V")
    assert str(found.best(1)[0]) == "E,2"


def test_a_cell_without_a_sound_fit_says_so():
    """Five rows in four columns: no component of a shape of its own has rows enough."""
    X = np.random.default_rng(0).normal(size=(5, 4))
    found = mixture_table(X, [2, 6], structures=["EII", "VVV"], random_state=0)
    assert set(found.failures) == {(2, "VVV"), (6, "EII"), (6, "VVV")}
    assert found.failures[2, "VVV"].startswith("a component")
    assert found.failures[6, "EII"] == "only 5 rows have a positive weight"
    assert np.isposinf(found.bic[[0, 1, 1], [1, 0, 1]]).all()
    assert np.isneginf(found.log_likelihood[0, 1])
    assert found.table()[0]["VVV"] is None
    assert not np.isnan([found.bic, found.aic, found.icl]).any()
    assert [str(choice) for choice in found.best(3)] == ["EII,2"]
    assert "-" in str(found).splitlines()[1].split()


def test_rows_without_spread_in_some_direction_say_so(rows):
    x, one = rows[:, 0], np.ones(len(rows))
    structures = ["EII", "EEI", "EEE"]
    for X, sound in (
        (np.c_[x, one], ["EII"]),  # a constant column
        (np.c_[x, 2 * x + 1], ["EII", "EEI"]),  # one that follows from the other
        (np.c_[one, one], []),
        (rows + 1e9, structures),
    ):
        found = mixture_table(X, [1], structures=structures)
        assert [name for name in structures if (1, name) not in found.failures] == sound
        assert all("drop columns" in why for why in found.failures.values())
        assert not np.isnan(found.bic).any()
    assert not mixture_table(np.c_[x, one], [1], structures=structures, prior="default").failures


def test_mclusts_sign_is_the_other_one(full):
    ours, theirs = full.table("icl"), full.table("icl", mclust=True)
    assert ours[2]["VVV"] == -theirs[2]["VVV"] == pytest.approx(full.icl[2, full.structures.index("VVV")])
    assert list(ours[0]) == ["k", *STRUCTURES]


def test_it_prints_the_table_and_the_best(full):
    lines = str(full).splitlines()
    assert lines[0].split() == ["k", *STRUCTURES]
    assert lines[-3].startswith(f"BIC, lower is better: {full.best()[0]} (")


def test_a_prior_saves_cells(rows):
    few = rows[:12]
    plain = mixture_table(few, [4], structures=["VVV"], random_state=0)
    careful = mixture_table(few, [4], structures=["VVV"], prior="default", random_state=0)
    assert plain.failures
    assert not careful.failures


@pytest.mark.usefixtures("short_searches")
def test_starts_come_from_a_sample_of_many_rows():
    X, _, _ = make_gaussians(3000, 2, 3, separation=3.0, random_state=0)
    found = mixture_table(X, [2, 3], structures=["VVV"], random_state=0)
    assert found.best(1)[0].k == 3
    alone = GaussianMixture(3, random_state=0).fit(X)
    assert found.log_likelihood[1, 0] >= alone.log_likelihood_ - 0.1


@pytest.mark.usefixtures("short_searches")
def test_a_true_answer_to_progress_keeps_what_there_is(rows):
    seen = []
    found = mixture_table(
        rows, [1, 2], structures=SOME, callback=lambda report: seen.append(report.step) or len(seen) == 5
    )
    assert seen == ["EII,1", "VVI,1", "EEE,1", "VVV,1", "EII,2"]
    assert np.isfinite(found.bic).sum() == 5
    assert found.failures[2, "VVV"] == "not fitted"


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"structures": "VVV"}, ParameterError, "structures must be 'all' or a list"),
        ({"structures": ["ABC"]}, ParameterError, "covariance_type must be one of"),
        ({"structures": []}, ParameterError, "structures is empty"),
        ({"ks": [0]}, ParameterError, "ks must be whole numbers"),
        ({"callback": 2}, ParameterError, "callback must be"),
        ({"sample_weight": [1.0, 2.0]}, InputError, "sample_weight"),
        ({"prior": "flat"}, ParameterError, "prior"),
    ],
)
def test_invalid_options_raise_an_error(options, error, message, rows):
    with pytest.raises(error, match=message):
        mixture_table(rows, **{"ks": [1], **options})


def test_invalid_arguments_of_methods_raise_an_error(full, rows):
    with pytest.raises(ParameterError, match="criterion must be"):
        full.best(3, "mdl")
    with pytest.raises(ParameterError, match="count must be"):
        full.best(0)
    with pytest.raises(InputError, match="NaN"):
        mixture_table([[0.0, 1.0], [np.nan, 2.0]], [1])
