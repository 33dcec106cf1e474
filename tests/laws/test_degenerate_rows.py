"""Rows that are all equal, fewer distinct rows than clusters, one row, constant columns: a defined outcome for each.

A fit either has finite results and at most a `ConvergenceWarning`, as in scikit-learn, or raises one clear error.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coterie import (
    BisectingKMeans,
    FuzzyCMeans,
    GaussianMixture,
    KernelKMeans,
    KMeans,
    KMedians,
    MiniBatchKMeans,
    SphericalKMeans,
)
from coterie.errors import InputError, ParameterError
from loop_over import loop_over
from small_tables import FITS, check_finite, of

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
KERNELS = ("linear", "rbf", "poly", "cosine")
rng = np.random.default_rng(0)
MANY = 12_000  # rows: beyond those of an exact kernel K-means, and in several parts

SMALL = {
    "equal": np.full((20, 2), 3.7),
    "zero": np.zeros((20, 2)),
    "two distinct": np.repeat(CORNERS[1:3], 10, axis=0),
    "four distinct": np.tile(CORNERS, (5, 1)),
    "one row": np.ones((1, 2)),
    "two rows": CORNERS[:2],
    "as many as clusters": CORNERS[:3],
    "as many as clusters, equal": np.ones((3, 2)),
    "a constant column": np.column_stack([rng.normal(size=40), np.ones(40)]),
    "columns that are equal": np.repeat(np.arange(20.0)[:, None], 3, axis=1),
    "one far row": np.concatenate([np.zeros((30, 2)), [[1e6, 1e6]]]),
}
LARGE = {
    "equal": np.full((MANY, 2), 3.7),
    "zero": np.zeros((MANY, 2)),
    "two distinct": np.repeat(CORNERS[1:3], MANY // 2, axis=0),
    "a constant column": np.column_stack([rng.normal(size=MANY), np.ones(MANY)]),
}
SCALABLE = {
    **{init: of(KMeans, init=init, n_init=1) for init in ("k-means++", "k-means||", "farthest", "random_partition")},
    **{kernel: of(KernelKMeans, kernel=kernel, n_landmarks=40, n_init=1) for kernel in KERNELS},
    "mini-batch": of(MiniBatchKMeans),
    "bisecting": of(BisectingKMeans),
    "medians": of(KMedians, n_init=1),
    "fuzzy": of(FuzzyCMeans, n_init=1, max_iter=5),
    "spherical": of(SphericalKMeans, n_init=1),
    "mixture": of(GaussianMixture, "n_components", init_params="k-means++", max_iter=20),
}


def check_outcome(fit, X, w):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model = fit(X, w, 3, 0)
        except (InputError, ParameterError):
            return
    check_finite(model)
    if hasattr(model, "predict"):
        labels = model.labels_ if hasattr(model, "labels_") else model.predict(X)
        assert len(labels) == len(X)
        assert labels.min() >= 0


@loop_over("rows", SMALL)
@pytest.mark.parametrize("name", FITS)
def test_small_tables_have_a_defined_outcome(name, rows):
    X = SMALL[rows]
    check_outcome(FITS[name], X, np.arange(len(X)) % 3 * 1.0 if len(X) > 3 else None)


@loop_over("rows", LARGE)
@pytest.mark.parametrize("name", SCALABLE)
def test_large_tables_have_a_defined_outcome(name, rows):
    check_outcome(SCALABLE[name], LARGE[rows], None)


@pytest.mark.parametrize("kernel", [*KERNELS, "sigmoid"])
@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_kernel_k_means_of_equal_rows_is_one_cluster(kernel, approximation, value):
    model = KernelKMeans(3, kernel=kernel, approximation=approximation, random_state=0)
    with pytest.warns(ConvergenceWarning, match="only 1 of 3 clusters have rows"):
        model.fit(np.full((50, 2), value))
    assert len(set(model.labels_.tolist())) == 1
    assert model.inertia_ == pytest.approx(0.0, abs=1e-9)


def test_kernel_k_means_of_many_equal_rows_needs_one_landmark():
    with pytest.warns(ConvergenceWarning, match="only 1 of 3 clusters have rows"):
        model = KernelKMeans(3, kernel="linear", random_state=0).fit(np.ones((20_000, 2)))
    assert model.approximation_ == "nystrom"
    assert len(model.landmarks_) == 1
    assert model.inertia_ == 0
