"""The contract of scikit-learn, for mixtures: the tools that rely on it."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import BayesianGaussianMixture, GaussianMixture, Mixture
from coterie.errors import ParameterError, RangeWarning
from coterie.families import Poisson
from coterie.mixture import Prior
from mixture.rows import groups, theta


@pytest.fixture
def blobs():
    """Three groups of 40 rows, ten apart, in two columns of very different size."""
    rng = np.random.default_rng(7)
    middle = np.repeat([[0, 0], [10, -10], [20, -20]], 40, axis=0)
    return (rng.normal(size=(120, 2)) + middle) * np.array([1.0, 100.0])


def test_clone_keeps_every_option_and_nothing_that_was_fitted(blobs):
    model = GaussianMixture(
        3, covariance_type="VEV", init_params="kmeans", fixed=("weights",), prior=Prior(), tol=0.5, random_state=3
    ).fit(blobs)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert [name for name in vars(twin) if name.endswith("_")] == []
    np.testing.assert_array_equal(twin.fit(blobs).means_, model.means_)


@pytest.mark.parametrize("missing", ["error", "ignore"])
def test_a_pickled_model_answers_and_goes_on_the_same(missing, blobs):
    model = GaussianMixture(3, missing=missing, random_state=0).fit(blobs)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(blobs), model.predict_proba(blobs))
    np.testing.assert_array_equal(again.history_.lower_bound, model.history_.lower_bound)
    assert again.get_params() == model.get_params()
    for one, other in zip(theta(again.partial_fit(blobs[:30])), theta(model.partial_fit(blobs[:30])), strict=True):
        np.testing.assert_array_equal(one, other)


def test_weights_are_routed_through_a_pipeline(blobs):
    weight = np.repeat([1.0, 0.0, 2.0], 40)
    with sklearn.config_context(enable_metadata_routing=True):
        model = GaussianMixture(2, random_state=0).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = Pipeline([("scale", scaler), ("mix", model)]).fit(blobs, sample_weight=weight)
    scaled = StandardScaler().fit_transform(blobs)
    by_hand = GaussianMixture(2, random_state=0).fit(scaled, sample_weight=weight)
    unweighted = GaussianMixture(2, random_state=0).fit(scaled)
    np.testing.assert_array_equal(routed["mix"].means_, by_hand.means_)
    assert sorted(routed["mix"].weights_) == pytest.approx([1 / 3, 2 / 3], abs=1e-6)
    assert not np.allclose(routed["mix"].weights_, unweighted.weights_)


@pytest.mark.parametrize("kind", [GaussianMixture, Mixture])
def test_known_labels_are_routed_through_a_pipeline(kind, blobs):
    known = np.repeat([2, 0, 1], 40)
    known[::2] = -1
    with sklearn.config_context(enable_metadata_routing=True):
        model = kind(n_components=3, random_state=0).set_fit_request(known_labels=True)
        routed = make_pipeline(StandardScaler(), model).fit(blobs, known_labels=known)
        search = GridSearchCV(model, {"n_components": [3]}, cv=2).fit(blobs[::-1], known_labels=known[::-1])
    np.testing.assert_array_equal(routed.predict(blobs), np.repeat([2, 0, 1], 40))
    np.testing.assert_array_equal(search.predict(blobs), np.repeat([2, 0, 1], 40))


def test_the_search_for_the_number_of_components_rejects_known_labels(blobs):
    with pytest.raises(ParameterError, match=r"n_components='auto' does not support known_labels: .*whole number"):
        Mixture(n_components="auto").fit(blobs, known_labels=np.zeros(120, int))


@pytest.mark.parametrize(
    "arguments, call",
    [
        (("student_t", 3), r"Mixture\(3, 'student_t'\)"),
        ((Poisson(), "auto"), r"Mixture\('auto', Poisson\(\)\)"),
        (("poisson",), r"Mixture\(3, 'poisson'\)"),
    ],
)
def test_a_family_in_first_place_is_one_error_with_the_right_call(arguments, call):
    with pytest.raises(ParameterError, match=rf"first argument of Mixture is n_components.*family second: {call}"):
        Mixture(*arguments)


def test_a_pipeline_fits_predicts_and_scores(blobs):
    pipeline = make_pipeline(StandardScaler(), GaussianMixture(3, random_state=0)).fit(blobs)
    scaled = StandardScaler().fit_transform(blobs)
    alone = GaussianMixture(3, random_state=0).fit(scaled)
    np.testing.assert_array_equal(pipeline.predict(blobs), alone.labels_)
    np.testing.assert_array_equal(pipeline.predict_proba(blobs), alone.predict_proba(scaled))
    assert pipeline.score(blobs) == alone.score(scaled)
    assert len(set(zip(alone.labels_.tolist(), np.repeat([0, 1, 2], 40).tolist(), strict=True))) == 3


def test_grid_search_goes_over_the_number_of_components(blobs):
    rows = np.random.default_rng(1).permutation(blobs)
    search = GridSearchCV(GaussianMixture(covariance_type="VVI", random_state=0), {"n_components": [1, 2, 3]}, cv=3)
    search.fit(rows)
    assert search.best_params_ == {"n_components": 3}  # larger scores are better, and three groups there are
    assert search.best_score_ == pytest.approx(
        np.mean([search.cv_results_[f"split{i}_test_score"][2] for i in range(3)])
    )


MIXTURES = {
    "gaussian": GaussianMixture(3, random_state=0),
    "bayesian": BayesianGaussianMixture(3, random_state=0),
    "student_t": Mixture(3, "student_t", random_state=0),
    "auto": Mixture("auto", random_state=0),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_lower_bounds_end_at_the_lower_bound_and_rise(name, blobs):
    model = clone(MIXTURES[name]).fit(blobs)
    assert model.converged_
    assert len(model.lower_bounds_) == model.n_iter_ == model.history_.iteration[-1] > 0
    assert model.lower_bounds_[-1] == model.lower_bound_
    is_mean = name in ("gaussian", "student_t")  # history_ has totals
    after_e_steps = model.history_.lower_bound[::2] if is_mean else model.history_.lower_bound
    np.testing.assert_allclose(model.lower_bounds_ * (len(blobs) if is_mean else 1), after_e_steps[1:])
    assert (np.diff(model.lower_bounds_) >= -1e-9 * np.abs(model.lower_bound_)).all()


@pytest.mark.parametrize("kind", [GaussianMixture, BayesianGaussianMixture])
def test_lower_bounds_are_in_the_unit_of_the_rows(kind, blobs):
    with pytest.warns(RangeWarning, match="covariances_"):
        model = kind(3, random_state=0).fit(blobs * 2.0**600)
    rows = 1 if kind is GaussianMixture else len(blobs)  # a mean, or a total
    expected = kind(3, random_state=0).fit(blobs).lower_bounds_ - rows * 2 * 600 * np.log(2)
    np.testing.assert_allclose(model.lower_bounds_, expected)
    assert model.lower_bounds_[-1] == model.lower_bound_


@pytest.mark.parametrize("name", MIXTURES)
def test_no_iterations_return_the_initialisation_without_a_warning(name, blobs):
    model = clone(MIXTURES[name]).set_params(max_iter=0).fit(blobs)
    assert (model.n_iter_, model.converged_, len(model.lower_bounds_)) == (0, False, 0)
    assert len(model.history_) == 1
    np.testing.assert_array_equal(model.predict(blobs), model.labels_)


def test_no_iterations_keep_the_given_means(blobs):
    means = [[0.0, 0.0], [9.0, -900.0], [21.0, -2100.0]]
    model = GaussianMixture(3, means_init=means, max_iter=0, random_state=0).fit(blobs)
    np.testing.assert_array_equal(model.means_, means)


def test_options_are_kept_as_they_were_given():
    means = [[0.0, 1.0], [2.0, 3.0]]
    model = GaussianMixture(2, means_init=means, fixed=["means"], init_params="kmeans")
    X, _ = groups(60, d=2, k=3)
    model.fit(X)
    assert model.means_init is means
    assert model.get_params()["fixed"] == ["means"]
    assert clone(model).get_params()["means_init"] == means
