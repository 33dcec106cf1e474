"""Silhouettes of several clusterings at once are those of each."""

import numpy as np
import pytest

from coterie import kernels
from coterie.errors import InputError
from coterie.metrics import silhouette_score
from coterie.metrics.silhouette import labelled_rows
from coterie.metrics.silhouette_labelings import _passes, silhouette_scores


def rows_and_labelings(n, d, ks, dtype=np.float64):
    """Rows, and for each K the nearest of the first K of many random rows: clusters of one K cross those of another."""
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, d)) + 5 * rng.integers(0, 3, (n, 1))).astype(dtype)
    centers = rng.permutation(X)[: max(ks)]
    distances = ((X[:, None] - centers) ** 2).sum(axis=2)
    return X, [distances[:, :k].argmin(axis=1) for k in ks]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(("n", "d", "ks"), [(40, 2, [2, 3]), (700, 3, [2, 3, 4, 8, 40, 60]), (900, 5, [5])])
def test_each_score_is_that_of_its_labels(n, d, ks, dtype, is_weighted):
    X, labelings = rows_and_labelings(n, d, ks, dtype)
    w = np.random.default_rng(1).integers(0, 4, n).astype(float) if is_weighted else None
    scores = silhouette_scores(X, labelings, sample_weight=w)
    expected = [silhouette_score(X, labels, sample_weight=w) for labels in labelings]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=8 * n * np.finfo(dtype).eps)


@pytest.mark.parametrize("metric", ["manhattan", "sqeuclidean", "cosine"])
def test_other_metrics(metric):
    X, labelings = rows_and_labelings(120, 3, [2, 5])
    scores = silhouette_scores(X, labelings, metric=metric)
    assert scores == [silhouette_score(X, labels, metric=metric) for labels in labelings]


def test_precomputed_distances():
    X, labelings = rows_and_labelings(60, 3, [2, 4])
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    np.testing.assert_allclose(
        silhouette_scores(D, labelings, metric="precomputed"), silhouette_scores(X, labelings), rtol=1e-12
    )


def test_labels_of_any_type():
    X, labelings = rows_and_labelings(80, 2, [2, 4])
    named = [np.array(list("abcd"))[labels] for labels in labelings]
    assert silhouette_scores(X, named) == silhouette_scores(X, labelings)
    assert silhouette_scores(X, []) == []


def test_the_result_does_not_depend_on_the_number_of_threads():
    X, labelings = rows_and_labelings(2500, 4, [2, 3, 6, 9])
    assert silhouette_scores(X, labelings, n_jobs=1) == silhouette_scores(X, labelings, n_jobs=2)


def test_few_clusters_share_a_pass_and_many_small_ones_do_not():
    X, labelings = rows_and_labelings(3000, 3, [2, 3, 5, 90, 120])
    rows = [labelled_rows(X, labels, "euclidean", {}, None) for labels in labelings]
    passes = [cells.members for cells in _passes(rows, kernels.select("silhouette", *X.shape))]
    assert [index for members in passes for index in members] == [0, 1, 2, 3, 4]
    assert passes[0][:3] == [0, 1, 2]
    assert len(passes) > 1


def test_a_single_cluster_is_an_error():
    X, labelings = rows_and_labelings(40, 2, [2, 3])
    with pytest.raises(InputError, match="at least two"):
        silhouette_scores(X, [labelings[0], np.zeros(40)])
