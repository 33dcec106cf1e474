"""Silhouettes of several clusterings at once are those of each."""

from itertools import pairwise

import numpy as np
import pytest

from coterie.errors import InputError
from coterie.kernels.cpu import silhouette as compiled
from coterie.kernels.plain import silhouette as plain
from coterie.metrics import silhouette_score
from coterie.metrics.silhouette import labelled_rows
from coterie.metrics.silhouette_labelings import cells_of, silhouette_scores


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


@pytest.mark.parametrize("ks", [[2, 5], [2, 3, 5]])
@pytest.mark.parametrize("metric", ["manhattan", "sqeuclidean", "cosine"])
def test_other_metrics(metric, ks):
    X, labelings = rows_and_labelings(120, 3, ks)
    scores = silhouette_scores(X, labelings, metric=metric)
    expected = [silhouette_score(X, labels, metric=metric) for labels in labelings]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_precomputed_distances():
    X, labelings = rows_and_labelings(60, 3, [2, 3, 4])
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    np.testing.assert_allclose(
        silhouette_scores(D, labelings, metric="precomputed"), silhouette_scores(X, labelings), rtol=1e-12
    )


def test_labels_of_any_type():
    X, labelings = rows_and_labelings(80, 2, [2, 3, 4])
    named = [np.array(list("abcd"))[labels] for labels in labelings]
    assert silhouette_scores(X, named) == silhouette_scores(X, labelings)
    assert silhouette_scores(X, []) == []


def test_the_result_does_not_depend_on_the_number_of_threads():
    X, labelings = rows_and_labelings(2500, 4, [2, 3, 6, 9])
    assert silhouette_scores(X, labelings, n_jobs=1) == silhouette_scores(X, labelings, n_jobs=2)


def test_cells_are_the_rows_with_the_same_clusters():
    X, labelings = rows_and_labelings(300, 3, [2, 3, 5])
    cells = cells_of([labelled_rows(X, labels, "euclidean", {}, None) for labels in labelings])
    assert sorted(cells.order.tolist()) == list(range(300))
    combinations = np.unique(np.stack(labelings, axis=1), axis=0)
    np.testing.assert_array_equal(cells.clusters - cells.first[:-1], combinations)
    for (first, last), clusters in zip(pairwise(cells.starts), combinations, strict=True):
        rows = cells.order[first:last]
        assert all((labels[rows] == cluster).all() for labels, cluster in zip(labelings, clusters, strict=True))
        assert len(rows) == np.count_nonzero((np.stack(labelings, axis=1) == clusters).all(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_kernel_gives_the_silhouettes_of_numpy(dtype):
    X, labelings = rows_and_labelings(400, 3, [2, 6, 30])
    w = np.random.default_rng(0).integers(0, 3, 400).astype(float)
    w[labelings[2] == 7] = 0.0
    clusterings = [labelled_rows(X, labels, "euclidean", {}, w) for labels in labelings]
    cells, targets = cells_of(clusterings), np.arange(50, 90)
    D = np.sqrt(((X[cells.order][:, None] - X[targets]) ** 2).sum(axis=2)).astype(dtype)
    own = np.stack([labels[targets] for labels in labelings]) + cells.first[:-1, None]
    rest = np.stack([labelled.rest_weight[targets] for labelled in clusterings])
    results = np.full((2, 3, 40), np.nan)
    for kernels, values in zip((compiled, plain), results, strict=True):
        kernels.silhouettes_of_cells(
            D, w[cells.order], cells.starts, cells.clusters, cells.first, cells.weight, own, rest, values
        )
    np.testing.assert_allclose(results[0], results[1], rtol=0, atol=1e-12)
    assert np.ptp(results[0]) > 0.5


def test_a_single_cluster_is_an_error():
    X, labelings = rows_and_labelings(40, 2, [2, 3])
    with pytest.raises(InputError, match="at least two"):
        silhouette_scores(X, [labelings[0], np.zeros(40)])
