"""Whatever the table: nothing but finite numbers comes out, and what comes out belongs together."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans, MiniBatchKMeans
from coterie.errors import InputError

STARTS = ["k-means++", "forgy", "random_partition", "farthest", "array"]
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "rows backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "CSR": sparse.csr_array,
}
EXPONENTS = {np.float32: 30, np.float64: 150}
few = settings(deadline=None, derandomize=True, max_examples=150)
fewer = settings(deadline=None, derandomize=True, max_examples=40)


@st.composite
def scales(draw, dtype):
    """The size of the values, and how far from the origin they lie in terms of their spread."""
    exponent = draw(st.integers(-EXPONENTS[dtype], EXPONENTS[dtype]))
    far = draw(st.sampled_from([0, 10, 1e6])) if abs(exponent) <= 100 else 0  # squares must not leave float64
    return 10.0**exponent, far


@st.composite
def small_tables(draw):
    """Up to 30 rows, some of them alike; floats of any size and place, or whole numbers."""
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    pool = draw(st.lists(st.lists(st.integers(-1600, 1600), min_size=d, max_size=d), min_size=1, max_size=n))
    X = np.array(pool)[draw(st.lists(st.integers(0, len(pool) - 1), min_size=n, max_size=n))]
    dtype = draw(st.sampled_from([np.float64, np.float32, np.int16, np.bool_]))
    if dtype in EXPONENTS:
        size, far = draw(scales(dtype))
        X = (X / 1600 + far) / (1 + far) * size
    return X.astype(dtype)


@st.composite
def large_tables(draw):
    """Work enough for compiled kernels, with bounds and without."""
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    n, d, k = draw(st.sampled_from([(2500, 8, 8), (1200, 9, 17), (4500, 5, 6), (150, 200, 7)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    groups = rng.uniform(-1, 1, size=(draw(st.integers(1, 2 * k)), d))
    X = groups[rng.integers(len(groups), size=n)] + draw(st.sampled_from([0.0, 0.01, 0.5])) * rng.normal(size=(n, d))
    size, far = draw(scales(dtype))
    return ((X + far) / (4 + far) * size).astype(dtype), k


def weights(n):
    values = st.sampled_from([0.0, 0.001, 0.5, 1.0, 2.0, 1000.0])
    return st.none() | st.lists(values, min_size=n, max_size=n).filter(any)


def unit_of(X, centers):
    """A power of two of the size of the table: it changes no digit, and keeps squares inside float64."""
    size = np.ptp(np.vstack([X, centers]).astype(np.float64), axis=0).max()
    return 2.0 ** np.ceil(np.log2(size)) if size > 0 else 1.0


def squares(X, centers, unit):
    """Squared distances in units, column by column in float64."""
    total = np.zeros((len(X), len(centers)))
    for x, c in zip(X.astype(np.float64).T, centers.astype(np.float64).T, strict=True):
        total += ((x[:, None] - c) / unit) ** 2
    return total


def fit(model, rows, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of equal rows, and of centers that rounding moves about
        return model.fit(rows, sample_weight=weight)


def check(model, rows, X, weight, rounding):
    """What holds of every fitted model."""
    centers, w = model.cluster_centers_, np.ones(len(X)) if weight is None else np.asarray(weight)
    assert centers.shape == (model.n_clusters, X.shape[1])
    assert np.isfinite(centers).all()
    assert np.isfinite(model.transform(rows)).all()
    unit = unit_of(X, centers)
    found = squares(X, centers, unit)
    np.testing.assert_array_equal(model.labels_, found.argmin(axis=1))
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    cost = float(w @ found.min(axis=1))
    assert model.inertia_ / unit**2 == pytest.approx(cost, rel=rounding, abs=1e-25 * w.sum())
    history = model.history_ / unit**2
    if isinstance(model, KMeans):
        assert model.inertia_ == model.history_[-1]
        # a center is rounded to the type of the rows, which costs the square of what it is off by
        off = np.finfo(centers.dtype).eps * np.abs(centers.astype(np.float64) / unit).max()
        assert (np.diff(history) <= rounding * history[:-1] + w.sum() * X.shape[1] * off**2).all()
    assert np.isfinite(history).all()


@few
@given(data=st.data())
def test_small_tables_of_any_kind(data):
    X = data.draw(small_tables())
    weight = data.draw(weights(len(X)))
    counted = len(X) if weight is None else np.count_nonzero(weight)
    k = data.draw(st.integers(1, counted))
    init = data.draw(st.sampled_from(STARTS))
    rows = LAYOUTS[data.draw(st.sampled_from(list(LAYOUTS)))](X)
    start = X[:k].astype(np.float64) if init == "array" else init
    model = KMeans(k, init=start, n_init=1, random_state=data.draw(st.integers(0, 9)))
    check(fit(model, rows, weight), rows, X, weight, rounding=1e-9)
    assert model.cluster_centers_.dtype == (np.float32 if X.dtype == np.float32 else np.float64)


@fewer
@given(data=st.data())
def test_large_tables_of_any_kind(data):
    X, k = data.draw(large_tables())
    init = data.draw(st.sampled_from(STARTS))
    rows = LAYOUTS[data.draw(st.sampled_from(["C", "Fortran", "every other column"]))](X)
    weight = None
    if data.draw(st.booleans()):
        weight = np.random.default_rng(data.draw(st.integers(0, 9))).choice([0.0, 0.5, 1.0, 50.0], size=len(X))
    start = X[:k] if init == "array" else init
    algorithm = data.draw(st.sampled_from(["lloyd", "bounds"]))
    model = KMeans(k, init=start, n_init=1, max_iter=30, algorithm=algorithm, random_state=0)
    check(fit(model, rows, weight), rows, X, weight, rounding=1e-9 if X.dtype == np.float64 else 1e-5)


@settings(few, max_examples=100)
@given(data=st.data())
def test_mini_batches_of_small_tables(data):
    X = data.draw(small_tables())
    k = data.draw(st.integers(1, len(X)))
    rows = LAYOUTS[data.draw(st.sampled_from(list(LAYOUTS)))](X)
    init = data.draw(st.sampled_from(STARTS[:-1]))
    batch_size = data.draw(st.integers(1, 40))
    model = MiniBatchKMeans(k, init=init, batch_size=batch_size, max_iter=5, random_state=0)
    check(fit(model, rows), rows, X, None, rounding=1e-9)


@few
@given(data=st.data())
def test_values_that_are_not_finite_are_always_rejected_by_column(data):
    n, d = data.draw(st.integers(2, 40)), data.draw(st.integers(1, 5))
    dtype = data.draw(st.sampled_from([np.float64, np.float32]))
    X = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
    cells = data.draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, d - 1)), min_size=1, max_size=4))
    value, what = data.draw(st.sampled_from([(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]))
    for cell in cells:
        X[cell] = value
    weight = data.draw(weights(n))
    rows = LAYOUTS[data.draw(st.sampled_from(list(LAYOUTS)))](X)
    bad = ~np.isfinite(X)
    named = ", ".join(f"column {j} ({bad[:, j].sum()})" for j in np.flatnonzero(bad.any(axis=0)))
    kind = data.draw(st.sampled_from([KMeans, MiniBatchKMeans]))
    with pytest.raises(InputError, match=re.escape(f"X contains {what}: {named}. ")):
        kind(1).fit(rows, sample_weight=weight)


@fewer
@given(row=st.integers(0, 4999), column=st.integers(0, 7), value=st.sampled_from([np.nan, np.inf, -np.inf]))
def test_what_is_not_finite_is_found_among_many_rows(row, column, value):
    X = np.random.default_rng(0).normal(size=(5000, 8)).astype(np.float32)
    X[row, column] = value
    with pytest.raises(InputError, match=rf": column {column} \(1\)\. "):
        KMeans(8).fit(X)
