import numpy as np
import pytest
from sklearn import cluster, mixture

import coterie
from coterie.core.errors import ParameterError
from persistence.fitted import FRAME, HOLES, NAMES, SINGLE, STRUCTURES, X, fitted

NEW = np.random.default_rng(5).uniform(X.min(), X.max(), (400, 3))
HAVE_TWINS = ("KMeans", "MiniBatchKMeans", "GaussianMixture", "BayesianGaussianMixture")


@pytest.mark.parametrize("name", ["KMeans", "KMeans float32", "KMeans frozen", "MiniBatchKMeans"])
def test_twins_of_centers_agree(name):
    model, rows = fitted(name)
    twin = model.to_sklearn()
    new = NEW.astype(rows.dtype)
    assert type(twin) is getattr(cluster, type(model).__name__)
    assert twin.predict(new).tolist() == model.predict(new).tolist()
    np.testing.assert_allclose(twin.transform(new), model.transform(new), rtol=1e-4 if rows is SINGLE else 1e-10)
    np.testing.assert_allclose(twin.score(new), model.score(new), rtol=1e-4 if rows is SINGLE else 1e-10)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_twins_of_all_structures_agree(structure):
    model, _ = fitted(f"GaussianMixture {structure}")
    agree(model, model.to_sklearn(), mixture.GaussianMixture)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("Bayesian")])
def test_twins_of_bayesian_mixtures_agree(name):
    model, _ = fitted(name)
    agree(model, model.to_sklearn(), mixture.BayesianGaussianMixture)


def agree(model, twin, kind):
    assert type(twin) is kind
    assert twin.predict(NEW).tolist() == model.predict(NEW).tolist()
    np.testing.assert_allclose(twin.predict_proba(NEW), model.predict_proba(NEW), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(twin.score_samples(NEW), model.score_samples(NEW), rtol=1e-8)


def test_a_fit_of_rows_with_holes_has_a_twin_for_whole_rows():
    model, _ = fitted("KMeans holes")
    assert np.isnan(HOLES).any()
    assert model.to_sklearn().predict(NEW).tolist() == model.predict(NEW).tolist()


def test_twins_know_the_names_of_columns():
    model, rows = fitted("KMeans frame")
    twin = model.to_sklearn()
    assert twin.predict(FRAME).tolist() == model.predict(rows).tolist()
    with pytest.raises(ValueError, match="feature names"):
        twin.predict(FRAME.rename(columns={"a": "other"}))


def test_partial_fit_of_a_twin_goes_on_from_the_weight_that_centers_have():
    model, rows = fitted("MiniBatchKMeans")
    twin = model.to_sklearn()
    before, counts = model.cluster_centers_, model.counts_
    batch = rows[:1] + 0.5
    center = int(model.predict(batch)[0])
    twin.partial_fit(batch)
    expected = before[center] + (batch[0] - before[center]) / (counts[center] + 1)
    np.testing.assert_allclose(twin.cluster_centers_[center], expected, rtol=1e-10)


def test_a_twin_is_no_view_of_the_model():
    model, _ = fitted("KMeans")
    twin = model.to_sklearn()
    twin.cluster_centers_[:] = 0
    assert model.cluster_centers_.all()


def test_centers_that_are_equal_have_a_twin():
    with pytest.warns(UserWarning, match="clusters"):
        model = coterie.KMeans(3, random_state=0).fit(np.zeros((5, 2)))
    assert model.to_sklearn().cluster_centers_.shape == (3, 2)


@pytest.mark.parametrize("name", [name for name in NAMES if name.split()[0] in coterie.__all__])
def test_models_without_a_twin_say_what_there_is_instead(name):
    model, _ = fitted(name)
    if type(model).__name__ in HAVE_TWINS and "weights of columns" not in name:
        twin = model.to_sklearn()
        assert type(twin).__module__.startswith("sklearn.")
        assert type(twin).__name__ == type(model).__name__
        assert twin.random_state in (None, 0) or "state" in name
        return
    with pytest.raises(ParameterError, match=r"has no twin in scikit-learn"):
        model.to_sklearn()
