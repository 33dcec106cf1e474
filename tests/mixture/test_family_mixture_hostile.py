"""Rows that nobody would choose: whatever comes of them is finite, and EM climbs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.exceptions import ConvergenceWarning

from coterie import Mixture
from coterie.errors import ObjectiveRoseWarning
from mixture.counts import EACH
from mixture.rows import climbs

MOST = {"poisson": 1e6, "bernoulli": 1, "multinomial": 50, "categorical": 3}


@EACH
@pytest.mark.parametrize("e_step", ["soft", "hard"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_answers_are_finite_and_the_likelihood_climbs(family, e_step, data):
    n, d = data.draw(st.integers(1, 25), "rows"), data.draw(st.integers(1, 4), "columns")
    X = data.draw(arrays(np.float64, (n, d), elements=st.integers(0, MOST[family]).map(float)), "X")
    w = data.draw(st.none() | arrays(np.float64, n, elements=st.sampled_from([0.0, 1e-9, 1.0, 3.0, 1e9])), "w")
    counting = n if w is None else np.count_nonzero(w)
    if counting == 0:
        return
    k = data.draw(st.integers(1, min(4, counting)), "components")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = Mixture(k, family, e_step=e_step, random_state=0, max_iter=50).fit(X, sample_weight=w)
    assert np.isfinite(model.log_likelihood_)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert all(np.isfinite(array).all() for array in model.components_)
    resp = model.predict_proba(X)
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert np.isfinite(model.score_samples(X)).all()
    total = n if w is None else w.sum()
    seen = abs(model.log_likelihood_) > 1e-6 * total  # by more than the rounding of probabilities near 1
    if e_step == "soft" and not model.history_.events and seen:
        climbs(model.history_, 1e-9)


def climbs_far_from_the_origin(family, rows, seed):
    X = 1e8 + 1e-3 * np.random.default_rng(seed).normal(size=(rows, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ObjectiveRoseWarning)
        Mixture(3, family, random_state=seed, tol=1e-4).fit(X)


@pytest.mark.parametrize("family, rows", [("student_t", 6), ("gaussian", 10)])
def test_thin_components_far_from_the_origin_climb_up_to_the_rounding_of_their_means(family, rows):
    """A mean of 1e8 is rounded by 1e-8, which is much for a component of three rows, a few 1e-6 wide."""
    for seed in range(37, 62):
        climbs_far_from_the_origin(family, rows, seed)


@pytest.mark.slow
@pytest.mark.parametrize("family, rows, seed", [("student_t", 6, 57), ("gaussian", 10, 37)])
def test_thin_components_climb_after_the_whole_search(family, rows, seed):
    for local in range(seed, seed + 2):
        climbs_far_from_the_origin(family, rows, local)
