"""Hopkins' statistic: whether rows lie closer together than if they were thrown at random."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import beta

Array = np.ndarray[Any, Any]


class Hopkins(NamedTuple):
    """The statistic H, and the chance of one as large where rows are spread evenly."""

    value: float
    p: float
    probes: int


def hopkins(X: Array, rng: np.random.Generator, most: int = 200) -> Hopkins:
    r"""Distances from random places to the nearest row, against those from rows to the nearest other row.

    .. math:: H = \frac{\sum_i u_i^d}{\sum_i u_i^d + \sum_i w_i^d}

    :math:`u_i` starts from one of m places thrown evenly into the box of the rows, :math:`w_i` from one of m rows drawn
    at random, a tenth of all at most, so that they hardly know of each other. If the rows are spread evenly, volumes
    :math:`u^d` and :math:`w^d` are all exponential with one mean, and H is Beta(m, m). Near 1: rows lie together. Near
    0: they keep apart, as on a lattice. One round cloud lies together too: H says nothing of how many clusters there
    are.

    References
    ----------
    .. [1] B. Hopkins, J. G. Skellam (1954), A new method for determining the type of distribution of plant
       individuals, Annals of Botany 18, 213-227.
    """
    n, d = X.shape
    m = max(1, min(most, n // 10))
    low, high = X.min(axis=0), X.max(axis=0)
    places = rng.uniform(low, high, (m, d))
    tree = cKDTree(X)
    u = tree.query(places)[0]
    w = tree.query(X[rng.choice(n, m, replace=False)], k=2)[0][:, 1]
    largest = max(u.max(), w.max())
    if largest == 0:
        return Hopkins(1.0, 0.0, m)
    volume_u, volume_w = ((u / largest) ** d).sum(), ((w / largest) ** d).sum()
    value = float(volume_u / (volume_u + volume_w))
    return Hopkins(value, float(beta.sf(value, m, m)), m)
