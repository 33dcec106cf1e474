"""`k_means`, `kmeans_plusplus`, and options of `KMeans` for compatibility with scikit-learn."""

import numpy as np
import pytest
from scipy import sparse

from coterie import KMeans
from coterie.datasets import make_blobs
from coterie.errors import InputError
from coterie.kmeans import k_means, kmeans_plusplus

X, _ = make_blobs(200, 3, centers=4, random_state=0)


def test_k_means_is_the_fit_of_kmeans():
    w = np.arange(200.0)
    model = KMeans(4, random_state=0).fit(X, sample_weight=w)
    centers, labels, inertia, n_iter = k_means(X, 4, sample_weight=w, random_state=0, return_n_iter=True)
    np.testing.assert_array_equal(centers, model.cluster_centers_)
    np.testing.assert_array_equal(labels, model.labels_)
    assert (inertia, n_iter) == (model.inertia_, model.n_iter_)
    assert len(k_means(X, 4, random_state=0)) == 3


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_centers_of_kmeans_plusplus_are_rows(form, dtype):
    dense = np.where(X > 0, X, 0).astype(dtype)
    w = np.where(np.arange(200) % 2, 1.0, 0.0)
    for n_local_trials in (None, 1):
        centers, indices = kmeans_plusplus(
            form(dense), 6, sample_weight=w, random_state=1, n_local_trials=n_local_trials
        )
        assert centers.dtype == dtype
        np.testing.assert_array_equal(dense[indices], centers)
        assert (indices % 2 == 1).all()
        assert len(set(indices)) == 6


def test_indices_are_repeated_if_there_are_fewer_distinct_rows():
    centers, indices = kmeans_plusplus(np.repeat([[0.0], [3.0], [9.0]], 5, axis=0), 5, random_state=0)
    assert sorted(set(centers.ravel())) == [0.0, 3.0, 9.0]
    assert (indices // 5 * 3 == np.where(centers.ravel() == 9, 6, centers.ravel())).all()


def test_kmeans_plusplus_of_too_few_rows_is_an_error():
    with pytest.raises(InputError, match="n_samples=2"):
        kmeans_plusplus(X[:2], 3)


def test_elkan_is_another_name_for_bounds():
    first, second = (KMeans(4, algorithm=name, random_state=0).fit(X) for name in ("elkan", "bounds"))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.inertia_ == second.inertia_


def test_initial_centers_with_several_restarts_give_a_warning():
    with pytest.warns(RuntimeWarning, match="n_init=10 has no effect"):
        KMeans(4, init=X[:4], n_init=10, copy_x=False).fit(X)
