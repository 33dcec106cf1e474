"""K-means and its variants."""

from coterie.algorithms import estimators_of
from coterie.core.lazy import attach

_HOME = estimators_of(__name__) | dict.fromkeys(["k_means", "kmeans_plusplus"], "coterie.kmeans.kmeans_functions")

__all__ = [*_HOME]

__getattr__ = attach(__name__, _HOME)
