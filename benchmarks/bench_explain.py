"""Threshold trees and rules that describe K-means clusters of real tables: cost ratio, F1 and length.

The cost ratio is the K-means cost of the leaves over that of the clusters, on standardised columns. F1 is the mean over
clusters of the harmonic mean of coverage and precision, length the mean number of bounds in the rule of a cluster.
ExKMC and ShallowTree (ExShallow) get the same clusters; they have no common measure of the length of a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import coterie
from benchmarks.choose_k_tables import SHARED, shared_rows, standardised
from benchmarks.harness import Options, main
from benchmarks.report import Result, Table
from coterie.explanation import cost_ratio
from coterie.explanation.columns import as_columns
from coterie.explanation.cost_ratio import Cut, Node, Rows, cheapest_cut, grow, leaves, tree_of_clusters
from coterie.explanation.explain import search_sample
from coterie.explanation.rule_search import binned

TABLES = {
    "r/iris": 3, "uci/wine": 3, "sklearn/breast_cancer": 2, "uci/ecoli": 8, "mssc/seeds": 3,
    "mssc/image_segmentation": 7, "mssc/pima": 4, "mssc/letter": 26, "r/USArrests": 4,
}  # fmt: skip
N_QUICK = 2
NOT_INSTALLED = "not installed"


@dataclass(frozen=True)
class Description:
    """How well leaves or rules describe clusters."""

    ratio: float | None
    f1: float
    length: float | None

    def __str__(self) -> str:
        parts = [None if self.ratio is None else f"{self.ratio:.2f}", f"{self.f1:.2f}"]
        parts.append(None if self.length is None else f"{self.length:.1f}")
        return ", ".join(part for part in parts if part is not None)


def fewest_mistakes(data: Rows, rows: np.ndarray, centers: np.ndarray) -> Cut | None:
    """The cut of Dasgupta et al. (2020): it separates the fewest rows from their center."""
    rows = rows[np.isin(data.codes[rows], centers)]
    best: Cut | None = None
    for j, column in enumerate(data.columns):
        positions = data.center_bins[centers, j]
        of_center = data.center_bins[data.codes[rows], j]
        for edge in range(int(positions.min()), int(positions.max())):
            mistakes = float(np.count_nonzero((column.codes[rows] <= edge) != (of_center <= edge)))
            if best is None or mistakes < best.cost:
                is_left = np.zeros(data.distances.shape[1], bool)
                is_left[centers] = positions <= edge
                best = Cut(j, edge, mistakes, is_left)
    return best


def described_by_tree(X: np.ndarray, labels: np.ndarray, find_cut: Callable[..., Cut | None]) -> Description:
    """The tree of one leaf for each cluster that is grown with these cuts."""
    k = int(labels.max()) + 1
    rows, w = search_sample(labels, None, X.shape[1])
    codes, sample = labels[rows], as_columns(X).sample(rows)
    columns = [each for each in (binned(column, codes, k) for column in sample) if each.bins > 1]
    data: list[Rows] = []

    def recording(rows_of_tree: Rows, *node: np.ndarray) -> Cut | None:
        data[:] = [rows_of_tree]
        return find_cut(rows_of_tree, *node)

    with patch.object(cost_ratio, "cheapest_cut", recording):
        ratio, _ = tree_of_clusters(sample, columns, codes, w, [str(j) for j in range(k)])
        tree = grow(data[0])
    lengths = [len(bounds) for bounds in paths(tree, frozenset())]
    return Description(ratio, mean_f1(data[0].codes, leaves(data[0], tree)), float(np.mean(lengths)))


def paths(node: Node, bounds: frozenset[tuple[int, bool]]) -> Iterator[frozenset[tuple[int, bool]]]:
    """The bounds on the way to each leaf; of two bounds of the same side of a column, one counts."""
    if node.cut is None or node.left is None or node.right is None:
        yield bounds
        return
    yield from paths(node.left, bounds | {(node.cut.column, False)})
    yield from paths(node.right, bounds | {(node.cut.column, True)})


def mean_f1(labels: np.ndarray, leaf: np.ndarray) -> float:
    """Mean over clusters of the harmonic mean of coverage and precision of the leaf with its number."""
    values = []
    for j in np.unique(labels):
        correct = np.count_nonzero((labels == j) & (leaf == j))
        values.append(2 * correct / (np.count_nonzero(labels == j) + np.count_nonzero(leaf == j)))
    return float(np.mean(values))


def described_by_rules(X: np.ndarray, labels: np.ndarray) -> Description:
    """The rules of `coterie.explain`; a cluster without a rule has an F1 of 0."""
    rules = coterie.explain(labels, X).rules
    f1 = [2 * r.coverage * r.precision / max(r.coverage + r.precision, 1e-12) if r.conditions else 0.0 for r in rules]
    lengths = [sum(_bounds(condition) for condition in r.conditions) for r in rules if r.conditions]
    return Description(None, float(np.mean(f1)), float(np.mean(lengths)))


def _bounds(condition: Any) -> int:
    return 1 if condition.values else (condition.lower is not None) + (condition.upper is not None)


def described_by_peer(package: str, P: np.ndarray, labels: np.ndarray) -> str:
    """The tree of another package for the same clusters of the standardised rows."""
    try:
        leaf = PEERS[package](P, labels)
    except ModuleNotFoundError:
        return NOT_INSTALLED
    ratio = cost(P, leaf) / cost(P, labels)
    return str(Description(ratio, mean_f1(labels, leaf), None))


def cost(P: np.ndarray, labels: np.ndarray) -> float:
    return float(sum(((P[labels == j] - P[labels == j].mean(axis=0)) ** 2).sum() for j in np.unique(labels)))


def exkmc(P: np.ndarray, labels: np.ndarray) -> np.ndarray:
    from ExKMC.Tree import Tree  # type: ignore[import-not-found]

    k = int(labels.max()) + 1
    return np.asarray(Tree(k=k).fit(P, kmeans=_model(P, labels)).predict(P))


def shallow(P: np.ndarray, labels: np.ndarray) -> np.ndarray:
    from ShallowTree.ShallowTree import ShallowTree  # type: ignore[import-not-found]

    model = _model(P, labels)
    tree = ShallowTree(model.n_clusters)
    tree.fit(P, model.cluster_centers_)
    return np.asarray(tree.predict(P))


def _model(P: np.ndarray, labels: np.ndarray) -> Any:
    """scikit-learn's K-means with these clusters."""
    from sklearn.cluster import KMeans

    centers = np.stack([P[labels == j].mean(axis=0) for j in range(int(labels.max()) + 1)])
    return KMeans(len(centers), init=centers, n_init=1, max_iter=1).fit(P)


PEERS = {"ExKMC": exkmc, "ShallowTree": shallow}


def run(options: Options) -> Result:
    rows = []
    for name, k in list(TABLES.items())[: N_QUICK if options.quick else None] if SHARED.is_dir() else ():
        X = shared_rows(name)
        P = standardised(X)
        labels = coterie.KMeans(k, n_init=10, random_state=0).fit(P).labels_
        trees = [described_by_tree(X, labels, find_cut) for find_cut in (fewest_mistakes, cheapest_cut)]
        peers = [described_by_peer(package, P, labels) for package in PEERS]
        rows.append([name, str(k), *map(str, trees), *peers, str(described_by_rules(X, labels))])
    header = ["table", "K", "IMM: ratio, F1, length", "greedy: ratio, F1, length"]
    header += [*(f"{package}: ratio, F1" for package in PEERS), "rules: F1, length"]
    return Result([Table("Descriptions of K-means clusters", header, rows)])


if __name__ == "__main__":
    main("explain", run)
