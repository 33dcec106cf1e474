"""Passes over parts of rows: sums and nearest rows are those of all rows at once, whatever the parts."""

import numpy as np
import pytest

from coterie.report.build import cluster_moments as passes

SIZES = [None, 7, 1000, 10**9]  # rows of a part


@pytest.fixture(params=SIZES)
def parts(request, monkeypatch):
    monkeypatch.setattr(passes, "ROWS", request.param)


def some_rows(n=2_000, d=4, k=3, seed=0, holes=False, single=False):
    """Rows far from the origin, in clusters and (code -1) in none."""
    rng = np.random.default_rng(seed)
    X = 1e3 + rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 1.0][:d]
    if holes:
        X[rng.random((n, d)) < 0.2] = np.nan
        X[0, 0] = np.nan
    return X.astype(np.float32 if single else np.float64), rng.integers(-1, k, size=n)


def as_they_are(X):
    return np.array(X, dtype=np.float64)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_means_and_variances_are_those_of_all_rows_at_once(parts, holes, single):
    X, codes = some_rows(holes=holes, single=single)
    found = passes.moments(X, codes, 3, has_missing=holes)
    wide = X.astype(np.float64)
    np.testing.assert_allclose(found.mean, np.nanmean(wide, axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.deviation**2, np.nanvar(wide, axis=0), rtol=1e-11)
    np.testing.assert_allclose(found.means, [np.nanmean(wide[codes == j], axis=0) for j in range(3)], rtol=1e-13)
    assert found.present.tolist() == (~np.isnan(wide)).sum(axis=0).tolist()


def test_weights_are_repeated_rows(parts):
    X, codes = some_rows(500)
    w = np.random.default_rng(1).integers(0, 4, size=500)
    found, twice = passes.moments(X, codes, 3, weight=w * 1.0), passes.moments(X.repeat(w, 0), codes.repeat(w), 3)
    for name in ("mean", "deviation", "means", "total", "within"):
        np.testing.assert_allclose(getattr(found, name), getattr(twice, name), rtol=1e-11)


def test_sums_of_squares_are_those_of_the_definition(parts):
    X, codes = some_rows()
    codes = codes.clip(0)
    found = passes.moments(X, codes, 3)
    means = np.array([X[codes == j].mean(axis=0) for j in range(3)])
    assert found.total == pytest.approx(((X - X.mean(axis=0)) ** 2).sum(), rel=1e-11)
    assert found.within == pytest.approx(((X - means[codes]) ** 2).sum(), rel=1e-11)


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, -1e-9])
def test_a_constant_column_has_no_spread_at_all(parts, value):
    X = np.full((3_000, 2), value)
    X[::3, 0] = np.nan
    found = passes.moments(X, np.arange(3_000) % 2, 2, has_missing=True)
    assert found.deviation.tolist() == [0.0, 0.0]
    assert found.total == found.within == 0.0
    assert (found.means == value).all()


def test_a_cluster_without_a_value_has_no_mean():
    X, codes = np.array([[np.nan, 1.0], [2.0, 3.0]]), np.array([0, 1])
    found = passes.moments(X, codes, 3, has_missing=True)
    np.testing.assert_array_equal(found.means, [[np.nan, 1.0], [2.0, 3.0], [np.nan, np.nan]])


def test_covariances_along_directions_are_those_of_the_rows_seen_so(parts):
    X, codes = some_rows()
    A = np.random.default_rng(2).normal(size=(4, 3))
    means = np.array([X[codes == j].mean(axis=0) for j in range(3)])
    found = passes.scatter(X, codes, means, as_they_are, A)
    np.testing.assert_allclose(found, [np.cov((X[codes == j] @ A).T, bias=True) for j in range(3)], rtol=1e-9)


def test_the_nearest_rows_are_those_of_a_search_through_all(parts):
    X, codes = some_rows()
    codes = codes.clip(0)
    means = np.array([X[codes == j].mean(axis=0) for j in range(3)])
    away = ((X - means[codes]) ** 2).sum(axis=1)
    naive = [[i for i in np.argsort(away, kind="stable").tolist() if codes[i] == j][:3] for j in range(3)]
    assert passes.closest(X, codes, means, as_they_are, 3) == naive


def test_of_equally_near_rows_the_first_are_named(parts):
    X, codes = np.ones((50, 2)), np.zeros(50, np.int64)
    codes[40:42] = 1
    assert passes.closest(X, codes, np.ones((2, 2)), as_they_are, 3) == [[0, 1, 2], [40, 41]]
