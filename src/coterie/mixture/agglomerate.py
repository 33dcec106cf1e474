"""A hierarchy of Gaussian clusters, each with a covariance of its own: what EM may start from where rows are few."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie import interrupts

RIDGE = 0.3  # of the variance of all rows, in the scatter of a cluster; 0.03 to 1 serve about as well
RANK = 1e-10  # directions of a smaller share are what rounding left of columns that depend on each other


def agglomerate(X: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    r"""The merges (n - 1, 2) that, one at a time, least increase a sum over clusters, numbered leaf i, then n + step.

    With W_k the scatter of a cluster, n_k its weight and :math:`t = \mathrm{tr} W / (n d)` of all rows, the sum is of

    .. math:: n_k \log |(W_k + 0.3 t I) / n_k|

    the likelihood of Gaussian clusters [1]_, with some scatter that every cluster has to begin with: so it holds for
    clusters of too few rows to span all directions. (Fraley [2]_ and mclust add a trace to the determinant instead.
    The two are not of one unit: after the scaling below the trace outweighs the determinant in clusters of any size,
    and long clusters break up.)

    Rows are rotated to the principal directions of the standardised columns, each divided by the root of its size
    [3]_: neither units nor columns that say the same twice matter. Equal rows are merged before any others, and a row
    of weight two counts as two of them.

    Not for many rows: the costs of all pairs are kept, and each merge takes a determinant a cluster, O(n^2 d^3) in all.

    .. [1] Banfield & Raftery (1993), Model-based Gaussian and non-Gaussian clustering, Biometrics 49.
    .. [2] Fraley (1998), Algorithms for model-based Gaussian hierarchical clustering, SIAM J. Sci. Comput. 20.
    .. [3] Scrucca & Raftery (2015), Improved initialisation of model-based clustering using Gaussian hierarchical
       partitions, Adv. Data Anal. Classif. 9.
    """
    X = np.asarray(X, np.float64)
    n = len(X)
    weight: np.ndarray = np.ones(n) if w is None else np.asarray(w, np.float64)
    weight = np.maximum(weight, 1e-12 * weight.mean())  # a row without weight still has its place in the tree
    first, which = _distinct(X)
    merges, node = [], first.copy()
    for row in np.setdiff1d(np.arange(n), first):
        merges.append((node[which[row]], row))
        node[which[row]] = n + len(merges) - 1
    if len(first) > 1:
        weight = np.bincount(which, weight)
        tree = _Tree(_principal(X[first], weight), weight)
        while len(merges) < n - 1:
            interrupts.check()
            i, j = tree.cheapest()
            tree.merge(i, j)
            merges.append((node[i], node[j]))
            node[i] = n + len(merges) - 1
    return np.sort(np.array(merges, np.int64).reshape(-1, 2), axis=1)


def cut(merges: np.ndarray, k: int) -> np.ndarray:
    """The labels (n,) of `k` clusters, numbered as they appear."""
    n = len(merges) + 1
    if not 1 <= k <= n:
        raise ValueError(f"{n} rows can be cut into 1 to {n} clusters; got {k}")
    above = np.arange(2 * n - 1)
    for step, pair in enumerate(merges[: n - k]):
        above[pair] = n + step
    for node in range(2 * n - 2, -1, -1):  # from the top, so that what is above a node has its root by then
        above[node] = above[above[node]]
    _, first, labels = np.unique(above[:n], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels].astype(np.int32)


class _Criterion(NamedTuple):
    """n log |(W + ridge t I) / n|."""

    d: int
    t: float

    def of_pairs(self, trace: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Of two distinct rows at most: one direction has all their scatter."""
        ridge = RIDGE * self.t
        return weight * (np.log(ridge + trace) + (self.d - 1) * np.log(ridge) - self.d * np.log(weight))

    def of_clusters(self, scatter: np.ndarray, weight: np.ndarray) -> np.ndarray:
        _, log_det = np.linalg.slogdet(scatter + RIDGE * self.t * np.eye(self.d))
        return weight * (log_det - self.d * np.log(weight))


