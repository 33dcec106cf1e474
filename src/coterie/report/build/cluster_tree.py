"""The trees of a report: of the rows, of the centers of clusters, or of density-based clusters."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.protocols import parameters_of
from coterie.hierarchy import linkage
from coterie.hierarchy.cut import cut
from coterie.plots import CondensedTreeDisplay, DendrogramDisplay, ReachabilityDisplay
from coterie.report.html.report import Absent, Tree

MAX_LEAVES = 60  # of a tree of centers

Codes = NDArray[np.integer]
RowNames = Callable[[Sequence[int]], list[str]]  # names of some of the rows that are used


def cluster_tree(model: Any, means: NDArray[Any], codes: Codes, names: list[str], row_names: RowNames) -> Tree | Absent:
    if len(names) < 2:
        return Absent("One cluster has no neighbours.")
    Z = getattr(model, "linkage_matrix_", None)
    if Z is not None and len(Z):
        return _tree_of_rows(model, np.asarray(Z), codes, names, row_names)
    return _tree_of_centers(means, codes, names)


def _tree_of_rows(model: Any, Z: NDArray[Any], codes: Codes, names: list[str], row_names: RowNames) -> Tree:
    n = len(Z) + 1
    labels = codes if n == len(codes) else np.asarray(model.labels_)
    leaves = row_names(range(n)) if n == len(codes) else None
    display = DendrogramDisplay.from_result(Z, n_clusters=len(names), names=leaves)
    label_of_cut = np.full(len(names) + 1, -1)
    if len(labels) == n:
        label_of_cut[cut(Z, n_clusters=len(names))] = labels
    display = replace(display, cluster=label_of_cut[display.cluster], leaf_cluster=label_of_cut[display.leaf_cluster])
    method = f"{model.linkage} linkage" if "linkage" in parameters_of(model) else "divisive clustering"
    return Tree(display, False, method, names)


def _tree_of_centers(means: NDArray[Any], codes: Codes, names: list[str]) -> Tree:
    k = len(names)
    sizes = np.bincount(codes, minlength=k)
    Z = linkage(means, "ward", sample_weight=sizes.astype(np.float64))
    if k > MAX_LEAVES:
        display = DendrogramDisplay.from_result(Z, merges=MAX_LEAVES - 1, names=names)
    else:
        display = DendrogramDisplay.from_result(Z, names=names, merges=k - 1)
        leaves = np.array([names.index(name) for name in display.leaves])
        display = replace(display, sizes=sizes[leaves], leaf_cluster=leaves)
    return Tree(display, True, "Ward's tree", names)


def density_trees(model: Any) -> tuple[ReachabilityDisplay, CondensedTreeDisplay] | None:
    """Reachability plot and condensed tree of density-based clusters; None for models without a condensed tree."""
    tree = getattr(model, "condensed_tree_", None)
    if tree is None or len(tree.row_cluster) < 2:
        return None
    return ReachabilityDisplay.from_estimator(model), CondensedTreeDisplay.from_estimator(model)
