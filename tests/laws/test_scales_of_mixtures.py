"""Multiplying rows or weights by a power of two changes no label of a mixture, and only units of its parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from coterie import BayesianGaussianMixture, GaussianMixture, Mixture, load, save
from coterie.errors import InputError, RangeWarning, ScaleError
from coterie.families import Exponential, Gaussian, Product
from coterie.mixture import Prior
from laws.scales import HOLES, ROWS, SHORT, WEIGHTS, fitted

C = {"n_components": 3, "random_state": 0}
START = np.argsort(np.argsort(ROWS[:, 0])) // 50  # initial labels
POSITIVE = np.abs(ROWS) + 0.1
GAUSSIAN = {"means_": 1, "covariances_": 2, "precisions_": -2, "precisions_cholesky_": -1}
MIXTURES = {  # model, rows, powers of parameters
    "gaussian": (GaussianMixture(**C), ROWS, GAUSSIAN),
    "gaussian tied": (GaussianMixture(**C, covariance_type="tied", init_params="k-means++"), ROWS, GAUSSIAN),
    "gaussian missing": (GaussianMixture(**C, missing="ignore"), HOLES, GAUSSIAN),
    "bayesian": (BayesianGaussianMixture(**C), ROWS, {**GAUSSIAN, "mean_prior_": 1, "covariance_prior_": 2}),
    "family gaussian": (Mixture(family="gaussian", **C), ROWS, {"mean": 1, "covariance": 2}),
    "student_t": (Mixture(family="student_t", **C), ROWS, {"location": 1, "scale": 2, "dof": 0}),
    "exponential": (Mixture(family="exponential", **C), POSITIVE, {"rate": -1}),
    "gamma": (Mixture(family="gamma", **C), POSITIVE, {"shape": 0, "rate": -1}),
    "exponential missing": (Mixture(family="exponential", missing="ignore", **C), np.abs(HOLES) + 0.1, {"rate": -1}),
    "product": (
        Mixture(family=Product([("exponential", [1]), ("gaussian", [0, 2])]), init_params=START, **C),
        POSITIVE,
        {("exponential", "rate"): -1, ("gaussian", "mean"): 1, ("gaussian", "covariance"): 2},
    ),
    "product with directions": (
        Mixture(family=Product([("von_mises_fisher", [0, 1]), ("student_t", [2])]), init_params=START, **C),
        POSITIVE,
        {("von_mises_fisher", "concentration"): 0, ("student_t", "location"): 1, ("student_t", "scale"): 2},
    ),
    "auto": (Mixture("auto", "gaussian", random_state=0), ROWS, {"mean": 1, "covariance": 2, "counts_": 0}),
    "auto missing": (
        Mixture("auto", Gaussian("diag"), missing="ignore", random_state=0),
        HOLES,
        {"mean": 1, "covariance": 2},
    ),
    "auto product": (
        Mixture("auto", Product([("gaussian", [0]), (Gaussian("diag"), [1, 2])]), random_state=0),
        ROWS,
        {(0, "mean"): 1, (1, "covariance"): 2},
    ),
}
COUNTS = np.random.default_rng(6).poisson(POSITIVE).astype(float)
PAIR = Product([("poisson", [0]), ("gaussian", [1, 2])])
WITHOUT_LENGTHS = {  # their rows have no unit, but their weights have
    "poisson": (Mixture(family="poisson", **C), COUNTS),
    "multinomial": (Mixture(family="multinomial", **C), COUNTS),
    "categorical": (Mixture(family="categorical", **C), np.minimum(COUNTS, 3)),
    "bernoulli": (Mixture(family="bernoulli", **C), (ROWS > 2).astype(float)),
    "von_mises_fisher": (Mixture(family="von_mises_fisher", **C), ROWS),
    "product with counts": (Mixture(family=PAIR, **C), np.column_stack([COUNTS[:, 0], ROWS[:, 1:]])),
}
WEIGHTED = {name: (model, X) for name, (model, X, _) in MIXTURES.items() if "auto" not in name} | WITHOUT_LENGTHS
WEIGHTED |= {
    f"gaussian {name}": (GaussianMixture(**C, covariance_type=name), ROWS) for name in ("EII", "EVV", "VEI", "VVE")
}
NEAR = {"rtol": 1e-6, "atol": 1e-9}  # log densities have the unit of the rows in them, and so does their rounding


def parameter(model, name):
    if isinstance(name, tuple):
        group, name = name
        return getattr(model.components_[group], name)
    return getattr(model, name) if hasattr(model, name) else getattr(model.components_, name)


def units(name, X, power):
    """Logarithms of the unit of the density of each row (n,): one for each observed value that has a unit."""
    n_lengths = 1 if name == "product with directions" else np.count_nonzero(~np.isnan(X), axis=1)
    return np.broadcast_to(n_lengths * power * np.log(2), len(X))


@SHORT
@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_of_rows_times_a_power_of_two(name):
    model, X, powers = MIXTURES[name]
    plain = fitted(model, X)
    for rows in (-480, -1, 60, 480):
        scaled, moved, unit = fitted(model, np.ldexp(X, rows)), np.ldexp(X, rows), units(name, X, rows)
        np.testing.assert_array_equal(scaled.labels_, plain.labels_)
        np.testing.assert_array_equal(scaled.predict(moved), plain.labels_)
        for key, power in powers.items():
            np.testing.assert_allclose(np.ldexp(parameter(scaled, key), -power * rows), parameter(plain, key), **NEAR)
        np.testing.assert_allclose(scaled.score_samples(moved) + unit, plain.score_samples(X), **NEAR)
        assert scaled.score(moved) + unit.mean() == pytest.approx(plain.score(X), abs=1e-6)
        is_sum = name == "bayesian" or "auto" in name
        shift = unit.sum() if is_sum else unit.mean()
        assert scaled.lower_bound_ + shift == pytest.approx(plain.lower_bound_, rel=1e-6)
        assert scaled.lower_bounds_[-1] + shift == pytest.approx(plain.lower_bounds_[-1], rel=1e-6)
        if name != "bayesian":
            assert scaled.bic(moved) - 2 * unit.sum() == pytest.approx(plain.bic(X), rel=1e-6)
            assert scaled.icl(moved) - 2 * unit.sum() == pytest.approx(plain.icl(X), rel=1e-6)
            assert scaled.log_likelihood_ == pytest.approx(scaled.score(moved) * len(X), rel=1e-9)
        if not is_sum:
            assert scaled.history_.log_likelihood[-1] == pytest.approx(scaled.log_likelihood_, rel=1e-9)
        if "directions" not in name:
            drawn = np.ldexp(scaled.sample(200)[0], -rows)
            np.testing.assert_allclose(drawn, plain.sample(200)[0], rtol=1e-5, atol=1e-5)


@SHORT
@pytest.mark.parametrize("power", [-900, 900])
@pytest.mark.parametrize("name", MIXTURES)
def test_labels_and_densities_of_rows_whose_squares_no_number_can_hold(name, power):
    model, X, _ = MIXTURES[name]
    plain, scaled, moved = fitted(model, X), fitted(model, np.ldexp(X, power)), np.ldexp(X, power)
    np.testing.assert_array_equal(scaled.predict(moved), plain.labels_)
    np.testing.assert_allclose(scaled.score_samples(moved) + units(name, X, power), plain.score_samples(X), **NEAR)


def test_splits_and_merges_are_in_the_units_of_the_rows():
    plain, scaled = (fitted(Mixture("auto", random_state=0), np.ldexp(ROWS, power)) for power in (0, -600))
    assert [move.what for move in scaled.moves_] == [move.what for move in plain.moves_]
    shift = units("auto", ROWS, -600).sum()
    for move, expected in zip(scaled.moves_, plain.moves_, strict=True):
        assert move.lower_bound + shift == pytest.approx(expected.lower_bound, abs=1e-6)


def test_directions_in_a_product_have_no_unit():
    model, X, _ = MIXTURES["product with directions"]
    plain, scaled = (fitted(model, np.ldexp(X, power)).sample(200)[0] for power in (0, 600))
    np.testing.assert_allclose(scaled[:, :2], plain[:, :2], rtol=1e-5)
    np.testing.assert_allclose(np.ldexp(scaled[:, 2], -600), plain[:, 2], rtol=1e-5)


def test_mixtures_of_a_frame_of_any_scale(tmp_path):
    frames = [pd.DataFrame(np.ldexp(HOLES, power), columns=["a", "b", "c"]).assign(d="text") for power in (0, -450)]
    options = {"families": {"d": None, "c": "student_t"}, "random_state": 0, "missing": "error"}
    plain, scaled = (Mixture.from_frame(frame.dropna(), 3, **options) for frame in frames)
    rows = frames[1].dropna()
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    assert list(scaled.feature_names_in_) == ["a", "b", "c"] == list(scaled.sample(3)[0].columns)
    assert repr(scaled.family_) == repr(plain.family_)
    save(scaled, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(rows), plain.labels_)
    np.testing.assert_allclose(np.ldexp(scaled.sample(50)[0], 450), plain.sample(50)[0], rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        Mixture(3, Product([("poisson", [0]), ("gaussian", [1, 2])])),
        Mixture(3, "exponential", prior="default"),
        Mixture(3, Exponential(prior="default")),
        Mixture("auto", "exponential"),
        GaussianMixture(3, prior=Prior(1.0, np.zeros(3), 0.01, 5.0, np.eye(3))),
    ],
    ids=["counts", "prior", "prior of the family", "prior of 'auto'", "prior with a unit"],
)
def test_counts_and_priors_with_a_unit_reject_rows_out_of_range(model):
    with pytest.raises(ScaleError, match=r"divide X by a power of two first"):
        model.fit(np.ldexp(np.round(POSITIVE), 600))


@SHORT
@pytest.mark.parametrize("family, seed", [("exponential", 1), ("exponential", 2), ("gamma", 2), ("gamma", 6)])
def test_the_unit_of_the_rows_does_not_choose_among_equally_good_starts(family, seed):
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(150, 3)) + 3 * np.eye(3)[rng.integers(0, 3, 150)]) + 0.1
    plain, *others = (fitted(Mixture(family=family, **C), np.ldexp(X, power)).labels_ for power in (0, -480, -1, 60))
    for labels in others:
        np.testing.assert_array_equal(labels, plain)


def arrays(model):
    """All parameters of a mixture, as arrays."""
    parameters = getattr(model, "components_", None)
    parts = (model.means_, model.covariances_) if parameters is None else tuple(parameters)
    while any(isinstance(part, tuple) for part in parts):
        parts = tuple(each for part in parts for each in (part if isinstance(part, tuple) else [part]))
    return [model.weights_, *(part for part in parts if isinstance(part, np.ndarray))]


@SHORT
@pytest.mark.parametrize("name", [name for name in WEIGHTED if name != "bayesian"])
def test_mixtures_with_weights_times_a_power_of_two(name):
    model, X = WEIGHTED[name]
    plain = fitted(model, X, WEIGHTS)
    for power in (-900, -9, 3, 900):
        w = np.ldexp(WEIGHTS, power)
        scaled = fitted(model, X, w)
        np.testing.assert_array_equal(scaled.labels_, plain.labels_)
        for found, expected in zip(arrays(scaled), arrays(plain), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert scaled.n_iter_ == plain.n_iter_
        assert scaled.log_likelihood_ == np.ldexp(plain.log_likelihood_, power)
        assert scaled.lower_bound_ == plain.lower_bound_
        assert scaled.score(X, sample_weight=w) == pytest.approx(plain.score(X, sample_weight=WEIGHTS), rel=1e-12)
        assert scaled.score(X) == pytest.approx(plain.score(X), rel=1e-12)


@SHORT
@pytest.mark.parametrize("name", ["gaussian", "student_t", "poisson"])
def test_batches_with_weights_times_a_power_of_two(name):
    model, X = WEIGHTED[name]
    w = np.ldexp(WEIGHTS, -9)
    plain, scaled = fitted(model, X[:100], WEIGHTS[:100]), fitted(model, X[:100], w[:100])
    for batch in (slice(50, 120), slice(60, 150)):
        plain.partial_fit(X[batch], sample_weight=WEIGHTS[batch])
        scaled.partial_fit(X[batch], sample_weight=w[batch])
        for found, expected in zip(arrays(scaled), arrays(plain), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert scaled.log_likelihood_ == np.ldexp(plain.log_likelihood_, -9)


@pytest.mark.parametrize("name", [*WEIGHTED, "prior"])
def test_weight_two_is_the_row_twice_in_every_iteration(name):
    """With the law above: neither the scale of weights nor the number of equal rows decides when a fit ends."""
    model, X = (GaussianMixture(**C, prior="default"), ROWS) if name == "prior" else WEIGHTED[name]
    rows = np.repeat(np.arange(150), WEIGHTS.astype(int))
    weighted = fitted(clone(model).set_params(init_params=START), X, WEIGHTS)
    repeated = fitted(clone(model).set_params(init_params=START[rows]), X[rows])
    assert weighted.n_iter_ == repeated.n_iter_ > 1
    np.testing.assert_array_equal(weighted.labels_[rows], repeated.labels_)
    for found, expected in zip(arrays(weighted), arrays(repeated), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(weighted.lower_bound_, repeated.lower_bound_, rtol=1e-8)


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_rounding_errors_are_relative_to_the_total_weight(name):
    """With tol=0, a fit ends when its gains are rounding errors."""
    model, X = WEIGHTED[name]
    model = clone(model).set_params(tol=0.0, init_params=START)
    plain = fitted(model, X, WEIGHTS)
    for power in (-40, 40):
        scaled = fitted(model, X, np.ldexp(WEIGHTS, power))
        assert scaled.n_iter_ == plain.n_iter_
        np.testing.assert_array_equal(scaled.weights_, plain.weights_)


@SHORT
@pytest.mark.parametrize("power", [3, 10])
def test_a_prior_worth_more_rows_for_larger_weights_changes_no_parameter(power):
    """A prior gives weights a scale: it is worth a number of rows, and must be multiplied with them."""
    d = ROWS.shape[1]

    def model(times):
        dof = (d + 2 + d + 2) * times - d - 2  # the mode of the covariance has dof + d + 2 rows in its divisor
        prior = Prior(1 + times, np.zeros(d), 0.01 * times, dof, np.eye(d) * times)
        return GaussianMixture(**C, prior=prior)

    plain, scaled = fitted(model(1), ROWS, WEIGHTS), fitted(model(2**power), ROWS, np.ldexp(WEIGHTS, power))
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    for found, expected in zip(arrays(scaled), arrays(plain), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    unchanged = fitted(model(1), ROWS, np.ldexp(WEIGHTS, power))
    assert not np.allclose(unchanged.covariances_, plain.covariances_, rtol=1e-3)


@SHORT
def test_directions_have_no_scale():
    model = Mixture(family="von_mises_fisher", **C)
    for dtype, powers in ((np.float64, (-900, 900)), (np.float32, (-100, 100))):
        X = ROWS.astype(dtype)
        plain = fitted(model, X)
        for power in powers:
            scaled, moved = fitted(model, np.ldexp(X, power)), np.ldexp(X, power)
            np.testing.assert_array_equal(scaled.predict(moved), plain.labels_)
            for found, expected in zip(arrays(scaled), arrays(plain), strict=True):
                np.testing.assert_allclose(found, expected, **NEAR)
            np.testing.assert_allclose(scaled.score_samples(moved), plain.score_samples(X), rtol=1e-5)
            assert scaled.log_likelihood_ == pytest.approx(plain.log_likelihood_)
            np.testing.assert_allclose(scaled.sample(5)[0], plain.sample(5)[0], rtol=1e-5)


def test_cdf_and_quantile_are_in_the_units_of_the_rows():
    X = ROWS[:, :1]
    plain, scaled = (
        fitted(GaussianMixture(2, random_state=0), X),
        fitted(GaussianMixture(2, random_state=0), np.ldexp(X, 700)),
    )
    np.testing.assert_allclose(scaled.cdf(np.ldexp(X[:5, 0], 700)), plain.cdf(X[:5, 0]), rtol=1e-9)
    np.testing.assert_allclose(np.ldexp(scaled.quantile([0.1, 0.8]), -700), plain.quantile([0.1, 0.8]), rtol=1e-9)


@pytest.mark.parametrize("model", [BayesianGaussianMixture(2), GaussianMixture(2, prior="default"), Mixture("auto")])
def test_priors_make_weights_numbers_of_rows(model):
    with pytest.raises(InputError, match="sample_weight has values up to about"):
        model.fit(ROWS, sample_weight=np.ldexp(WEIGHTS, 900))


@pytest.mark.parametrize("model", [GaussianMixture(2), BayesianGaussianMixture(2)], ids=["em", "variational"])
def test_precisions_that_float32_cannot_hold_are_told_of(model):
    X = np.ldexp(ROWS, -54 - int(np.ceil(np.log2(np.abs(ROWS).max())))).astype(np.float32)
    X[:, 1:] *= np.float32(2.0**-20)  # the largest value is safe, squares of the others are not
    with pytest.warns(RangeWarning, match="precisions_ cannot be represented in float32, the dtype of X"):
        small = model.set_params(random_state=0).fit(X)
    assert np.isfinite(small.means_).all()
    np.testing.assert_array_equal(small.predict(X), small.labels_)


@pytest.mark.parametrize("seed", [4, 6, 10])
@pytest.mark.parametrize("power", [-40, 40])
def test_the_scale_of_float32_rows_does_not_decide_when_a_mixture_converges(power, seed):
    """Densities of large rows are small; rounding must not count their logarithms as noise of the objective."""
    X = np.random.default_rng(seed).normal(size=(40, 2)).astype(np.float32)
    model = GaussianMixture(2, init_params="random", random_state=0, max_iter=300)
    plain, scaled = clone(model).fit(X), clone(model).fit(np.ldexp(X, power))
    assert scaled.n_iter_ == plain.n_iter_
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)


def test_parameters_of_families_too_large_for_their_type_are_told_of():
    X = np.ldexp(np.random.default_rng(6).normal(size=(30, 2)), 700)
    with pytest.warns(RangeWarning, match="covariance"):
        Mixture(2, "gaussian", random_state=0).fit(X)
