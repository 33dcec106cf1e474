"""Condensed trees: which rows leave which cluster as the density rises, and where clusters are split."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.arrays import Array
from coterie.core.repr_html import ReprHTMLMixin
from coterie.core.stored import stored

RELATIVE_ZERO = 2.0**-500  # heights below this share of the largest one count as zero


def _is_consistent(tree: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether parents come before their children, and rows leave clusters that exist."""
    parent = tree["cluster_parent"]
    k = len(parent)
    return bool(
        k > 0
        and parent[0] == 0
        and (parent[1:] < np.arange(1, k)).all()
        and (tree["row_cluster"] < k).all()
        and (tree["row_lambda"] >= 0).all()
        and (tree["cluster_lambda"] >= 0).all()
    )


@stored(
    "density.CondensedTree",
    check=_is_consistent,
    row_cluster="index m",
    row_lambda="real m",
    row_weight="real m",
    cluster_parent="index<c c",
    cluster_lambda="real c",
    cluster_size="real c",
)
@dataclass(frozen=True, repr=False)
class CondensedTree(ReprHTMLMixin):
    r"""The clusters of all densities :math:`\lambda = 1 / \text{distance}`, and the rows that leave them.

    Cluster 0 is the root: all rows, at density 0. As the density rises, a cluster loses rows, and is split where at
    least two parts have `min_cluster_size` rows. Rows are those of positive weight, in the order of `X`.

    Attributes
    ----------
    row_cluster : array (n,)
        The cluster that each row leaves last.
    row_lambda : array (n,)
        The density at which it leaves.
    row_weight : array (n,)
        Weights of the rows.
    cluster_parent : array (k,)
        The cluster of which each cluster is a part; that of the root is 0.
    cluster_lambda : array (k,)
        The density at which each cluster is split off its parent; 0 for the root.
    cluster_size : array (k,)
        Weight of each cluster at that density.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import HDBSCAN
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [9.0]])
    >>> tree = HDBSCAN(min_cluster_size=3, min_samples=2).fit(X).condensed_tree_
    >>> tree.cluster_size.tolist()
    [7.0, 4.0, 3.0]
    >>> tree.to_numpy().dtype.names
    ('parent', 'child', 'lambda_val', 'child_size')
    """

    row_cluster: Array
    row_lambda: Array
    row_weight: Array
    cluster_parent: Array
    cluster_lambda: Array
    cluster_size: Array

    def to_numpy(self) -> Array:
        """Edges of the tree as a structured array, in the format of the package hdbscan.

        Children 0 to n - 1 are rows, and n + c is cluster c.
        """
        n, k = len(self.row_cluster), len(self.cluster_parent)
        kinds = [("parent", np.int64), ("child", np.int64), ("lambda_val", np.float64), ("child_size", np.float64)]
        edges = np.empty(n + k - 1, kinds)
        edges["parent"] = n + np.concatenate([self.cluster_parent[1:], self.row_cluster])
        edges["child"] = np.concatenate([np.arange(n + 1, n + k), np.arange(n)])
        edges["lambda_val"] = np.concatenate([self.cluster_lambda[1:], self.row_lambda])
        edges["child_size"] = np.concatenate([self.cluster_size[1:], self.row_weight])
        return edges

    def deaths(self) -> Array:
        """The highest density at which rows or clusters leave each cluster (k,); descendants do not count."""
        death = np.zeros(len(self.cluster_parent))
        np.maximum.at(death, self.row_cluster, self.row_lambda)
        np.maximum.at(death, self.cluster_parent[1:], self.cluster_lambda[1:])
        return death

    def stabilities(self) -> Array:
        r"""Excess of mass of each cluster (k,): :math:`\sum_i w_i (\lambda_i - \lambda_{birth})` over its rows.

        It is in units of the highest density of the tree.
        """
        k, highest = len(self.cluster_parent), self.row_lambda.max()
        birth = self.cluster_lambda / highest
        lived = self.row_lambda / highest - birth[self.row_cluster]
        of_rows = np.bincount(self.row_cluster, self.row_weight * lived, k)
        of_children = (birth - birth[self.cluster_parent])[1:] * self.cluster_size[1:]
        return of_rows + np.bincount(self.cluster_parent[1:], of_children, k)

    def outlier_scores(self, cluster: Array | None = None, density: Array | None = None) -> Array:
        """GLOSH scores of the rows, or of others that leave a cluster at a density (m,).

        A score is 1 minus the density of the row over the highest density within its cluster.
        """
        if cluster is None or density is None:
            cluster, density = self.row_cluster, self.row_lambda
        highest = -self._kernel.subtree_minima(self.cluster_parent, -self.deaths())[cluster]
        scores: Array = 1 - np.divide(density, highest, out=np.ones(len(highest)), where=highest > 0)
        return scores

    @property
    def _kernel(self) -> Any:
        return kernels.select("condensed_tree", len(self.row_cluster))

    def __str__(self) -> str:
        n, k = len(self.row_cluster), len(self.cluster_parent)
        leaves = k - len(np.unique(self.cluster_parent[1:]))
        return f"CondensedTree: {n} rows, {k} clusters, {leaves} of them leaves"


def condense(Z: Array, core: Array, weight: Array, min_cluster_size: float) -> CondensedTree:
    """Condense the single linkage tree `Z` (n - 1, 4) of rows with these core distances and weights (n,).

    A distance of 0 counts as half of the smallest positive distance, so that densities are finite.
    """
    left, right = Z[:, 0].astype(np.int64), Z[:, 1].astype(np.int64)
    largest = float(Z[:, 2].max(initial=core.max(initial=0.0)))
    exponent = int(np.frexp(largest)[1])
    height, core = (_without_tiny(np.ldexp(values, -exponent)) for values in (Z[:, 2], core))
    kernel = kernels.select("condensed_tree", len(weight))
    row_cluster, row_height, parent, birth, size = kernel.condense(left, right, height, weight, core, min_cluster_size)
    lowest = min(row_height[row_height > 0].min(initial=1.0), birth[birth > 0].min(initial=1.0))
    row_lambda, cluster_lambda = (_densities(heights, lowest, exponent) for heights in (row_height, birth))
    return CondensedTree(row_cluster, row_lambda, weight, parent, cluster_lambda, size)


def _densities(heights: Array, lowest: float, exponent: int) -> Array:
    """Densities of heights that were divided by 2^exponent; `lowest` is the smallest positive one."""
    with np.errstate(over="ignore"):
        values: Array = np.ldexp(1 / np.where(heights > 0, heights, lowest / 2), -exponent)
    return np.minimum(values, np.finfo(np.float64).max)


def _without_tiny(heights: Array) -> Array:
    return np.where(heights < RELATIVE_ZERO, 0.0, heights)
