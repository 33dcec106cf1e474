"""The tree of bisecting K-means: it grows by splitting a leaf in two, and assigns new rows."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie.base import Summary
from coterie.core import loop
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stored import stored
from coterie.kmeans.lloyd import Lloyd


def _is_ordered(tree: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether the two children of a node follow it with successive indices, so that every path down the tree ends."""
    first, second = tree["children"].T
    is_split, nodes = first >= 0, np.arange(len(first))
    is_after = (first[is_split] > nodes[is_split]).all() and (second[is_split] == first[is_split] + 1).all()
    leaves = tree["clusters"][~is_split]
    is_numbered = (tree["clusters"][is_split] < 0).all() and (np.sort(leaves) == np.arange(len(leaves))).all()
    return bool(is_after and is_numbered and (second[~is_split] < 0).all())


@stored("bisecting.Tree", check=_is_ordered, children="index-<m m 2", centers="real m D", clusters="index-<m m")
class Tree(NamedTuple):
    """All clusters of a bisecting fit. Node 0 has all rows; the two children of a node have successive indices."""

    children: np.ndarray  # (m, 2) children of a node, or -1 for a leaf
    centers: np.ndarray  # (m, d)
    clusters: np.ndarray  # (m,) label of a leaf, or -1 for a node that was split

    def leaves(self) -> np.ndarray:
        """Leaves in the order of their labels."""
        leaves = np.flatnonzero(self.clusters >= 0)
        return leaves[np.argsort(self.clusters[leaves])]

    def first_nodes(self, count: int) -> "tuple[Tree, np.ndarray]":
        """The tree when it had `count` nodes, and for each final cluster its cluster in that tree."""
        children = self.children[:count].copy()
        children[children[:, 0] >= count] = -1
        clusters = np.full(count, -1, np.int32)
        new_labels, stack = np.empty(len(self.leaves()), np.int32), [(0, -1)]
        n_clusters = 0
        while stack:
            node, cluster = stack.pop()
            if cluster < 0 and children[node, 0] < 0:
                cluster = clusters[node] = n_clusters
                n_clusters += 1
            first, second = self.children[node]
            if first < 0:
                new_labels[self.clusters[node]] = cluster
            else:
                stack += [(second, cluster), (first, cluster)]
        return Tree(children, self.centers[:count], clusters), new_labels


@dataclass(frozen=True)
class TreeModel:
    """Predict by a tree of centers: a row goes to the nearer of two children until it reaches a leaf."""

    def assign(self, tree: Tree, chunk: Chunk) -> np.ndarray:
        labels = np.empty(chunk.X.shape[0], np.int32)
        stack = [(0, np.arange(len(labels)))]
        while stack:
            node, rows = stack.pop()
            first = tree.children[node, 0]
            if first < 0 or len(rows) == 0:
                labels[rows] = tree.clusters[node]
                continue
            X = chunk.X if node == 0 else chunk.X[rows]
            is_second = Lloyd(2).assign(tree.centers[first : first + 2], Chunk(X, None, chunk.part)) == 1
            stack += [(first, rows[~is_second]), (first + 1, rows[is_second])]
        return labels

    def distances(self, tree: Tree, chunk: Chunk) -> np.ndarray:
        return Lloyd(1).distances(tree.centers[tree.leaves()], chunk)

    def e_step(self, tree: Tree, chunk: Chunk, memo: None = None) -> tuple[float, None]:
        """Sum of the weighted squared distances to the centers of the leaves."""
        squares = Lloyd(1).assigned_costs(tree.centers[tree.leaves()], chunk, self.assign(tree, chunk))
        return float(squares.sum() if chunk.w is None else chunk.w @ squares), None

    def objective(self, tree: Tree, stats: float) -> float:
        return stats


class Leaf(NamedTuple):
    rank: float  # the leaf with the smallest rank is split first
    node: int  # decides between equal ranks
    rows: np.ndarray | None  # indices of its rows; None for all rows
    weight: float
    cost: float


class Growth:
    """Tree that grows: its nodes, and the leaves that can be split."""

    def __init__(
        self,
        source: Source,
        engine: Engine,
        summary: Summary,
        strategy: str,
        split_leaf: Callable[[Leaf], tuple[loop.Fit, np.ndarray]],
    ):
        self.source, self.engine, self.split_leaf = source, engine, split_leaf
        self.by_weight = strategy == "largest_cluster"
        self.children: list[tuple[int, int]] = []
        self.centers: list[np.ndarray] = []
        self.costs: list[float] = []
        self.rows: list[Any] = []  # of a leaf; None for a node that was split
        self.splits: list[tuple[int, float]] = []  # node that was split, and its cost or weight, which decided
        self.queue: list[Leaf] = []
        self.exhausted, self.converged = False, True
        mean = summary.mean.astype(source.dtype)
        stats, _ = engine.scan(partial(Lloyd(1, bounds=False).e_step, mean[None]), source, None)
        self._add(mean, None, float(stats.weight[0]), float(stats.cost[0]))

    def split(self, minimum: float = 0.0) -> loop.Fit | None:
        """Split the first leaf in rank with a cost (or weight) of at least `minimum`; return None if there is none."""
        while self.queue and -self.queue[0].rank >= minimum:
            leaf = heapq.heappop(self.queue)
            result, is_second = self.split_leaf(leaf)
            if (result.stats.weight > 0).all():  # otherwise all its rows are equal
                self._add_split(leaf, result, is_second)
                self.converged = self.converged and result.converged
                return result
        self.exhausted = not self.queue
        return None

    def _add_split(self, leaf: Leaf, result: loop.Fit, is_second: np.ndarray) -> None:
        self.children[leaf.node] = len(self.children), len(self.children) + 1
        self.splits.append((leaf.node, -leaf.rank))
        for j, mask in enumerate((~is_second, is_second)):
            rows = np.flatnonzero(mask) if leaf.rows is None else leaf.rows[mask]
            self._add(result.params[j], rows, float(result.stats.weight[j]), float(result.stats.cost[j]))
        self.rows[leaf.node] = None

    def cost(self) -> float:
        """Objective of the current leaves."""
        return sum(self.costs[node] for node in self.leaves())

    def leaves(self) -> list[int]:
        """Leaves in the order of the tree, so that leaves of one branch are neighbours."""
        leaves, stack = [], [0]
        while stack:
            node = stack.pop()
            first, second = self.children[node]
            if first < 0:
                leaves.append(node)
            else:
                stack += [second, first]
        return leaves

    def tree(self) -> Tree:
        open_nodes = self.leaves()
        clusters = np.full(len(self.children), -1, np.int32)
        clusters[open_nodes] = np.arange(len(open_nodes))
        return Tree(np.array(self.children, np.int32), np.stack(self.centers), clusters)

    def labels(self, tree: Tree) -> Any:
        """Label of every row. The fit already knows it if the source has memory for labels."""
        parts = self.source.allocate(-1, np.int32)
        if parts[0] is None:
            return self.source.join(self.engine.map(partial(TreeModel().assign, tree), self.source))
        labels = self.source.join(parts)
        for cluster, node in enumerate(tree.leaves()):
            labels[self.rows[node]] = cluster
        return labels

    def _add(self, center: np.ndarray, rows: np.ndarray | None, weight: float, cost: float) -> None:
        node = len(self.children)
        self.children.append((-1, -1))
        self.centers.append(center)
        self.costs.append(cost)
        self.rows.append(slice(None) if rows is None else rows)
        if cost > 0:
            heapq.heappush(self.queue, Leaf(-weight if self.by_weight else -cost, node, rows, weight, cost))
