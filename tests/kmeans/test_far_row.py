"""One row far from two clusters: it does not get its own center if distances are not squared."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import FuzzyCMeans, KMeans, KMedians, KMedoids
from coterie.selection import sweep

rng = np.random.default_rng(0)
TWO = np.concatenate([rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 9])
X = np.concatenate([TWO, [[300.0, 300.0]]])
TRUTH = np.repeat([0, 1], [100, 101])


def cost(estimator):
    return estimator.objective_ if hasattr(estimator, "objective_") else estimator.inertia_


def of_two_clusters(estimator):
    """Cost of the two clusters, with the far row in the nearer one."""
    if isinstance(estimator, KMedoids):
        D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
        return sum(D[np.ix_(j == TRUTH, j == TRUTH)].sum(axis=0).min() for j in (0, 1))
    start = np.array([np.median(X[j == TRUTH], axis=0) for j in (0, 1)])
    return cost(type(estimator)(2, metric=estimator.metric, init=start).fit(X))


UNSQUARED = [
    KMedians(2),
    KMedians(2, n_init=50),
    KMedians(2, metric="l2"),
    KMedians(2, init="k-means||", n_init=8),
    KMedoids(2),
    KMedoids(2, init="k-medoids++", n_init=8),
]


@pytest.mark.parametrize("estimator", UNSQUARED, ids=str)
def test_a_far_row_takes_no_center_where_two_clusters_cost_less(estimator):
    for seed in range(2):
        estimator.set_params(random_state=seed).fit(X)
        assert cost(estimator) <= (1 + 1e-4) * of_two_clusters(estimator)
        assert len({*estimator.labels_[:100]}) == len({*estimator.labels_[100:]}) == 1


@pytest.mark.parametrize("estimator", [KMeans(2, n_init=5), FuzzyCMeans(2)], ids=str)
def test_a_far_row_takes_a_center_where_squares_are_minimised(estimator):
    """Its square is more than those of all other rows together."""
    labels = estimator.set_params(random_state=0).fit(X).labels_
    assert np.count_nonzero(labels == labels[-1]) == 1


def test_a_sweep_seeds_k_medians_by_its_own_cost():
    found = sweep(KMedians(random_state=0), X, [1, 2])
    assert found.objectives[-1] <= (1 + 1e-4) * of_two_clusters(KMedians(2))
