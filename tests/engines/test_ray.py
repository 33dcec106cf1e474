"""Actors of Ray give what threads give, also if an actor is killed."""

from __future__ import annotations

import os
import signal

import numpy as np
import polars as pl
import pytest

ray = pytest.importorskip("ray", reason='ray is not installed: pip install "coterie[ray]"')

from coterie import KMeans  # noqa: E402
from coterie.data import as_source, scan_files  # noqa: E402
from coterie.engines.ray import Ray, RayPlacement  # noqa: E402

# A cluster of Ray takes many seconds to start, and warns about its own future defaults.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

X = np.random.default_rng(0).normal(size=(60_000, 8))


@pytest.fixture(scope="module")
def cluster():
    assert len(as_source(X).parts()) >= 3
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def expected():
    return model("threads").fit(X)


def model(engine):
    return KMeans(4, init="k-means||", random_state=0, tol=1e-3, engine=engine)


def assert_same(there, here):
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    np.testing.assert_array_equal(there.history_, here.history_)
    np.testing.assert_array_equal(there.labels_, here.labels_)


@pytest.fixture
def kill_before(monkeypatch):
    """Kill the process of an actor before the passes with these numbers."""
    numbers, count, ask = set(), iter(range(10**6)), RayPlacement.ask

    def watched(self, order, parts):
        if next(count) in numbers:
            actor = self.actors[next(iter(parts))]
            os.kill(ray.get(actor.process.remote()), signal.SIGKILL)
        return ask(self, order, parts)

    monkeypatch.setattr(RayPlacement, "ask", watched)
    return numbers


def test_actors_have_the_bits_of_threads(cluster, expected):
    assert_same(model(Ray(n_actors=2, n_threads=1)).fit(X), expected)


def test_actors_that_read_files_have_the_bits_of_threads(cluster, expected, tmp_path):
    for i in range(3):
        pl.DataFrame(X[i * 20_000 : (i + 1) * 20_000], schema=list("abcdefgh")).write_parquet(tmp_path / f"{i}.parquet")
    assert_same(model(Ray(n_actors=2, n_threads=1)).fit(scan_files(tmp_path, cache="none")), expected)


@pytest.mark.parametrize("numbers", [{0}, {3}, {9}, {2, 8, 11}], ids=str)
def test_an_actor_that_is_killed_changes_no_bit(cluster, expected, kill_before, numbers):
    kill_before.update(numbers)
    assert_same(model(Ray(n_actors=2, n_threads=1)).fit(X), expected)


def test_the_only_actor_is_replaced(cluster, expected, kill_before):
    kill_before.add(4)
    assert_same(model(Ray(n_actors=1, n_threads=1)).fit(X), expected)
