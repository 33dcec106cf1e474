from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from coterie import HDBSCAN, KMeans
from coterie.datasets import make_moons, make_rings
from coterie.errors import InputError, ParameterError
from coterie.metrics import dbcv_score

X, Y = make_blobs(120, 3, centers=3, cluster_std=0.8, random_state=2)


def naive(X, labels):
    """The definition of Moulavi and others, with SciPy's spanning tree."""
    d, clusters = X.shape[1], [np.flatnonzero(labels == k) for k in np.unique(labels[labels >= 0])]
    core, inner, sparseness = np.zeros(len(X)), [], []
    for rows in clusters:
        D = cdist(X[rows], X[rows])
        for i, row in enumerate(rows):
            others = np.delete(D[i], i)
            core[row] = (np.mean(others ** -float(d))) ** (-1 / d)
        M = np.maximum(np.maximum(D, core[rows]), core[rows][:, None])
        lower = np.minimum(core[rows], core[rows][:, None])  # of equally long edges, that to the densest row
        rank = np.empty(D.size)
        rank[np.lexsort((lower.ravel(), M.ravel()))] = np.arange(1, D.size + 1)
        tree = minimum_spanning_tree(np.triu(rank.reshape(D.shape), 1)).tocoo()
        degree = np.bincount(np.concatenate([tree.row, tree.col]), minlength=len(rows))
        is_inner = degree > 1
        edges = M[tree.row, tree.col][is_inner[tree.row] & is_inner[tree.col]]
        sparseness.append(edges.max())
        inner.append(rows[is_inner])
    total = 0.0
    for i, rows in enumerate(clusters):
        apart = min(
            np.maximum(np.maximum(cdist(X[inner[i]], X[inner[j]]), core[inner[j]]), core[inner[i]][:, None]).min()
            for j in range(len(clusters))
            if j != i
        )
        total += len(rows) / len(X) * (apart - sparseness[i]) / max(apart, sparseness[i])
    return total


@pytest.mark.parametrize("noise", [0, 20])
def test_the_score_is_that_of_the_definition(noise):
    labels = Y.copy()
    labels[:noise] = -1
    assert dbcv_score(X, labels) == pytest.approx(naive(X, labels), rel=1e-9)
    assert dbcv_score(cdist(X, X), labels, metric="precomputed", n_features=3) == pytest.approx(naive(X, labels))


def test_shapes_that_silhouettes_reject_have_a_high_score():
    for rows, y in (make_moons(300, noise=0.04, random_state=0), make_rings(300, noise=0.02, random_state=0)):
        assert dbcv_score(rows, y) > 0.3 > 0 > dbcv_score(rows, KMeans(2, random_state=0).fit_predict(rows))


def test_noise_lowers_the_score_and_scale_and_order_do_not_change_it():
    labels = HDBSCAN(10).fit_predict(X)
    noisy = labels.copy()
    noisy[:: len(X) // 12] = -1
    score = dbcv_score(X, labels)
    assert dbcv_score(X, noisy) < score
    order = np.random.default_rng(0).permutation(len(X))
    assert dbcv_score(X[order], labels[order]) == pytest.approx(score)
    assert dbcv_score(np.ldexp(X, -40), labels) == pytest.approx(score)


def test_repeated_rows_and_many_columns_have_a_finite_score():
    wide = np.random.default_rng(0).normal(size=(60, 400)) + np.repeat([[0.0], [3.0]], 30, axis=0)
    assert np.isfinite(dbcv_score(wide, np.repeat([0, 1], 30)))
    equal = np.repeat([[0.0], [5.0]], 10, axis=0)
    assert dbcv_score(equal, np.repeat([0, 1], 10)) == 1


def test_bad_labels_are_rejected():
    with pytest.raises(InputError, match="1 cluster besides noise"):
        dbcv_score(X, np.where(Y == 0, 0, -1))
    with pytest.raises(InputError, match="cluster 7 has one row"):
        dbcv_score(X, np.r_[7, Y[1:]])
    with pytest.raises(ParameterError, match="n_features must be set"):
        dbcv_score(cdist(X, X), Y, metric="precomputed")
