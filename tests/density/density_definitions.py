"""DBSCAN and HDBSCAN by their definitions: components of thresholded graphs, for a few hundred rows."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist


def core_distances(D, w, min_samples):
    """The smallest radius around each row that contains the weight `min_samples`."""
    core = np.empty(len(D))
    for i, distances in enumerate(D):
        radii = np.unique(distances)
        core[i] = next(radius for radius in radii if w[distances <= radius].sum() >= min_samples - 1e-9)
    return core


def parts(is_edge, rows):
    """Connected components of the rows in a graph."""
    _, label = connected_components(csr_array(is_edge[np.ix_(rows, rows)]), directed=False)
    return [rows[label == j] for j in np.unique(label)]


class Cluster:
    """A cluster of the condensed tree."""

    def __init__(self, rows, birth, parent):
        self.rows, self.birth, self.parent, self.children = rows, birth, parent, []


class Hierarchy:
    """The clusters of all densities: `leaves` has cluster and density of the rows when they leave it."""

    def __init__(self, D, w, min_samples, min_cluster_size):
        self.w, self.min_cluster_size = w, min_cluster_size
        self.core = core_distances(D, w, min_samples)
        self.M = np.maximum(np.maximum(D, self.core), self.core[:, None])
        np.fill_diagonal(self.M, self.core)
        self.leaves = [None] * len(D)
        self.root = Cluster(np.arange(len(D)), 0.0, None)
        self.clusters = [self.root]
        positive = np.unique(self.M[self.M > 0])
        self.lowest = positive[0] if len(positive) else 1.0
        self._grow(self.root, self.root.rows)
        self.death = {cluster: self._death(cluster) for cluster in self.clusters}

    def density(self, height):
        return 1 / (height or self.lowest / 2)

    def _height(self, rows):
        """The lowest height at which the rows are connected, each of them a core row."""
        heights = np.unique(self.M[np.ix_(rows, rows)])
        heights = heights[heights >= self.core[rows].max()]
        return heights[
            bisect_left(range(len(heights)), True, key=lambda i: len(parts(heights[i] >= self.M, rows)) == 1)
        ]

    def _grow(self, cluster, rows):
        height = self._height(rows)
        alive = rows[self.core[rows] < height]
        pieces = list(parts(height > self.M, alive)) if len(alive) else []
        large = [part for part in pieces if self.w[part].sum() >= self.min_cluster_size]
        staying = np.concatenate(large) if large else np.empty(0, int)
        for row in np.setdiff1d(rows, staying):
            self.leaves[row] = cluster, self.density(height)
        if len(large) == 1:
            self._grow(cluster, large[0])
        else:
            for part in large:
                child = Cluster(part, self.density(height), cluster)
                cluster.children.append(child)
                self.clusters.append(child)
                self._grow(child, part)

    def _death(self, cluster):
        of_rows = [density for owner, density in self.leaves if owner is cluster]
        return max([*of_rows, *(child.birth for child in cluster.children)])

    def stability(self, cluster):
        of_rows = sum(self.w[i] * (d - cluster.birth) for i, (owner, d) in enumerate(self.leaves) if owner is cluster)
        return of_rows + sum(self.w[c.rows].sum() * (c.birth - cluster.birth) for c in cluster.children)

    def excess_of_mass(self, cluster=None):
        """Total stability of the best clusters within a cluster, and these clusters."""
        cluster = cluster or self.root
        below = [self.excess_of_mass(child) for child in cluster.children]
        total, chosen = sum(value for value, _ in below), [c for _, selected in below for c in selected]
        own = self.stability(cluster)
        if cluster is self.root or total > own * (1 + 1e-10):
            return total, chosen
        return own, [cluster]

    def labels(self, selected):
        """Labels of the rows, numbered by first rows, their probabilities and outlier scores."""
        owner = np.full(len(self.leaves), -1)
        for j, cluster in enumerate(sorted(selected, key=lambda c: c.rows.min())):
            owner[cluster.rows] = j
        ordered = sorted(selected, key=lambda c: c.rows.min())
        density = np.array([d for _, d in self.leaves])
        limits = np.array([self.death[c] for c in ordered] + [np.inf])
        return owner, np.where(owner >= 0, np.minimum(density / limits[owner], 1), 0)

    def outlier_scores(self):
        def deepest(cluster):
            return max([self.death[cluster], *map(deepest, cluster.children)])

        return np.array([1 - d / deepest(cluster) for cluster, d in self.leaves])


def hdbscan(X, min_cluster_size, min_samples, w=None, metric="euclidean"):
    """Labels, probabilities and outlier scores by excess of mass."""
    D = X if metric == "precomputed" else cdist(X, X, metric)
    tree = Hierarchy(D, np.ones(len(D)) if w is None else w, min_samples, min_cluster_size)
    return *tree.labels(tree.excess_of_mass()[1]), tree.outlier_scores()


def dbscan(X, eps, min_samples, w=None):
    """Labels; border rows are in the cluster with the lowest number."""
    D = cdist(X, X)
    w = np.ones(len(D)) if w is None else w
    core = np.flatnonzero((eps >= D) @ w >= min_samples)
    labels = np.full(len(D), -1)
    for j, part in enumerate(sorted(parts(eps >= D, core), key=min) if len(core) else []):
        labels[part] = j
    for i in np.setdiff1d(np.arange(len(D)), core):
        near = labels[core[D[i, core] <= eps]]
        labels[i] = near.min() if len(near) else -1
    return labels
