"""Condensed trees of density-based clusters: the loops of `kernels.plain.condensed_tree`, compiled."""

from coterie.kernels.cpu.jit import jit
from coterie.kernels.plain import condensed_tree as plain

condense = jit(plain.condense)
excess_of_mass = jit(plain.excess_of_mass)
merge_below = jit(plain.merge_below)
selected_ancestors = jit(plain.selected_ancestors)
subtree_minima = jit(plain.subtree_minima)
