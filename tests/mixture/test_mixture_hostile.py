"""Whatever the rows: a mixture of finite numbers comes out, and what had to be put right is recorded."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from coterie import GaussianMixture
from coterie.families.structures import STRUCTURES
from loop_over import loop_over

ALL = pytest.mark.parametrize("name", list(STRUCTURES))
FLOORS = pytest.mark.parametrize("reg_covar", [1e-6, 0], ids=["floor", "no floor"])


def sound(model, X, weight=None):
    """Fits, and checks that nothing but finite numbers comes out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="the standard deviations of the columns differ")
        model.fit(X, sample_weight=weight)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bound_"):
        assert np.isfinite(getattr(model, name)).all(), name
    for name in ("log_likelihood", "lower_bound", "kl", "log_prior"):
        assert np.isfinite(getattr(model.history_, name)).all(), name
    assert model.weights_.sum() == pytest.approx(1, rel=1e-5)
    assert np.isfinite(model.score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert np.isfinite(model.sample(5)[0]).all()
    return model


rng = np.random.default_rng(7)
CLOUD = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)) + 3 * rng.normal(size=(3, 3))[rng.integers(3, size=80)]
HOSTILE = {
    "all rows equal": np.full((20, 3), 2.5),
    "many duplicates": np.repeat(rng.normal(size=(4, 2)), 10, axis=0),
    "constant columns": np.c_[CLOUD, np.full(80, 7.0), np.zeros(80)],
    "a column twice": np.c_[CLOUD, CLOUD[:, 0]],
    "more columns than rows": rng.normal(size=(6, 8)),
    "one far outlier": np.r_[CLOUD, [[1e8] * 3]],
    "as many rows as components": CLOUD[:3],
    "a column of 1e9": CLOUD * [1, 1e9, 1],
    "a column of 1e-9": CLOUD * [1, 1e-9, 1],
    "fewer distinct rows than components": np.repeat(rng.normal(size=(2, 2)), 10, axis=0),
    "one column": CLOUD[:, :1],
    "whole numbers": rng.integers(0, 5, size=(60, 2)),
    "far from the origin": CLOUD + 1e8,
    "large values": CLOUD * 1e100,
    "small values": CLOUD * 1e-100,
}


@ALL
@FLOORS
@loop_over("case", HOSTILE)
def test_hostile_rows_end_in_finite_numbers(name, reg_covar, case):
    sound(
        GaussianMixture(3, covariance_type=name, init_params="k-means++", reg_covar=reg_covar, random_state=0),
        HOSTILE[case],
    )


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_rows_are_started_well_too(case):
    for init in ("auto", "hierarchical", "random"):
        sound(GaussianMixture(3, init_params=init, random_state=0), HOSTILE[case])


@ALL
def test_two_rows_make_two_components(name):
    sound(GaussianMixture(2, covariance_type=name, random_state=0), CLOUD[:2])


@pytest.mark.parametrize(
    "case, names",
    [
        ("constant columns", ("VVV", "EEE", "VVI", "VEV")),
        ("a column twice", ("VVV", "EEE", "VEE", "EVV")),
        ("more columns than rows", ("VVV", "EEE", "EEV")),
    ],
)
def test_what_singular_rows_made_necessary_is_recorded(case, names):
    for name in names:
        options = {"covariance_type": name, "init_params": "k-means++", "random_state": 0}
        model = sound(GaussianMixture(3, reg_covar=0, **options), HOSTILE[case])
        assert "floored" in {event.what for event in model.history_.events}, name
        assert not sound(GaussianMixture(3, **options), HOSTILE[case]).history_.events, name


@pytest.mark.parametrize("name", ["VVV", "VVI", "VII", "EVV", "VEV"])
def test_the_component_that_collapsed_is_named(name):
    X = np.r_[CLOUD, np.full((10, 3), 40.0)]
    labels = np.repeat([0, 1], [80, 10])
    model = sound(GaussianMixture(2, covariance_type=name, init_params=labels, reg_covar=0), X)
    assert {(event.what, event.component) for event in model.history_.events} == {("floored", 1)}
    np.testing.assert_array_equal(model.labels_, labels)


def test_a_component_that_loses_its_rows_starts_anew_and_says_so():
    X = np.r_[CLOUD, CLOUD + 50]
    start = {"means_init": [[0.0] * 3, [50.0] * 3, [1e4] * 3], "precisions_init": np.stack([np.eye(3)] * 3)}
    model = sound(GaussianMixture(3, e_step="hard", weights_init=[0.4, 0.4, 0.2], **start), X)
    assert {(event.what, event.component) for event in model.history_.events} == {("reseeded", 2)}
    assert set(model.labels_) == {0, 1, 2}
    assert np.abs(model.means_).max() < 100


@pytest.mark.parametrize("size", [1e-8, 1e8])
@pytest.mark.parametrize("name", ["VVV", "EEE", "VVI", "VII"])
def test_row_weights_of_any_size_make_the_same_mixture(size, name):
    labels = (CLOUD[:, 0] > np.median(CLOUD[:, 0])).astype(int)
    one, other = (
        sound(GaussianMixture(2, covariance_type=name, init_params=labels, tol=0), CLOUD, np.full(80, w))
        for w in (1.0, size)
    )
    np.testing.assert_allclose(other.means_, one.means_, atol=1e-2)
    uneven = np.where(np.arange(80) % 2, 1e8, 1e-8)
    sound(GaussianMixture(2, covariance_type=name, random_state=0), CLOUD, uneven)


@st.composite
def tables(draw):
    """Up to 12 rows, many of them alike, of any size and place."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    pool = draw(st.lists(st.lists(st.integers(-8, 8), min_size=d, max_size=d), min_size=1, max_size=n))
    X = np.array(pool)[draw(st.lists(st.integers(0, len(pool) - 1), min_size=n, max_size=n))]
    scale = 10.0 ** np.array(draw(st.lists(st.integers(-9, 9), min_size=d, max_size=d)))
    return ((X + draw(st.sampled_from([0, 0, 1000]))) * scale).astype(draw(st.sampled_from([np.float64, np.float32])))


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    X=tables(),
    k=st.integers(1, 3),
    name=st.sampled_from(["VVV", "EEE", "VVI", "VII", "VEV", "EVE", "VEE", "EII"]),
    reg_covar=st.sampled_from([1e-6, 0]),
    e_step=st.sampled_from(["soft", "hard"]),
)
def test_small_tables_of_any_kind_end_in_finite_numbers(X, k, name, reg_covar, e_step):
    options = {"covariance_type": name, "reg_covar": reg_covar, "e_step": e_step, "init_params": "kmeans"}
    sound(GaussianMixture(min(k, len(X)), random_state=0, max_iter=100, **options), X)
