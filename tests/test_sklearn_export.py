import numpy as np
import pytest
from sklearn import cluster, mixture

import coterie
from coterie.errors import ParameterError
from persistence.fitted import FRAME, HOLES, NAMES, SINGLE, STRUCTURES, X, fitted

NEW = np.random.default_rng(5).uniform(X.min(), X.max(), (400, 3))
CONVERTIBLE = ("KMeans", "MiniBatchKMeans", "GaussianMixture", "BayesianGaussianMixture")


@pytest.mark.parametrize("name", ["KMeans", "KMeans float32", "KMeans frozen", "MiniBatchKMeans"])
def test_exported_centers_agree(name):
    model, rows = fitted(name)
    exported = model.to_sklearn()
    new = NEW.astype(rows.dtype)
    assert type(exported) is getattr(cluster, type(model).__name__)
    assert exported.predict(new).tolist() == model.predict(new).tolist()
    np.testing.assert_allclose(exported.transform(new), model.transform(new), rtol=1e-4 if rows is SINGLE else 1e-10)
    np.testing.assert_allclose(exported.score(new), model.score(new), rtol=1e-4 if rows is SINGLE else 1e-10)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_exported_mixtures_of_all_structures_agree(structure):
    model, _ = fitted(f"GaussianMixture {structure}")
    agree(model, model.to_sklearn(), mixture.GaussianMixture)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("Bayesian")])
def test_exported_bayesian_mixtures_agree(name):
    model, _ = fitted(name)
    agree(model, model.to_sklearn(), mixture.BayesianGaussianMixture)


def agree(model, exported, kind):
    assert type(exported) is kind
    assert exported.predict(NEW).tolist() == model.predict(NEW).tolist()
    np.testing.assert_allclose(exported.predict_proba(NEW), model.predict_proba(NEW), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(exported.score_samples(NEW), model.score_samples(NEW), rtol=1e-8)
    assert exported.lower_bounds_ == model.lower_bounds_.tolist()


def test_a_fit_of_rows_with_missing_values_is_exported():
    model, _ = fitted("KMeans holes")
    assert np.isnan(HOLES).any()
    assert model.to_sklearn().predict(NEW).tolist() == model.predict(NEW).tolist()


def test_exported_models_have_the_column_names():
    model, rows = fitted("KMeans frame")
    exported = model.to_sklearn()
    assert exported.predict(FRAME).tolist() == model.predict(rows).tolist()
    with pytest.raises(ValueError, match="feature names"):
        exported.predict(FRAME.rename(columns={"a": "other"}))


def test_partial_fit_of_an_exported_model_continues_with_the_counts_of_centers():
    model, rows = fitted("MiniBatchKMeans")
    exported = model.to_sklearn()
    before, counts = model.cluster_centers_, model.counts_
    batch = rows[:1] + 0.5
    center = int(model.predict(batch)[0])
    exported.partial_fit(batch)
    expected = before[center] + (batch[0] - before[center]) / (counts[center] + 1)
    np.testing.assert_allclose(exported.cluster_centers_[center], expected, rtol=1e-10)


def test_an_exported_model_does_not_share_arrays():
    model, _ = fitted("KMeans")
    exported = model.to_sklearn()
    exported.cluster_centers_[:] = 0
    assert model.cluster_centers_.all()


def test_equal_centers_are_exported():
    with pytest.warns(UserWarning, match="clusters"):
        model = coterie.KMeans(3, random_state=0).fit(np.zeros((5, 2)))
    assert model.to_sklearn().cluster_centers_.shape == (3, 2)


@pytest.mark.parametrize("name", [name for name in NAMES if name.split()[0] in coterie.__all__])
def test_other_models_raise_an_error_with_an_alternative(name):
    model, _ = fitted(name)
    if type(model).__name__ in CONVERTIBLE and "weights of columns" not in name:
        exported = model.to_sklearn()
        assert type(exported).__module__.startswith("sklearn.")
        assert type(exported).__name__ == type(model).__name__
        assert exported.random_state in (None, 0) or "state" in name
        return
    with pytest.raises(ParameterError, match=r"has no equivalent in scikit-learn"):
        model.to_sklearn()
