"""Model-based hierarchical clustering with a Gaussian for each cluster, to initialise EM on few rows."""

import numpy as np

from coterie import interrupts, kernels

RIDGE = 0.3  # scatter that is added to each cluster, as a share of the mean variance; 0.03 to 1 work about as well
RANK = 1e-10  # smallest singular value, relative to the largest, that is not a rounding error of dependent columns


def agglomerate(X: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    r"""Merge, one pair at a time, the clusters whose merge increases the objective least.

    With the scatter :math:`W_k` of a cluster, its weight :math:`n_k`, and :math:`t = \mathrm{tr} W / (n d)` of all
    rows, the objective is the sum over clusters of

    .. math:: n_k \log |(W_k + 0.3 t I) / n_k|

    This is the likelihood of Gaussian clusters [1]_, with a ridge so that it is also defined for clusters of few rows.
    (Fraley [2]_ and mclust add a trace to the determinant instead. The two do not have the same unit: after the scaling
    below, the trace dominates the determinant in clusters of any size, and long clusters are split.)

    Columns are standardised, and rotated to their principal components, each divided by the square root of its singular
    value [3]_. So neither units nor redundant columns matter. Equal rows are merged first. A row of weight 2 is
    equivalent to that row twice.

    Do not use it for many rows: the cost is O(n^2 d^3), and the costs of all pairs are stored.

    Parameters
    ----------
    X : array (n, d)
    w : array (n,), default=None
        Row weights; None means 1 for all.

    Returns
    -------
    array (n - 1, 2)
        The two clusters of each merge. Rows are the clusters 0 to n - 1, and merge i creates cluster n + i.

    References
    ----------
    .. [1] Banfield & Raftery (1993), Model-based Gaussian and non-Gaussian clustering, Biometrics 49.
    .. [2] Fraley (1998), Algorithms for model-based Gaussian hierarchical clustering, SIAM J. Sci. Comput. 20.
    .. [3] Scrucca & Raftery (2015), Improved initialisation of model-based clustering using Gaussian hierarchical
       partitions, Adv. Data Anal. Classif. 9.
    """
    X = np.asarray(X, np.float64)
    n = len(X)
    weight: np.ndarray = np.ones(n) if w is None else np.asarray(w, np.float64)
    weight = np.maximum(weight, 1e-12 * weight.mean())  # rows of weight 0 are leaves of the tree too
    first, group = _distinct(X)
    merges, nodes = [], first.copy()
    for row in np.setdiff1d(np.arange(n), first):
        merges.append((nodes[group[row]], row))
        nodes[group[row]] = n + len(merges) - 1
    if len(first) > 1:
        weight = np.bincount(group, weight)
        clusters = _Clusters(_principal_components(X[first], weight), weight)
        while len(merges) < n - 1:
            interrupts.check()
            i, j = clusters.cheapest_pair()
            clusters.merge(i, j)
            merges.append((nodes[i], nodes[j]))
            nodes[i] = n + len(merges) - 1
    return np.sort(np.array(merges, np.int64).reshape(-1, 2), axis=1)


def cut(merges: np.ndarray, k: int) -> np.ndarray:
    """The labels (n,) of `k` clusters, numbered in the order of their first rows."""
    n = len(merges) + 1
    if not 1 <= k <= n:
        raise ValueError(f"{n} rows can be cut into 1 to {n} clusters; got {k}")
    parents = np.arange(2 * n - 1)
    for step, pair in enumerate(merges[: n - k]):
        parents[pair] = n + step
    for node in range(2 * n - 2, -1, -1):  # from the top, so that the parent of a node already points to its root
        parents[node] = parents[parents[node]]
    _, first, labels = np.unique(parents[:n], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels].astype(np.int32)


class _Clusters:
    """The current clusters, one per index, and the increase of the objective by the merge of each pair."""

    def __init__(self, X: np.ndarray, weight: np.ndarray):
        n, self.d = X.shape
        self.ops = kernels.select("agglomeration", n, self.d)
        squares = weight @ (X - np.average(X, axis=0, weights=weight)) ** 2
        self.ridge = RIDGE * (squares.sum() / (weight.sum() * self.d))
        self.is_active = np.ones(n, bool)
        self.weight, self.mean, self.scatter = weight.copy(), X.copy(), np.zeros((n, self.d, self.d))
        self.term = self._terms_of_pairs(np.zeros(n), weight)
        self.cost = np.empty((n, n))
        for i in range(n):
            both = weight + weight[i]
            trace = weight * weight[i] / both * ((X - X[i]) ** 2).sum(axis=1)
            self.cost[i] = self._terms_of_pairs(trace, both) - self.term - self.term[i]
        np.fill_diagonal(self.cost, np.inf)
        self.nearest = self.cost.argmin(axis=1)
        self.lowest = self.cost.min(axis=1)
        self.is_stale = np.zeros(n, bool)  # `nearest` was merged, so `lowest` is only a lower bound

    def _terms_of_pairs(self, trace: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Terms of the objective for clusters of at most two distinct rows: their scatter has rank 1."""
        log_ridge = np.log(self.ridge)
        return weight * (np.log(self.ridge + trace) + (self.d - 1) * log_ridge - self.d * np.log(weight))

    def cheapest_pair(self) -> tuple[int, int]:
        """The pair with the lowest cost; stale clusters are searched only if their bound is the lowest."""
        while self.is_stale[i := int(self.lowest.argmin())]:
            self.nearest[i] = self.cost[i].argmin()
            self.lowest[i] = self.cost[i, self.nearest[i]]
            self.is_stale[i] = False
        return i, int(self.nearest[i])

    def merge(self, i: int, j: int) -> None:
        """Merge cluster j into cluster i."""
        self.term[i] = self._terms_with(i, np.array([j]))[0]
        weight, dx = self.weight[i] + self.weight[j], self.mean[j] - self.mean[i]
        self.scatter[i] += self.scatter[j] + self.weight[i] * self.weight[j] / weight * np.outer(dx, dx)
        self.mean[i] += self.weight[j] / weight * dx
        self.weight[i] = weight
        self.is_active[j] = False
        self.cost[j] = self.cost[:, j] = self.lowest[j] = np.inf
        others = np.flatnonzero(self.is_active)
        others = others[others != i]
        if len(others) == 0:
            return
        cost = self._terms_with(i, others) - self.term[i] - self.term[others]
        self.cost[i, others] = self.cost[others, i] = cost
        best = int(cost.argmin())
        self.nearest[i], self.lowest[i], self.is_stale[i] = others[best], cost[best], False
        nearest = self.nearest[others]
        self.is_stale[others[(nearest == i) | (nearest == j)]] = True
        is_closer = cost <= self.lowest[others]
        closer = others[is_closer]
        self.nearest[closer], self.lowest[closer], self.is_stale[closer] = i, cost[is_closer], False

    def _terms_with(self, i: int, others: np.ndarray) -> np.ndarray:
        """Terms of the objective for cluster i together with each of the others."""
        return self.ops.union_terms(i, others, self.weight, self.mean, self.scatter, self.ridge)


def _distinct(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the first of each set of equal rows, ascending; and the set of each row (n,)."""
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.sort(first), rank[group.reshape(-1)]


def _principal_components(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Principal components of the standardised columns, each divided by the square root of its singular value."""
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    X = X / np.abs(X).max(axis=0)
    X = X - np.average(X, axis=0, weights=w)
    X /= np.abs(X).max(axis=0)  # otherwise squares of deviations far smaller than the mean could underflow
    X /= np.sqrt(np.average(X**2, axis=0, weights=w))
    _, size, directions = np.linalg.svd(np.sqrt(w)[:, None] * X, full_matrices=False)
    is_significant = size > RANK * size[0]
    return X @ directions[is_significant].T / np.sqrt(size[is_significant])
