"""The figures of a report about density-based clusters: reachability plot and condensed tree."""

from itertools import pairwise
from typing import Any

import numpy as np

from coterie.report.html.report import DensityTree

BINS = 400  # of the reachability plot
BOXES = 60  # clusters of the condensed tree that are drawn


def density_tree(model: Any, names: list[str]) -> DensityTree | None:
    """The data of the figures; None for models without a condensed tree."""
    tree = getattr(model, "condensed_tree_", None)
    if tree is None or len(tree.row_cluster) < 2:
        return None
    order = model.ordering_
    reach, labels = model.reachability_[order], model.labels_[order]
    reach[0] = reach[1:].max()
    edges = np.unique(np.linspace(0, len(order), min(BINS, len(order)) + 1).astype(int))
    heights = np.maximum.reduceat(reach, edges[:-1])
    bins = [np.bincount(labels[a:b] + 1).argmax() - 1 for a, b in pairwise(edges)]
    return DensityTree(names, edges.tolist(), heights.tolist(), [int(each) for each in bins], _boxes(model, order))


def _boxes(model: Any, order: Any) -> list[tuple[int, int, float, float, int]]:
    """First and last position, densities of birth and death, and label (-1: not selected) of the largest clusters."""
    tree, k = model.condensed_tree_, len(model.condensed_tree_.cluster_parent)
    position = np.empty(len(model.labels_), int)
    position[order] = np.arange(len(order))
    rows = np.sort(order)
    first, last = np.full(k, len(order)), np.zeros(k, int)
    np.minimum.at(first, tree.row_cluster, position[rows])
    np.maximum.at(last, tree.row_cluster, position[rows])
    for c in range(k - 1, 0, -1):
        up = tree.cluster_parent[c]
        first[up], last[up] = min(first[up], first[c]), max(last[up], last[c])
    label = np.full(k, -1)
    label[model._clusters] = np.arange(len(model._clusters))
    largest = np.sort(np.argsort(-tree.cluster_size, kind="stable")[:BOXES])
    death = tree.deaths()
    return [
        (int(first[c]), int(last[c]) + 1, float(tree.cluster_lambda[c]), float(death[c]), int(label[c]))
        for c in largest
    ]
