"""Actors of Ray give what threads give, also if one of them ends."""

from __future__ import annotations

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason='ray is not installed: pip install "coterie[ray]"')

import zoo  # noqa: E402
from coterie import GaussianMixture, KMeans  # noqa: E402
from coterie.engines.ray import Ray, RayPlacement  # noqa: E402
from many_parts import many_parts, weights_of_many_digits  # noqa: E402

pytestmark = pytest.mark.slow  # a cluster of Ray takes many seconds to start


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture
def rows(monkeypatch):
    many_parts(monkeypatch, zoo.SMALL)
    return zoo.SMALL


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_actors_have_the_bits_of_threads(rows, init):
    w = weights_of_many_digits(rows)
    here, there = (
        KMeans(5, init=init, random_state=0, engine=engine).fit(rows, sample_weight=w)
        for engine in ("threads", Ray(n_actors=2, n_threads=1))
    )
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    np.testing.assert_array_equal(there.history_, here.history_)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(there.predict(rows), here.labels_)


def test_a_mixture_has_the_bits_of_threads(rows):
    here, there = (
        GaussianMixture(3, init_params="kmeans", random_state=0, engine=engine).fit(rows)
        for engine in ("threads", "ray")
    )
    np.testing.assert_array_equal(there.means_, here.means_)
    assert there.lower_bound_ == here.lower_bound_


def test_an_actor_that_is_killed_changes_no_bit(rows, monkeypatch):
    killed, ask, count = [], RayPlacement.ask, iter(range(10**6))

    def watched(self, order, parts):
        if next(count) in (4, 9) and len(self.actors) > 1:
            killed.append(next(iter(self.actors)))
            ray.kill(self.actors[killed[-1]])
        return ask(self, order, parts)

    monkeypatch.setattr(RayPlacement, "ask", watched)
    engines = ("threads", Ray(n_actors=2, n_threads=1))
    here, there = (KMeans(5, random_state=0, tol=0, engine=engine).fit(rows) for engine in engines)
    assert killed
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    np.testing.assert_array_equal(there.history_, here.history_)


def test_an_error_of_a_step_is_that_of_the_step(rows):
    from coterie.errors import InputError

    with pytest.raises(InputError, match="contains NaN"):
        KMeans(2, engine="ray").fit(np.where(rows > 5, np.nan, rows))
