"""Density-based clustering: clusters of any shape, separated by regions with few rows."""

from coterie.algorithms import estimators_of
from coterie.core.lazy import attach

_HOME = {**estimators_of(__name__), "CondensedTree": "coterie.density.condensed_tree"}

__all__ = [*_HOME]

__getattr__ = attach(__name__, _HOME)