class _Tree:
    """The clusters there are, one a slot, and what it would cost to merge each pair of them."""

    def __init__(self, X: np.ndarray, weight: np.ndarray):
        n, d = X.shape
        t = (weight @ (X - np.average(X, axis=0, weights=weight)) ** 2).sum() / (weight.sum() * d)
        self.criterion = _Criterion(d, t)
        self.live = np.ones(n, bool)
        self.weight, self.mean, self.scatter = weight.copy(), X.copy(), np.zeros((n, d, d))
        self.term = self.criterion.of_pairs(np.zeros(n), weight)
        self.cost = np.empty((n, n))
        for i in range(n):
            both = weight + weight[i]
            trace = weight * weight[i] / both * ((X - X[i]) ** 2).sum(axis=1)
            self.cost[i] = self.criterion.of_pairs(trace, both) - self.term - self.term[i]
        np.fill_diagonal(self.cost, np.inf)
        self.nearest = self.cost.argmin(axis=1)
        self.lowest = self.cost.min(axis=1)
        self.stale = np.zeros(n, bool)  # `nearest` is no more, so `lowest` is only a bound

    def cheapest(self) -> tuple[int, int]:
        """Rows are searched anew only when their bound comes first: most never do before they change again."""
        while self.stale[i := int(self.lowest.argmin())]:
            self.nearest[i] = self.cost[i].argmin()
            self.lowest[i] = self.cost[i, self.nearest[i]]
            self.stale[i] = False
        return i, int(self.nearest[i])

    def merge(self, i: int, j: int) -> None:
        """Cluster j into slot i."""
        mean = self.mean[i] + self.weight[j] / (self.weight[i] + self.weight[j]) * (self.mean[j] - self.mean[i])
        (scatter,), (weight,) = union = self._unions(i, np.array([j]))
        self.term[i] = self.criterion.of_clusters(*union)[0]
        self.scatter[i], self.weight[i], self.mean[i] = scatter, weight, mean
        self.live[j] = False
        self.cost[j] = self.cost[:, j] = self.lowest[j] = np.inf
        others = np.flatnonzero(self.live)
        others = others[others != i]
        if len(others) == 0:
            return
        cost = self.criterion.of_clusters(*self._unions(i, others)) - self.term[i] - self.term[others]
        self.cost[i, others] = self.cost[others, i] = cost
        best = int(cost.argmin())
        self.nearest[i], self.lowest[i], self.stale[i] = others[best], cost[best], False
        near = self.nearest[others]
        self.stale[others[(near == i) | (near == j)]] = True
        closer = cost <= self.lowest[others]
        closest = others[closer]
        self.nearest[closest], self.lowest[closest], self.stale[closest] = i, cost[closer], False

    def _unions(self, i: int, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scatter and weight of cluster i with each of the others."""
        weight = self.weight[i] + self.weight[others]
        dx = self.mean[others] - self.mean[i]
        share = self.weight[i] * self.weight[others] / weight
        scatter = self.scatter[others]
        scatter += self.scatter[i]
        scatter += (share[:, None] * dx)[:, :, None] * dx[:, None, :]
        return scatter, weight


def _distinct(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of each set of equal rows, ascending; and which of these every row (n,) is."""
    _, first, which = np.unique(X, axis=0, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))
    return np.sort(first), place[which.reshape(-1)]


def _principal(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Rows in the principal directions of the standardised columns, each divided by the root of its singular value."""
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    X = X / np.abs(X).max(axis=0)
    X = X - np.average(X, axis=0, weights=w)
    X /= np.abs(X).max(axis=0)  # squares of what is far smaller than the mean would vanish
    X /= np.sqrt(np.average(X**2, axis=0, weights=w))
    _, size, directions = np.linalg.svd(np.sqrt(w)[:, None] * X, full_matrices=False)
    kept = size > RANK * size[0]
    return X @ directions[kept].T / np.sqrt(size[kept])
