"""How fits of mixtures of any family run: threads, types, sparse rows, Dask, batches, and scikit-learn's contract."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coterie import Mixture
from coterie.data import memory
from coterie.errors import ParameterError
from coterie.families import Categorical, GammaPrior, Poisson
from mixture.counts import EACH, FAMILIES, planted


@pytest.fixture(scope="module")
def fitted():
    found = {}
    for family in FAMILIES:
        X, labels = planted(family)
        found[family] = (X, labels, Mixture(4, family, random_state=0).fit(X))
    return found


@EACH
def test_the_same_bits_on_any_number_of_threads(family, monkeypatch):
    monkeypatch.setattr(memory, "SMALL_PART", 1 << 15)
    X, _ = planted(family, 6000)
    assert len(memory.part_bounds(*X.shape, 8)) > 4
    ways = {"engine": "serial"}, {"n_jobs": 3}
    fits = [Mixture(4, family, random_state=0, **way).fit(X) for way in ways]
    for other in fits[1:]:
        assert other.log_likelihood_ == fits[0].log_likelihood_
        for a, b in zip(other.components_, fits[0].components_, strict=True):
            np.testing.assert_array_equal(a, b)


@EACH
def test_float32_stays_float32(family, fitted):
    X, _, model = fitted[family]
    single = Mixture(4, family, random_state=0).fit(X.astype(np.float32))
    assert single.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-9)  # the arithmetic is float64
    assert single.weights_.dtype == np.float32
    for verb in ("predict_proba", "score_samples", "uncertainty", "entropy"):
        assert getattr(single, verb)(X.astype(np.float32)).dtype == np.float32
    assert single.sample(3)[0].dtype == np.float32 or family == "categorical"


@pytest.mark.parametrize("family", ["poisson", "bernoulli", "multinomial"])
def test_sparse_rows_give_what_dense_ones_give(family, fitted):
    X, labels, _ = fitted[family]
    dense, thin = (Mixture(4, family, init_params=labels).fit(rows) for rows in (X, sparse.csr_array(X)))
    assert thin.log_likelihood_ == pytest.approx(dense.log_likelihood_, rel=1e-10)
    np.testing.assert_allclose(thin.components_[0], dense.components_[0], rtol=1e-8)
    np.testing.assert_allclose(thin.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-9)


@EACH
def test_dask_gives_what_threads_give(family):
    da = pytest.importorskip("dask.array")
    X, labels = planted(family, 600)
    near = Mixture(4, family, init_params=labels).fit(X)
    far = Mixture(4, family, init_params=labels).fit(da.from_array(X, chunks=(150, -1)))
    assert far.log_likelihood_ == pytest.approx(near.log_likelihood_, rel=1e-10)
    np.testing.assert_array_equal(far.labels_.compute(), near.labels_)


@EACH
def test_batches_move_the_fit(family):
    X, _ = planted(family, 2000)
    model = Mixture(4, family, random_state=0)
    for part in np.array_split(np.arange(2000), 8):
        if family == "categorical":
            model.set_params(family=Categorical(n_categories=4))
        model.partial_fit(X[part])
    nothing, everything = (Mixture(k, family, random_state=0).fit(X).score(X) for k in (1, 4))
    assert model.score(X) > nothing + 0.8 * (everything - nothing)


@EACH
def test_a_warm_start_goes_on(family, fitted):
    X, _, _ = fitted[family]
    model = Mixture(4, family, init_params="random", random_state=0, warm_start=True, max_iter=2, tol=0)
    with pytest.warns(ConvergenceWarning):
        first = model.fit(X).log_likelihood_
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X).log_likelihood_ >= first
    with pytest.raises(ParameterError, match="warm_start=True, but the previous fit has another family"):
        model.set_params(n_components=3).fit(X)


@EACH
def test_a_fit_survives_pickling_and_cloning(family, fitted):
    X, _, model = fitted[family]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    again = clone(model).fit(X)
    assert again.log_likelihood_ == model.log_likelihood_


def test_a_family_given_as_an_object_is_left_as_it_was():
    X, _ = planted("poisson", 200)
    family = Poisson(GammaPrior(2.0, 1.0))
    before = dict(vars(family))
    Mixture(2, family, random_state=0).fit(X)
    assert vars(family) == before
