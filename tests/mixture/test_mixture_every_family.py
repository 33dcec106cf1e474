"""What mixtures promise, for every family there is: weights, known rows, three E-steps, missing values, threads."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from coterie import Mixture, families
from coterie.data import memory
from coterie.errors import InputError
from coterie.families import Product, as_family
from families.cases import CASES, learned

BOTH = Product([("poisson", [0, 1]), ("gaussian", [2, 3])])
FAMILIES = {**{name: case.family for name, case in CASES.items()}, "product": BOTH}
EVERY = pytest.mark.parametrize("name", FAMILIES)
WITH_HOLES = pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.family.by_column])


def drawn(name, n, seed=0):
    """Rows of the three components of a case, and the component of each."""
    case, rng = CASES[name], np.random.default_rng(seed)
    known = case.support if isinstance(case.support, np.ndarray) else np.array(case.support)
    family = learned(case.family, known)
    labels = np.repeat(np.arange(3), -(-n // 3))[:n]
    counts = np.bincount(labels)
    X = np.concatenate([family.restore(family.draw(case.params, j, counts[j], rng)) for j in range(3)])
    order = np.random.default_rng(seed).permutation(n)
    return X[order], labels[order]


def planted(name, n=240):
    if name != "product":
        return drawn(name, n)
    X, labels = drawn("poisson", n, 1)
    Y, others = drawn("gaussian", n, 1)
    assert (labels == others).all()
    return np.column_stack([X, Y]), labels


def started(name, labels, **options):
    """A mixture that starts from labels of which a third are wrong."""
    wrong = np.where(np.arange(len(labels)) % 3, labels, (labels + 1) % 3)
    return Mixture(3, FAMILIES[name], init_params=wrong, **options)


def arrays(components):
    parts = components.values() if isinstance(components, dict) else [components]
    return [np.asarray(array) for part in parts for array in part]


@EVERY
@pytest.mark.parametrize("e_step", ["soft", "hard"])
def test_weight_two_is_the_row_twice(name, e_step):
    X, labels = planted(name)
    times = np.random.default_rng(1).integers(1, 4, size=len(X))
    wrong = np.where(np.arange(len(X)) % 3, labels, (labels + 1) % 3)
    weighted = Mixture(3, FAMILIES[name], init_params=wrong, e_step=e_step).fit(X, sample_weight=times)
    repeated = Mixture(3, FAMILIES[name], init_params=np.repeat(wrong, times), e_step=e_step)
    repeated.fit(np.repeat(X, times, axis=0))
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-9)
    for a, b in zip(arrays(weighted.components_), arrays(repeated.components_), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


@EVERY
def test_if_all_components_are_known_the_fit_is_that_of_each(name):
    X, labels = planted(name)
    w = np.random.default_rng(1).exponential(size=len(X))
    model = Mixture(3, FAMILIES[name], tol=1e-9).fit(X, sample_weight=w, known_labels=labels)
    likeliest = 0.0
    for j in range(3):
        alone = Product(BOTH.groups) if name == "product" else type(FAMILIES[name])(**vars(FAMILIES[name]))
        if name == "categorical":
            X, alone.n_categories = np.where(X == 7, 1, np.where(X == 4, 0, X)), [2, 3]
        mine = labels == j
        alone.fit(X[mine], w[mine])
        likeliest += w[mine] @ alone.log_prob(X[mine]) + w[mine].sum() * np.log(w[mine].sum() / w.sum())
    assert model.log_likelihood_ == pytest.approx(likeliest, rel=1e-6)


@EVERY
def test_known_rows_are_kept_while_the_rest_are_found(name):
    X, labels = planted(name)
    y = np.where(np.arange(len(X)) % 2, labels, -1)
    model = Mixture(3, FAMILIES[name], random_state=0).fit(X, known_labels=y)
    never_falls(model)
    density, shares = model.score_samples(X), model.predict_proba(X)
    known = y >= 0
    expected = density.sum() + np.log(shares[known, y[known]]).sum()  # log p(x, z) where z is known
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-9)


def never_falls(model):
    bound = model.history_.lower_bound
    assert not model.history_.events  # a component that starts anew may cost something
    assert (np.diff(bound) >= -1e-9 * np.abs(bound).max()).all()


@EVERY
def test_every_e_step_runs(name):
    X, labels = planted(name)
    soft, hard = (started(name, labels, e_step=kind).fit(X) for kind in ("soft", "hard"))
    never_falls(soft)
    never_falls(hard)
    assert hard.lower_bound_ <= hard.log_likelihood_ / len(X) + 1e-12
    joint = np.log(hard.predict_proba(X).max(axis=1)) + hard.score_samples(X)
    assert hard.lower_bound_ == pytest.approx(joint.mean(), rel=1e-6)
    drawn = started(name, labels, e_step="stochastic", max_iter=6, random_state=0).fit(X)
    assert drawn.n_iter_ == 6
    assert np.isfinite(drawn.log_likelihood_)


@WITH_HOLES
def test_missing_values_are_left_out(name):
    X, labels = planted(name)
    holes = X.copy()
    holes[::3, 0], holes[1::3, 1] = np.nan, np.nan
    model = started(name, labels, missing="ignore").fit(holes)
    never_falls(model)
    one = started(name, labels, missing="ignore").fit(X)  # nothing is missing: nothing changes
    whole = started(name, labels).fit(X)
    assert one.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-9)
    unseen = np.full((1, 2), np.nan)
    unseen[0, 1] = X[0, 1]
    assert np.isfinite(model.score_samples(unseen)).all()


@EVERY
def test_the_same_bits_on_any_number_of_threads(name, monkeypatch):
    monkeypatch.setattr(memory, "SMALL_PART", 1 << 13)
    X, labels = planted(name, 4500)
    assert len(memory.part_bounds(*X.shape, 8)) > 4
    ways = {"n_jobs": 1}, {"n_jobs": 3}, {"engine": "serial"}
    with pytest.warns(match="did not converge"):
        fits = [started(name, labels, max_iter=3, tol=0, **way).fit(X) for way in ways]
    for other in fits[1:]:
        assert other.log_likelihood_ == fits[0].log_likelihood_
        for a, b in zip(arrays(other.components_), arrays(fits[0].components_), strict=True):
            np.testing.assert_array_equal(a, b)


@EVERY
def test_float32_is_kept(name):
    X, labels = planted(name)
    single, double = (started(name, labels).fit(X.astype(kind)) for kind in (np.float32, np.float64))
    assert single.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert single.log_likelihood_ == pytest.approx(double.log_likelihood_, rel=1e-4)


# values outside the support of a family


OFF = {
    "poisson": (-1.0, 2.5),
    "multinomial": (-1.0, 2.5),
    "bernoulli": (-1.0, 2.0),
    "exponential": (-0.5,),
    "gamma": (0.0, -0.5),
}


@pytest.mark.parametrize("name, value", [(name, value) for name, values in OFF.items() for value in values])
def test_values_off_the_support_are_named_with_column_and_remedy(name, value):
    family = as_family(name)
    said = rf"values that {type(family).__name__} does not support: {{}} \(1, such as {value:g}\). It supports {{}}"
    said = said.format("{}", re.escape(f"{family.support}: {family.remedy}"))
    X = np.ones((6, 3))
    bad = X.copy()
    bad[4, 1] = value
    with pytest.raises(InputError, match=said.format("column 1")):
        Mixture(1, name).fit(bad)
    frame, wrong = (pd.DataFrame(rows, columns=["a", "dose", "c"]) for rows in (X, bad))
    with pytest.raises(InputError, match=said.format("dose")):
        Mixture(1, name).fit(wrong)
    with pytest.raises(InputError, match=said.format("dose")):
        Mixture(1, name).fit(frame).predict(wrong)


# how much a family is to write


@pytest.mark.parametrize("home", families._HOME.values())
def test_a_family_is_a_short_file(home):
    lines = Path(families.__file__).with_name(f"{home}.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 250


def test_the_worked_family_is_short():
    page = Path(__file__).parents[2] / "docs" / "extend" / "family.md"
    code = page.read_text(encoding="utf-8").split("```python")[1].split("```")[0]
    assert "class Geometric(ExponentialFamily)" in code
    assert len([line for line in code.splitlines() if line.strip()]) < 25
