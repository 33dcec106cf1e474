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
]

__getattr__ = attach("coterie.kmeans", dict.fromkeys(__all__, "coterie"))
