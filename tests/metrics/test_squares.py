"""Indices of means and scatter: identities, scikit-learn, every source of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn import metrics as sk

from coterie import metrics
from coterie.errors import InputError, ParameterError
from many_parts import many_parts, weights_of_many_digits

rng = np.random.default_rng(1)
LABELS = rng.integers(0, 4, 700)
X = rng.normal(size=(700, 5)) + LABELS[:, None] * [1.0, 2, 0, 0, 1]
WEIGHTS = rng.integers(0, 4, 700)
INDICES = {
    "inertia": metrics.inertia,
    "bcss": metrics.bcss,
    "tss": lambda X, labels, **how: metrics.tss(X, **how),
    "calinski_harabasz": metrics.calinski_harabasz_score,
    "davies_bouldin": metrics.davies_bouldin_score,
}


def by_hand(X, labels):
    groups = [X[labels == label] for label in np.unique(labels)]
    inertia = sum(((group - group.mean(0)) ** 2).sum() for group in groups)
    bcss = sum(len(group) * ((group.mean(0) - X.mean(0)) ** 2).sum() for group in groups)
    return inertia, bcss, ((X - X.mean(0)) ** 2).sum()


def test_sums_of_squares_by_hand():
    found = metrics.inertia(X, LABELS), metrics.bcss(X, LABELS), metrics.tss(X)
    np.testing.assert_allclose(found, by_hand(X, LABELS), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::coterie.errors.RangeWarning")  # squares of tiny differences are 0
@settings(max_examples=50, deadline=None)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.floats(-1e6, 1e6)), st.data()
)
def test_within_and_between_make_the_total(rows, data):
    labels = data.draw(hnp.arrays(np.int64, len(rows), elements=st.integers(-1, 3)))
    w = data.draw(hnp.arrays(np.float64, len(rows), elements=st.floats(0, 10)))
    w[0] = 1.0
    whole = metrics.tss(rows, sample_weight=w)
    parts = metrics.inertia(rows, labels, sample_weight=w) + metrics.bcss(rows, labels, sample_weight=w)
    assert parts == pytest.approx(whole, rel=1e-9, abs=1e-9 * max(1.0, np.abs(rows).max() ** 2) * w.sum() * 1e-6)


def test_rows_without_weight_do_not_matter_whatever_their_scale():
    rows, w = np.array([[1e-62], [3e-62], [1e180]]), np.array([1.0, 1.0, 0.0])
    assert metrics.inertia(rows, [0, 0, 0], sample_weight=w) == pytest.approx(2e-124)
    assert metrics.tss(rows, sample_weight=w) == pytest.approx(2e-124)


@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_scikit_learn_agrees(shift):
    moved = X + shift
    assert metrics.calinski_harabasz_score(moved, LABELS) == pytest.approx(
        sk.calinski_harabasz_score(X, LABELS), rel=1e-6 if shift else 1e-12
    )
    assert metrics.davies_bouldin_score(moved, LABELS) == pytest.approx(
        sk.davies_bouldin_score(X, LABELS), rel=1e-6 if shift else 1e-12
    )


@pytest.mark.parametrize("name", INDICES)
def test_a_large_constant_column_hides_nothing(name):
    rows = np.column_stack([np.full(700, 2.0**40 / 3), X * 1e-9])
    want = INDICES[name](X * 1e-9, LABELS)
    assert INDICES[name](rows, LABELS) == pytest.approx(want, rel=1e-12)


def test_davies_bouldin_is_a_mean_over_all_clusters():
    labels = LABELS + 10 * (X[:, 0] > 1)
    groups = [X[labels == label] for label in np.unique(labels)]
    means = [group.mean(0) for group in groups]
    wide = [np.linalg.norm(group - mean, axis=1).mean() for group, mean in zip(groups, means, strict=True)]
    k = len(groups)
    worst = [
        max((wide[i] + wide[j]) / np.linalg.norm(means[i] - means[j]) for j in range(k) if j != i) for i in range(k)
    ]
    assert metrics.davies_bouldin_score(X, labels) == pytest.approx(sum(worst) / k, rel=1e-12)


@pytest.mark.parametrize("name", INDICES)
def test_weight_two_is_the_row_twice_and_zero_no_row(name):
    want = INDICES[name](np.repeat(X, WEIGHTS, axis=0), np.repeat(LABELS, WEIGHTS))
    assert INDICES[name](X, LABELS, sample_weight=WEIGHTS) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("name", INDICES)
def test_names_of_clusters_and_order_of_rows_do_not_matter(name):
    want, order = INDICES[name](X, LABELS), rng.permutation(len(X))
    assert INDICES[name](X, np.array(["d", "c", "b", "a"])[LABELS]) == pytest.approx(want, rel=1e-12)
    assert INDICES[name](X[order], LABELS[order] - 1) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("name", INDICES)
def test_any_source_of_rows_gives_the_same(name, tmp_path):
    import dask.array as da

    want = INDICES[name](X, LABELS)
    np.save(tmp_path / "rows.npy", X)
    dask_labels = da.from_array(LABELS, chunks=100)
    for rows, labels in (
        (pd.DataFrame(X), pd.Series(LABELS)),
        (tmp_path / "rows.npy", LABELS),
        (sparse.csr_array(X), LABELS),
        (da.from_array(X, chunks=(150, 5)), dask_labels),
        (X.tolist(), LABELS.tolist()),
    ):
        assert INDICES[name](rows, labels) == pytest.approx(want, rel=1e-10)
    assert INDICES[name](X.astype(np.float32), LABELS) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("name", INDICES)
def test_threads_give_the_same_bits(name, monkeypatch):
    many = np.random.default_rng(2).normal(size=(2800, 5))
    labels = np.tile(LABELS, 4)
    many_parts(monkeypatch, many)
    w = weights_of_many_digits(many)
    one, three = (INDICES[name](many, labels, sample_weight=w, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert one == three


def test_inertia_about_given_centers():
    centers = rng.normal(size=(6, 5))
    want = ((X - centers[LABELS]) ** 2).sum()
    assert metrics.inertia(X, LABELS, centers=centers) == pytest.approx(want, rel=1e-12)
    with pytest.raises(ParameterError, match=r"centers must be finite numbers, .* and 5 columns"):
        metrics.inertia(X, LABELS, centers=centers[:, :4])
    with pytest.raises(InputError, match="labels must be integers from 0 to 2 if centers has 3 rows"):
        metrics.inertia(X, LABELS, centers=centers[:3])


def test_inertia_is_that_of_k_means():
    from coterie import KMeans

    model = KMeans(4, random_state=0).fit(X)
    assert metrics.inertia(X, model.labels_, centers=model.cluster_centers_) == pytest.approx(model.inertia_, rel=1e-9)


def test_limits():
    for unit in (1.0, 0.1, 1 / 3):
        points, labels = np.repeat([[0.0], [1.0], [3.0]], 7, axis=0) * unit, np.repeat([0, 1, 2], 7)
        assert metrics.calinski_harabasz_score(points, labels) == np.inf
        assert metrics.davies_bouldin_score(points, labels) == 0.0
        assert metrics.calinski_harabasz_score(np.full((14, 2), unit), [0, 1] * 7) == 0.0
        assert metrics.davies_bouldin_score(np.full((14, 2), unit), [0, 1] * 7) == np.inf
    assert metrics.davies_bouldin_score([[0.0], [2.0], [-1.0], [3.0]], [0, 0, 1, 1]) == np.inf


@pytest.mark.parametrize("name", ["calinski_harabasz", "davies_bouldin"])
def test_one_cluster_is_an_error(name):
    with pytest.raises(InputError, match="labels are all 7: this index compares clusters, and needs at least two"):
        INDICES[name](X, np.full(700, 7))
    with pytest.raises(InputError, match="only one cluster has rows with positive sample_weight"):
        INDICES[name](X, LABELS, sample_weight=LABELS == 2)


@pytest.mark.parametrize("name", ["inertia", "bcss", "calinski_harabasz", "davies_bouldin"])
def test_invalid_input_is_an_error(name):
    with pytest.raises(InputError, match="labels has 699 entries and X has 700 rows"):
        INDICES[name](X, LABELS[1:])
    with pytest.raises(InputError, match="labels is missing"):
        INDICES[name](X, np.where(LABELS == 0, np.nan, LABELS))
    with pytest.raises(InputError, match="contains NaN"):
        INDICES[name](np.where(X > 2, np.nan, X), LABELS)


def test_as_many_clusters_as_rows_have_no_variance_ratio():
    with pytest.raises(InputError, match="labels have 5 clusters of 5 rows"):
        metrics.calinski_harabasz_score(X[:5], list(range(5)))
