"""K-means and its variants."""

from coterie.core.lazy import attach

__all__ = [
    "BalancedKMeans",
    "BisectingKMeans",
    "FuzzyCMeans",
    "KMeans",
    "KMedians",
    "KernelKMeans",
    "MiniBatchKMeans",
    "SphericalKMeans",
    "TimeSeriesKMeans",
    "k_means",
    "kmeans_plusplus",
]
_FUNCTIONS = dict.fromkeys(["k_means", "kmeans_plusplus"], "coterie.kmeans.kmeans_functions")

__getattr__ = attach("coterie.kmeans", dict.fromkeys(__all__, "coterie") | _FUNCTIONS)
