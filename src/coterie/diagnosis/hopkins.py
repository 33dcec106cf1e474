"""The Hopkins statistic: whether rows are more clustered than uniform random points."""

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import beta


class Hopkins(NamedTuple):
    """The statistic H, and the probability that it is at least as large for uniform rows."""

    value: float
    p: float
    probes: int


def hopkins(X: np.ndarray, rng: np.random.Generator, max_probes: int = 200) -> Hopkins:
    r"""Compare distances from random places to the nearest row with distances from rows to the nearest other row.

    .. math:: H = \frac{\sum_i u_i^d}{\sum_i u_i^d + \sum_i w_i^d}

    :math:`u_i` is the distance from one of m uniform random places in the bounding box to the nearest row,
    :math:`w_i` the distance from one of m random rows to the nearest other row. At most a tenth of the rows is used,
    so that the distances are nearly independent. For uniform rows, the volumes :math:`u^d` and :math:`w^d` are all
    exponential with the same mean, and H is Beta(m, m). H is near 1 if the rows are clustered, and near 0 if they are
    regular, as on a lattice. A single round cluster also has H near 1: H does not show how many clusters there are.

    References
    ----------
    .. [1] B. Hopkins, J. G. Skellam (1954), A new method for determining the type of distribution of plant
       individuals, Annals of Botany 18, 213-227.
    """
    n, d = X.shape
    m = max(1, min(max_probes, n // 10))
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
