"""Mahalanobis distances of singular and of nearly singular covariances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from coterie import AgglomerativeClustering, KMedoids
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError

DEPENDENT = {  # a column that the others determine
    "a copy": lambda X, rng: X[:, 0],
    "the negative": lambda X, rng: -X[:, -1],
    "a sum": lambda X, rng: X[:, 0] + X[:, 1],
    "a combination": lambda X, rng: X @ rng.normal(size=X.shape[1]).astype(X.dtype),
    "the mean": lambda X, rng: X.mean(axis=1),
    "a constant": lambda X, rng: np.full(len(X), 0.1),
}


def correlated(rng, dtype, offset):
    """Rows of full rank, some of them far from the origin."""
    d, n = int(rng.integers(2, 8)), int(rng.integers(20, 200))
    X = rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) + 2 * np.eye(d)) + offset
    return X.astype(dtype)


def tables(count):
    for seed in range(count):
        rng = np.random.default_rng(seed)
        dtype = (np.float64, np.float32)[seed % 2]
        offset = 10.0 ** rng.integers(-2, 9 if dtype == np.float64 else 4)
        yield rng, correlated(rng, dtype, offset)


@pytest.mark.parametrize("kind", DEPENDENT)
def test_a_dependent_column_is_found_whatever_the_units_and_the_offset(kind):
    for rng, X in tables(60):
        rows = np.column_stack([X, DEPENDENT[kind](X, rng).astype(X.dtype)])
        for units in (1.0, 10.0 ** rng.uniform(-8, 8, rows.shape[1])):
            table = (rows * units).astype(X.dtype)
            with pytest.raises(InputError, match=rf"rank {X.shape[1]}, but X has {X.shape[1] + 1} columns"):
                pairwise(table, metric="mahalanobis")


def test_tables_of_full_rank_are_accepted_whatever_the_units():
    for rng, X in tables(120):
        near = X[:, 0] + 10 * np.abs(X).max() * (1e-3 if X.dtype == np.float32 else 1e-7) * rng.normal(size=len(X))
        rows = np.column_stack([X, near.astype(X.dtype)])
        units = 10.0 ** rng.uniform(-8, 8, rows.shape[1])
        for table in (rows, (rows * units).astype(X.dtype)):
            assert np.isfinite(pairwise(table, metric="mahalanobis")).all()


def test_fewer_rows_than_columns_give_at_most_their_number_less_one():
    rng = np.random.default_rng(0)
    for n in range(2, 9):
        with pytest.raises(InputError, match=rf"rank {n - 1}, but X has 8 columns \({n} rows give at most"):
            pairwise(rng.normal(size=(n, 8)), metric="mahalanobis")


def test_units_and_offsets_do_not_change_distances():
    rng = np.random.default_rng(1)
    X = rng.integers(-1000, 1000, (80, 4)) / 64
    expected = cdist(X, X, "mahalanobis", VI=np.linalg.inv(np.cov(X.T)))
    for units, offset in ((1.0, 2.0**24), (2.0 ** np.array([-40, 0, 13, 50]), 0.0), (2.0**-400, 0.0), (2.0**400, 0.0)):
        found = pairwise((X + offset) * units, metric="mahalanobis")
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_pseudo_inverse_is_the_distance_of_independent_columns(dtype):
    rng = np.random.default_rng(2)
    X = (rng.integers(-50, 50, (60, 3)) / 8).astype(dtype)
    rows = np.column_stack([X, X[:, 0] + X[:, 2], np.full(60, 7), X[:, 1]]).astype(dtype)
    found = pairwise(rows, metric="mahalanobis", pseudo_inverse=True)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, pairwise(X, metric="mahalanobis"), rtol=1e-4 if dtype == np.float32 else 1e-11)


def test_the_pseudo_inverse_of_a_given_covariance_is_that_of_independent_columns():
    rng = np.random.default_rng(2)
    X = rng.integers(-50, 50, (60, 3)) / 8
    rows = np.column_stack([X, X[:, 0] + X[:, 2], np.full(60, 7), X[:, 1]]) * 10.0 ** np.arange(-6, 6, 2)
    found = pairwise(rows, metric="mahalanobis", cov=np.cov(rows.T), pseudo_inverse=True)
    np.testing.assert_allclose(found, pairwise(X, metric="mahalanobis"), rtol=1e-6)


def test_shrinkage_within_rounding_does_not_change_the_rank():
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(40, 3))
        rows = np.column_stack([X, X.sum(axis=1)])
        with pytest.raises(InputError, match="rank 3, but X has 4 columns"):
            pairwise(rows, metric="mahalanobis", shrinkage=1e-18)


def test_a_given_covariance_must_have_full_rank_too():
    for rng, X in tables(60):
        rows = np.column_stack([X, X @ rng.normal(size=X.shape[1])]).astype(np.float64)
        rows -= rows[0]
        rows[:, -1] = rows[:, :-1] @ rng.normal(size=X.shape[1])
        units = 10.0 ** rng.uniform(-8, 8, rows.shape[1])
        cov = np.cov((rows * units).T)
        with pytest.raises(ParameterError, match=rf"cov has rank {X.shape[1]}, .* need rank {X.shape[1] + 1}"):
            pairwise(rows, metric="mahalanobis", cov=cov)
        full = np.cov((rows[:, :-1] * units[:-1]).T)
        assert np.isfinite(pairwise(rows[:, :-1], metric="mahalanobis", cov=full)).all()


@pytest.mark.parametrize("cov", [[[1e-20, 5e-21], [-5e-21, 1e-20]], [[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0], [0, 1.0]]])
def test_invalid_covariances_are_rejected(cov):
    with pytest.raises(ParameterError, match=r"cov must be a symmetric \(2, 2\) matrix"):
        pairwise(np.eye(2), metric="mahalanobis", cov=cov, pseudo_inverse=True)


@pytest.mark.parametrize(
    "model",
    [
        KMedoids(2, metric="mahalanobis", random_state=0),
        AgglomerativeClustering(2, metric="mahalanobis", linkage="average"),
    ],
)
def test_estimators_offer_the_same_remedies(model):
    X = np.random.default_rng(3).normal(size=(40, 2))
    rows = np.column_stack([X, X.sum(axis=1)])
    with pytest.raises(InputError, match="rank 2"):
        model.fit(rows)
    labels = model.set_params(metric_params={"pseudo_inverse": True}).fit(rows).labels_
    np.testing.assert_array_equal(labels, model.set_params(metric_params=None).fit(X).labels_)
