"""Hierarchical clustering: estimators, linkage matrices, and functions of dendrograms."""

from __future__ import annotations

from coterie.hierarchy.agglomerative import AgglomerativeClustering
from coterie.hierarchy.banner_coefficient import banner_coefficient
from coterie.hierarchy.cophenetic import cophenet, cophenetic_correlation
from coterie.hierarchy.cut import cut, inconsistent
from coterie.hierarchy.divisive import DivisiveClustering
from coterie.hierarchy.leaf_order import leaf_order
from coterie.hierarchy.linkage import linkage
from coterie.hierarchy.newick import to_newick
from coterie.hierarchy.tree import check_tree, leaves

__all__ = [
    "AgglomerativeClustering",
    "DivisiveClustering",
    "banner_coefficient",
    "check_tree",
    "cophenet",
    "cophenetic_correlation",
    "cut",
    "inconsistent",
    "leaf_order",
    "leaves",
    "linkage",
    "to_newick",
]
