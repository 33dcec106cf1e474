"""The automatic radius of DBSCAN on tables with published labels."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import DBSCAN
from coterie.metrics import adjusted_rand_score
from reference.shared_data import FOLDER, load

SEPARATED = (
    "fcps/chainlink", "fcps/hepta", "fcps/lsun", "graves/line", "graves/ring", "wut/circles",
    "wut/mk4", "wut/stripes", "wut/x1",
)  # fmt: skip
NOISY = ("graves/ring_noisy", "graves/zigzag", "wut/mk1", "fcps/twodiamonds")


def index(name):
    """Adjusted Rand index of the labels with the published ones."""
    X = load(name)
    y = np.loadtxt(FOLDER / f"{name}.labels.csv", delimiter=",", skiprows=1, usecols=0)
    labels = DBSCAN("auto").fit(X).labels_
    assert np.mean(labels == -1) < 0.1
    return adjusted_rand_score(y, labels)


@pytest.mark.parametrize("name", SEPARATED)
def test_separate_clusters_are_found(name):
    assert index(name) > 0.99


@pytest.mark.parametrize("name", NOISY)
def test_clusters_with_noise_are_nearly_found(name):
    assert index(name) > 0.9
