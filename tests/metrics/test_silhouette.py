"""Silhouettes: by the definition, beside scikit-learn, and the laws of weights, threads, types and names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn import metrics as sk

from coterie.core.arguments import as_rng
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.metrics import silhouette, silhouette_samples, silhouette_score
from many_parts import many_parts, many_strips

rng = np.random.default_rng(2)
LABELS = rng.integers(0, 5, 900)
X = rng.normal(size=(900, 6)) + 2 * rng.normal(size=(5, 6))[LABELS]
WEIGHTS = rng.integers(0, 4, 900)
METRICS = ["euclidean", "sqeuclidean", "manhattan", "chebyshev", "cosine", "correlation", "minkowski", "mahalanobis"]


def by_hand(D, labels):
    found = []
    for i, own in enumerate(labels):
        mine = (labels == own) & (np.arange(len(labels)) != i)
        if not mine.any():
            found.append(0.0)
            continue
        a, b = D[i, mine].mean(), min(D[i, labels == other].mean() for other in set(labels) - {own})
        found.append((b - a) / max(a, b) if max(a, b) > 0 else 0.0)
    return np.array(found)


@pytest.fixture(params=["fused", "strips"])
def way(request, monkeypatch):
    """Both ways to straight-line distances, and strips that are many."""
    if request.param == "strips":
        monkeypatch.setattr(silhouette, "MAX_SUMS", 0)
        many_strips(monkeypatch, 70 * 900)
    return request.param


@pytest.mark.parametrize("rows", [slice(None), slice(0, 60)])
def test_the_definition(way, rows):
    few, labels = X[rows], LABELS[rows]
    np.testing.assert_allclose(silhouette_samples(few, labels), by_hand(pairwise(few), labels), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_any_metric_is_its_matrix(metric):
    D = pairwise(X, metric=metric)
    want = by_hand(D, LABELS)
    np.testing.assert_allclose(silhouette_samples(X, LABELS, metric=metric), want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(silhouette_samples(D, LABELS, metric="precomputed"), want, rtol=1e-9, atol=1e-11)


def test_parameters_functions_and_series():
    few, labels = X[:80], LABELS[:80]
    third = silhouette_samples(few, labels, metric="minkowski", p=3)
    np.testing.assert_allclose(third, by_hand(pairwise(few, metric="minkowski", p=3), labels), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        silhouette_samples(few, labels, metric=lambda x, y: abs(x[0] - y[0])),
        by_hand(np.abs(few[:, :1] - few[:, 0]), labels), rtol=1e-9, atol=1e-12,
    )  # fmt: skip
    series = [list(row[: 3 + i % 4]) for i, row in enumerate(few[:20])]
    np.testing.assert_allclose(
        silhouette_samples(series, labels[:20], metric="dtw"),
        by_hand(pairwise(series, metric="dtw"), labels[:20]), rtol=1e-9, atol=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("k", [2, 7, 150])
def test_scikit_learn_agrees(k):
    labels = np.concatenate([np.arange(k), rng.integers(0, k, 900 - k)])
    np.testing.assert_allclose(silhouette_samples(X, labels), sk.silhouette_samples(X, labels), rtol=1e-7, atol=1e-7)
    assert silhouette_score(X, labels) == pytest.approx(sk.silhouette_score(X, labels), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(3, 25), st.integers(1, 3)), elements=st.integers(-3, 3)), st.data())
def test_hostile_rows(rows, data):
    """Equal rows, clusters on top of each other, clusters of one."""
    labels = data.draw(hnp.arrays(np.int64, len(rows), elements=st.integers(-1, 2)))
    labels[:3] = 0, 0, 1
    rows = rows + 0.1
    for metric in ("euclidean", "sqeuclidean", "chebyshev"):
        found = silhouette_samples(rows, labels, metric=metric)
        np.testing.assert_allclose(found, by_hand(pairwise(rows, metric=metric), labels), atol=1e-12)
        assert (np.abs(found) <= 1).all()
    assert np.isfinite(silhouette_score(rows, labels, approximation="simplified", average=None)).all()


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan"])
def test_weight_two_is_the_row_twice_and_zero_no_row(way, metric):
    want = silhouette_samples(np.repeat(X, WEIGHTS, axis=0), np.repeat(LABELS, WEIGHTS), metric=metric)
    found = silhouette_samples(X, LABELS, metric=metric, sample_weight=WEIGHTS)
    np.testing.assert_allclose(np.repeat(found, WEIGHTS), want, rtol=1e-9, atol=1e-12)
    for method in ("exact", "simplified", "medoid"):
        if metric != "manhattan" or method != "simplified":
            how = {"metric": metric, "approximation": method, "average": None}
            twice = silhouette_score(np.repeat(X, WEIGHTS, axis=0), np.repeat(LABELS, WEIGHTS), **how)
            np.testing.assert_allclose(silhouette_score(X, LABELS, sample_weight=WEIGHTS, **how), twice, rtol=1e-9)


def test_small_weights_are_weights_of_other_rows():
    w = rng.random(900) / 900
    one, other = (silhouette_samples(X, LABELS, sample_weight=w * factor) for factor in (1.0, 0.01))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    D = pairwise(X)
    i, mine = 17, LABELS[17] == LABELS
    a = (D[i, mine] @ w[mine]) / (w[mine].sum() - w[i])
    b = min(D[i, c == LABELS] @ w[c == LABELS] / w[c == LABELS].sum() for c in range(5) if c != LABELS[i])
    assert one[i] == pytest.approx((b - a) / max(a, b), rel=1e-9)


def test_a_row_of_weight_two_is_not_alone():
    found = silhouette_samples([[0.0], [1.0], [2.0]], [0, 1, 2], sample_weight=[2, 1, 1])
    np.testing.assert_array_equal(found, [1.0, 0.0, 0.0])


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan"])
def test_float32_stays_and_is_close(way, metric):
    found = silhouette_samples(X.astype(np.float32), LABELS, metric=metric)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, silhouette_samples(X, LABELS, metric=metric), atol=5e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan"])
def test_threads_give_the_same_bits(way, metric, dtype, monkeypatch):
    rows, labels = np.tile(X, (4, 1)).astype(dtype), np.tile(LABELS, 4)
    many_parts(monkeypatch, rows)
    many_strips(monkeypatch, 70 * 128)
    one, three = (silhouette_samples(rows, labels, metric=metric, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_size_of_the_rows_does_not_matter(scale):
    want = silhouette_samples(X, LABELS)
    for dtype, close in ((np.float64, 1e-10), (np.float32, 1e-5)):
        np.testing.assert_allclose(silhouette_samples((X * scale).astype(dtype), LABELS), want, atol=close)


def test_names_of_clusters_and_order_of_rows_do_not_matter():
    want, order = silhouette_samples(X, LABELS), rng.permutation(900)
    text = np.array(["e", "d", "c", "b", "a"])
    np.testing.assert_allclose(silhouette_samples(pd.DataFrame(X), text[LABELS]), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(silhouette_samples(X[order], LABELS[order]), want[order], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["exact", "sampled", "simplified", "medoid"])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_equal_rows_have_no_silhouette(method, metric):
    for value in (0.1, 1e9 / 3):
        assert silhouette_score(np.full((50, 3), value), [0, 1] * 25, approximation=method, metric=metric) == 0.0


def test_averages():
    samples = silhouette_samples(X, LABELS)
    means = [samples[c == LABELS].mean() for c in range(5)]
    assert silhouette_score(X, LABELS) == pytest.approx(samples.mean(), rel=1e-12)
    np.testing.assert_allclose(silhouette_score(X, LABELS, average=None), means, rtol=1e-12)
    assert silhouette_score(X, LABELS, average="macro") == pytest.approx(np.mean(means), rel=1e-12)


def test_an_estimate_is_unbiased_and_its_error_is_right():
    want = silhouette_score(X, LABELS)
    found = np.array(
        [silhouette_score(X, LABELS, approximation="sampled", sample_size=100, random_state=i, return_error=True)
         for i in range(60)]
    )  # fmt: skip
    z = (found[:, 0] - want) / found[:, 1]
    assert abs(z.mean()) < 4 / 60**0.5
    assert 0.7 < z.std() < 1.35
    whole = silhouette_score(X, LABELS, approximation="sampled", sample_size=900, return_error=True)
    assert whole == (pytest.approx(want, rel=1e-9), 0.0)
    again = [silhouette_score(X, LABELS, approximation="sampled", random_state=3, n_jobs=n) for n in (1, 2)]
    assert again[0] == again[1]


def test_an_estimate_samples_rows_by_their_weights():
    w = np.where(LABELS == 0, 5.0, 0.5)
    want = silhouette_score(X, LABELS, sample_weight=w)
    found = np.array(
        [silhouette_score(X, LABELS, sample_weight=w, approximation="sampled", sample_size=300, random_state=i,
                          return_error=True) for i in range(40)]
    )  # fmt: skip
    assert abs(((found[:, 0] - want) / found[:, 1]).mean()) < 4 / 40**0.5


@pytest.mark.parametrize("squared", [False, True])
def test_simplified_silhouettes_measure_to_means(squared):
    means = np.stack([X[c == LABELS].mean(0) for c in range(5)])
    D = pairwise(X, means, metric="sqeuclidean" if squared else "euclidean")
    a = D[np.arange(900), LABELS].copy()
    D[np.arange(900), LABELS] = np.inf
    b = D.min(axis=1)
    want, metric = ((b - a) / np.maximum(a, b)).mean(), "sqeuclidean" if squared else "euclidean"
    import dask.array as da

    for rows in (X, sparse.csr_array(X), da.from_array(X, chunks=(200, 6))):
        assert silhouette_score(rows, LABELS, metric=metric, approximation="simplified") == pytest.approx(
            want, rel=1e-9
        )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "precomputed"])
def test_medoid_silhouettes_measure_to_medoids(metric):
    D = pairwise(X, metric="euclidean" if metric == "precomputed" else metric)
    members = [np.flatnonzero(c == LABELS) for c in range(5)]
    medoids = [mine[D[np.ix_(mine, mine)].sum(axis=1).argmin()] for mine in members]
    to = D[:, medoids]
    a = to[np.arange(900), LABELS].copy()
    to[np.arange(900), LABELS] = np.inf
    want = ((to.min(axis=1) - a) / np.maximum(a, to.min(axis=1))).mean()
    rows = D if metric == "precomputed" else X
    assert silhouette_score(rows, LABELS, metric=metric, approximation="medoid") == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("method", ["exact", "sampled", "simplified", "medoid"])
def test_too_few_or_too_many_clusters_are_errors(method):
    for labels, w, message in (
        (np.zeros(900), None, "labels are all 0.0: this index compares clusters"),
        (np.arange(900), None, "labels make each row a separate cluster"),
        (LABELS, LABELS == 1, "only one cluster has rows with positive sample_weight"),
        (LABELS[1:], None, "labels has 899 entries and X has 900 rows"),
    ):
        with pytest.raises(InputError, match=message):
            silhouette_score(X, labels, sample_weight=w, approximation=method)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"approximation": "fast"}, "approximation must be 'exact' or"),
        ({"average": "weighted"}, "average must be 'micro' or"),
        ({"approximation": "medoid", "sample_size": 10}, "sample_size requires approximation='exact' or 'sampled'"),
        ({"approximation": "sampled", "sample_size": 1}, "sample_size must be a whole number of at least 2"),
        ({"approximation": "sampled", "sample_size": 901}, "sample_size must be at most 900"),
        ({"approximation": "sampled", "average": None}, "average must be 'micro' with approximation='sampled'"),
        (
            {"approximation": "simplified", "metric": "manhattan"},
            "metric must be 'euclidean' or 'sqeuclidean' with",
        ),
        (
            {"approximation": "simplified", "w": 1},
            "='simplified' takes no parameters of the metric; got w",
        ),
        ({"metric": "euclid"}, "metric must be one of"),
        ({"metric": "precomputed", "p": 1}, "metric='precomputed' takes no parameters; got p"),
        ({"approximation": "sampled", "random_state": "x"}, "random_state must be"),
    ],
)
def test_invalid_options_are_errors(options, message):
    with pytest.raises(ParameterError, match=message):
        silhouette_score(X, LABELS, **options)


@pytest.mark.parametrize("size", [300, 5000])
def test_a_sample_is_compared_with_itself(size):
    rows = np.sort(as_rng(3).permutation(len(X))[:size])
    expected = silhouette_score(X[rows], LABELS[rows])
    assert silhouette_score(X, LABELS, sample_size=size, random_state=3) == expected
    D = pairwise(X)
    assert silhouette_score(D, LABELS, metric="precomputed", sample_size=size, random_state=3) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("metric", ["euclidean", "l2", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_have_the_silhouettes_of_dense_ones(metric, kind):
    rows = np.where(np.random.default_rng(0).random((300, 8)) < 0.6, 0.0, X[:300, :1] + 3.0)
    rows[:, 0] += 1
    expected = silhouette_samples(rows, LABELS[:300], metric=metric)
    np.testing.assert_allclose(silhouette_samples(kind(rows), LABELS[:300], metric=metric), expected, atol=1e-7)
    assert silhouette_score(kind(rows), LABELS[:300], metric=metric) == pytest.approx(expected.mean())


def test_sparse_distances_and_metrics_without_dot_products():
    D = pairwise(X[:200])
    D[D < 0.1] = 0
    expected = silhouette_samples(D, LABELS[:200], metric="precomputed")
    precomputed = silhouette_samples(sparse.csr_array(D), LABELS[:200], metric="precomputed")
    np.testing.assert_array_equal(precomputed, expected)
    with pytest.raises(InputError, match=r"X is sparse: distances need dense rows in memory; pass X.toarray\(\)"):
        silhouette_samples(sparse.csr_array(X), LABELS, metric="manhattan")
    with pytest.raises(InputError, match="row 3 is zero in every column"):
        silhouette_samples(sparse.csr_array(np.where(np.arange(900)[:, None] == 3, 0, X)), LABELS, metric="cosine")


def test_distances_that_overflow_are_an_error():
    far = (X / np.abs(X).max() * 3e38).astype(np.float32)
    for method in ("exact", "sampled", "medoid"):
        with pytest.raises(InputError, match=r"so far apart that their distances overflow|cannot represent"):
            silhouette_score(far, LABELS, approximation=method, metric="manhattan")
        found = silhouette_score(far, LABELS, approximation=method, random_state=0)
        assert found == pytest.approx(silhouette_score(X, LABELS, approximation=method, random_state=0), abs=1e-5)


def test_invalid_rows_are_errors():
    with pytest.raises(InputError, match="contains NaN"):
        silhouette_samples(np.where(X > 2, np.nan, X), LABELS)
    with pytest.raises(InputError, match="needs a square X"):
        silhouette_samples(X, LABELS, metric="precomputed")
    with pytest.raises(ValueError, match="contains NaN"):
        silhouette_samples(sparse.csr_array(np.where(X > 2, np.nan, X)), LABELS)


def test_the_full_distance_matrix_is_never_stored():
    """A small part of the room of n² numbers is all it asks for."""
    import tracemalloc

    rows, labels = np.tile(X.astype(np.float32), (12, 1)), np.tile(LABELS, 12)
    silhouette_samples(rows, labels)
    tracemalloc.start()
    silhouette_samples(rows, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.03 * 4 * len(rows) ** 2
