"""Hierarchical clustering: estimators, linkage matrices, and functions of dendrograms."""

from coterie.hierarchy.agglomerative import AgglomerativeClustering
from coterie.hierarchy.cophenetic import cophenet, cophenetic_correlation
from coterie.hierarchy.cut import cut, cut_tree, fcluster, inconsistent
from coterie.hierarchy.divisive import DivisiveClustering
from coterie.hierarchy.linkage import linkage
from coterie.hierarchy.optimal_leaf_ordering import optimal_leaf_ordering
from coterie.hierarchy.tree import banner_coefficient, check_tree, leaves_list, to_newick

__all__ = [
    "AgglomerativeClustering",
    "DivisiveClustering",
    "banner_coefficient",
    "check_tree",
    "cophenet",
    "cophenetic_correlation",
    "cut",
    "cut_tree",
    "fcluster",
    "inconsistent",
    "leaves_list",
    "linkage",
    "optimal_leaf_ordering",
    "to_newick",
]
