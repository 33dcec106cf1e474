from __future__ import annotations

import numpy as np

from coterie.core import online
from coterie.core.protocols import Chunk
from coterie.kmeans.lloyd import Lloyd

X = np.random.default_rng(0).normal(size=(300, 2))


def run(decay):
    state = online.State(X[:2].copy())
    for part in np.split(X, 3):
        state, _ = online.step(Lloyd(2), state, Chunk(part, None, 0), decay)
    return state


def test_without_decay_every_row_weighs_the_same():
    """A center is the mean of all rows that were assigned to it so far."""
    centers, total, count = X[:2].copy(), np.zeros((2, 2)), np.zeros(2)
    for part in np.split(X, 3):
        labels = ((part[:, None] - centers) ** 2).sum(-1).argmin(1)
        for j in range(2):
            total[j] += part[labels == j].sum(0)
            count[j] += (labels == j).sum()
        centers = total / count[:, None]
    np.testing.assert_allclose(run(1.0).params, centers, rtol=1e-12)


def test_with_full_decay_only_the_last_batch_counts():
    state = run(0.0)
    last = X[200:]
    before = run_until_last()
    labels = ((last[:, None] - before) ** 2).sum(-1).argmin(1)
    np.testing.assert_allclose(state.params, [last[labels == j].mean(0) for j in range(2)], rtol=1e-12)


def run_until_last():
    state = online.State(X[:2].copy())
    for part in np.split(X, 3)[:2]:
        state, _ = online.step(Lloyd(2), state, Chunk(part, None, 0), 0.0)
    return state.params
