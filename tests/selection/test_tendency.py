import numpy as np
import pytest
from scipy import stats

from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.selection import Tendency, tendency


def blobs(n=200):
    return make_blobs(n, 2, centers=3, cluster_std=0.3, random_state=0)[0]


def test_false_alarms_are_as_rare_as_they_should_be():
    """At 1 % each, three of forty would be a wonder of 1 in 130."""
    rng = np.random.default_rng(0)
    tables = [rng.uniform(size=(120, 2)) for _ in range(20)] + [rng.normal(size=(120, 3)) for _ in range(20)]
    alarms = sum(tendency(X, (2, 3, 5), n_references=10, random_state=i).clustered for i, X in enumerate(tables))
    assert alarms <= 2


def test_clusters_are_seen():
    found = tendency(blobs(), random_state=0)
    assert found.clustered
    assert found.p_value < 1e-6
    assert found.best > found.by_chance[0]


def test_the_p_value_is_that_of_one_more_draw():
    even, normal = np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.05, 0.1])
    found = Tendency(np.array([2, 3]), np.array([0.5, 0.6]), even, normal)
    z = (0.6 - 0.2) / (0.1 * np.sqrt(4 / 3))
    assert found.p_value == pytest.approx(stats.t.sf(z, 2))
    assert found.by_chance == pytest.approx((0.2, 0.1))


def test_references_that_are_all_alike_are_beaten_or_not():
    alike = np.full(3, 0.25)
    assert Tendency(np.array([2]), np.array([0.3]), alike, alike).p_value == 0
    assert Tendency(np.array([2]), np.array([0.25]), alike, alike).p_value == 1


def test_threads_change_nothing():
    one, three = (tendency(blobs(), (2, 3), n_references=4, n_jobs=n, random_state=1) for n in (1, 3))
    np.testing.assert_array_equal(one.even, three.even)
    np.testing.assert_array_equal(one.normal, three.normal)


def test_references_lie_as_the_data_do():
    """Columns that depend on each other: a box along the columns would split otherwise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 1)) * [3.0, 3.0] + rng.normal(0, 0.2, (300, 2))
    assert not tendency(X, random_state=0).clustered


def test_progress_ends_it_with_two_of_each_kind():
    found = tendency(blobs(), (2,), callback=lambda step: True, random_state=0)
    assert (len(found.even), len(found.normal)) == (2, 2)


def test_bad_input():
    with pytest.raises(InputError, match="2 distinct rows"):
        tendency(np.repeat([[0.0], [1.0]], 5, axis=0))
    with pytest.raises(ParameterError, match="n_references must be a whole number of at least 2"):
        tendency(blobs(), n_references=1)
