"""Actors of Ray give what threads give."""

from __future__ import annotations

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason='ray is not installed: pip install "coterie[ray]"')

from coterie import KMeans  # noqa: E402
from coterie.data import as_source  # noqa: E402
from coterie.engines.ray import Ray  # noqa: E402

# A cluster of Ray takes many seconds to start, and warns about its own future defaults.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_actors_have_the_bits_of_threads():
    X = np.random.default_rng(0).normal(size=(60_000, 8))
    assert len(as_source(X).parts()) >= 3
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        here, there = (
            KMeans(4, random_state=0, tol=1e-2, engine=engine).fit(X)
            for engine in ("threads", Ray(n_actors=2, n_threads=1))
        )
    finally:
        ray.shutdown()
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    np.testing.assert_array_equal(there.history_, here.history_)
    np.testing.assert_array_equal(there.labels_, here.labels_)
