"""Rows, weights and helpers of the laws about scale: multiplying by a power of two changes only exponents."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from coterie.errors import RangeWarning

SHORT = pytest.mark.usefixtures("short_searches")  # of any length, a search finds the same at any scale

rng = np.random.default_rng(5)
ROWS = rng.normal(size=(150, 3)) + 4 * rng.integers(0, 3, (150, 1))
HOLES = np.where(rng.random(ROWS.shape) < 0.1, np.nan, ROWS)
HOLES[:, 0] = ROWS[:, 0]
SPARSE = sparse.csr_array(np.where(rng.random(ROWS.shape) < 0.3, 0.0, ROWS))
WEIGHTS = rng.integers(0, 4, 150).astype(float)
LABELS = rng.integers(0, 3, 150)
K = {"n_clusters": 4, "random_state": 0}
LENGTH, SQUARE = (1, 0), (2, 1)  # powers of the scales of rows and weights


def times(values, power):
    """Values times a power of two, exactly."""
    if sparse.issparse(values):
        return type(values)((np.ldexp(values.data, power), values.indices, values.indptr), shape=values.shape)
    return np.ldexp(values, power)


def fitted(model, X, w=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        return type(model)(**model.get_params()).fit(X, sample_weight=w)


def check_alike(plain, scaled, powers, rows, weights):
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    for name, (by_rows, by_weights) in powers.items():
        with np.errstate(over="ignore", under="ignore"):
            expected = np.ldexp(getattr(plain, name), int(by_rows * rows + by_weights * weights))
        np.testing.assert_array_equal(getattr(scaled, name), expected, err_msg=name)
