"""Every model, engine and kernel module, one line each; the laws run over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from coterie.engines.local import Serial, Threads
from coterie.kmeans.lloyd import Lloyd

rng = np.random.default_rng(0)


def blobs(n, d, k, spread=3.0, dtype=np.float64):
    centers = rng.normal(size=(k, d)) * spread
    return (centers[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)


SMALL = blobs(1200, 3, 3, spread=6.0)  # NumPy kernels
LARGE = blobs(6000, 30, 20, spread=0.5)  # compiled kernels, in parts of 1500 rows
COUNTS = sparse.random_array((4000, 60), density=0.1, rng=rng, format="csr") * 10.0

# model, rows, rows of a part
MODELS = [
    pytest.param(Lloyd(3), SMALL, 100, id="kmeans-small"),
    pytest.param(Lloyd(20, bounds=False), LARGE, 1500, id="kmeans"),
    pytest.param(Lloyd(20), LARGE, 1500, id="kmeans-bounds"),
    pytest.param(Lloyd(20), LARGE.astype(np.float32), 1500, id="kmeans-bounds-float32"),
    pytest.param(Lloyd(4), LARGE.astype(np.float32), 1500, id="kmeans-few-clusters"),
    pytest.param(Lloyd(5), LARGE[:, :2].copy(), 6000, id="kmeans-few-columns"),
    pytest.param(Lloyd(6), COUNTS, 1000, id="kmeans-sparse"),
    pytest.param(Lloyd(8, "forgy"), SMALL, 100, id="kmeans-forgy"),
    pytest.param(Lloyd(8, "random_partition"), LARGE, 1500, id="kmeans-random-partition"),
    pytest.param(Lloyd(8, "farthest"), LARGE, 1500, id="kmeans-farthest"),
]

ENGINES = [
    pytest.param(Serial(), id="serial"),
    pytest.param(Threads(1), id="1-thread"),
    pytest.param(Threads(2), id="2-threads"),
    pytest.param(Threads(3), id="3-threads"),
    pytest.param(Threads(8), id="8-threads"),
]
