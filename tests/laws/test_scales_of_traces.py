"""A trace of rows or weights times a power of two is that of the rows, in the units of the divided rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from coterie import (
    BalancedKMeans,
    BayesianGaussianMixture,
    FuzzyCMeans,
    GaussianMixture,
    KMeans,
    KMedians,
    MiniBatchKMeans,
    Mixture,
    TimeSeriesKMeans,
)
from coterie.errors import RangeWarning
from laws.scales import HOLES, ROWS, SHORT, SPARSE, WEIGHTS, K

C = {"n_components": 3, "random_state": 0}
MODELS = {  # model, rows, powers of rows and weights in the objective
    "kmeans": (KMeans(**K), ROWS, (2, 1)),
    "kmeans sparse": (KMeans(**K), SPARSE, (2, 1)),
    "kmeans missing": (KMeans(**K, missing="ignore"), HOLES, (2, 1)),
    "kmeans weights of columns": (KMeans(**K, metric_weights=[1, 4, 0]), ROWS, (2, 1)),
    "minibatch": (MiniBatchKMeans(**K), ROWS, (2, 1)),
    "balanced": (BalancedKMeans(**K), ROWS, (2, 1)),
    "medians": (KMedians(**K), ROWS, (1, 1)),
    "fuzzy": (FuzzyCMeans(**K), ROWS, (2, 1)),
    "time series": (TimeSeriesKMeans(**K), ROWS, (2, 1)),
    "gaussian": (GaussianMixture(**C), ROWS, None),
    "bayesian": (BayesianGaussianMixture(**C), ROWS, None),
    "student_t": (Mixture(family="student_t", **C), ROWS, None),
}


def traced(model, X, w):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        return clone(model).fit_trace(X, sample_weight=w)


@SHORT
@pytest.mark.parametrize("name", MODELS)
def test_a_trace_of_rows_and_weights_times_a_power_of_two(name):
    model, X, powers = MODELS[name]
    plain = traced(model, X, WEIGHTS)
    assert plain.scale == (0, 0)
    for rows, weights in ((-900, 0), (300, 0), (900, 0 if name == "bayesian" else 700)):
        scaled = traced(model, X * 2.0**rows, WEIGHTS * 2.0**weights)
        np.testing.assert_array_equal(scaled.model.labels_, plain.model.labels_)
        assert [step.kind for step in scaled.steps] == [step.kind for step in plain.steps]
        left, left_of_weights = rows - scaled.scale.rows, weights - scaled.scale.weights
        assert abs(left) < 10
        assert abs(left_of_weights) < 10
        np.testing.assert_allclose(np.ldexp(scaled.rows, -left), plain.rows, rtol=1e-6)
        for step, expected in zip(scaled.steps, plain.steps, strict=True):
            np.testing.assert_allclose(np.ldexp(step.centers, -left), expected.centers, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(np.ldexp(step.sizes, -left_of_weights), expected.sizes, rtol=1e-6)
            if step.labels is not None:
                np.testing.assert_array_equal(step.labels, expected.labels)
        if powers is not None:
            exponent = powers[0] * left + powers[1] * left_of_weights
            np.testing.assert_allclose(np.ldexp(scaled.objectives, -exponent), plain.objectives, rtol=1e-6)


def test_a_trace_of_divided_rows_has_the_names_of_the_columns():
    frame = pd.DataFrame(np.ldexp(ROWS, -500), columns=["a", "b", "c"])
    trace = KMeans(3, random_state=0).fit_trace(frame)
    assert trace.columns == ["a", "b", "c"]
    assert trace.scale.rows == -496
    np.testing.assert_array_equal(np.ldexp(trace.steps[-1].centers, -496), trace.model.cluster_centers_)
