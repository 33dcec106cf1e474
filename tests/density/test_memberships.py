from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from coterie import HDBSCAN
from coterie.datasets import make_moons
from coterie.selection import stability

X = make_blobs(300, centers=[[0, 0], [3, 3], [-4, 4]], cluster_std=[0.4, 0.6, 0.9], random_state=0)[0]


@pytest.fixture(scope="module")
def model():
    return HDBSCAN(12).fit(X)


def test_memberships_of_the_rows_of_the_fit_agree_with_labels_and_probabilities(model):
    memberships = model.predict_proba(X)
    assert memberships.shape == (len(X), model.n_clusters_)
    inside = model.labels_ >= 0
    np.testing.assert_array_equal(memberships[inside].argmax(axis=1), model.labels_[inside])
    np.testing.assert_allclose(memberships[inside].sum(axis=1), model.probabilities_[inside], rtol=1e-9)
    assert (memberships > 0).all()
    assert (memberships.sum(axis=1) <= 1 + 1e-12).all()


def test_noise_has_memberships_that_fall_with_the_distance(model):
    far = np.array([[0.0, -3.0], [0.0, -6.0], [0.0, -60.0]])
    assert model.predict(far).tolist() == [-1, -1, -1]
    total = model.predict_proba(far).sum(axis=1)
    assert total[0] > total[1] > total[2] > 0


def test_a_fit_without_clusters_has_no_memberships():
    assert HDBSCAN(40).fit(X[:50]).predict_proba(X[:5]).shape == (5, 0)


def test_stability_varies_the_minimum_size_of_clusters():
    moons = make_moons(200, noise=0.06, random_state=0)[0]
    result = stability(HDBSCAN(), moons, [3, 12, 90], n_resamples=6, random_state=0)
    assert result.resampling == "subsample"
    assert result.best == 12
    assert result.mean[1] > 0.75
    assert result.mean[2] == 0
