"""Clustering: K-means and its family, in one consistent place, at the speed of the hardware."""

from __future__ import annotations

from coterie.core.lazy import attach

__version__ = "0.1.0"

_HOME = {
    "AgglomerativeClustering": "coterie.hierarchy.agglomerative",
    "BalancedKMeans": "coterie.kmeans.balanced_kmeans",
    "BayesianGaussianMixture": "coterie.mixture.bayesian_mixture",
    "BisectingKMeans": "coterie.kmeans.bisecting_kmeans",
    "DivisiveClustering": "coterie.hierarchy.divisive",
    "FuzzyCMeans": "coterie.kmeans.fuzzy_c_means",
    "GaussianMixture": "coterie.mixture.gaussian_mixture",
    "KMeans": "coterie.kmeans.kmeans",
    "KMedians": "coterie.kmeans.kmedians",
    "KMedoids": "coterie.medoids.kmedoids",
    "KernelKMeans": "coterie.kmeans.kernel_kmeans",
    "MiniBatchKMeans": "coterie.kmeans.minibatch_kmeans",
    "Mixture": "coterie.mixture.family_mixture",
    "SphericalKMeans": "coterie.kmeans.spherical_kmeans",
    "TimeSeriesKMeans": "coterie.kmeans.time_series_kmeans",
    "choose_k": "coterie.selection.choose_k",
    "diagnose": "coterie.diagnosis",
    "load": "coterie.persistence",
    "save": "coterie.persistence",
}

__all__ = [
    "AgglomerativeClustering",
    "BalancedKMeans",
    "BayesianGaussianMixture",
    "BisectingKMeans",
    "DivisiveClustering",
    "FuzzyCMeans",
    "GaussianMixture",
    "KMeans",
    "KMedians",
    "KMedoids",
    "KernelKMeans",
    "MiniBatchKMeans",
    "Mixture",
    "SphericalKMeans",
    "TimeSeriesKMeans",
    "__version__",
    "choose_k",
    "diagnose",
    "load",
    "save",
]


_MODULES = (
    "datasets",
    "diagnosis",
    "distances",
    "engines",
    "errors",
    "families",
    "hierarchy",
    "kmeans",
    "medoids",
    "metrics",
    "mixture",
    "persistence",
    "plots",
    "seeding",
    "selection",
    "traces",
)

__getattr__ = attach("coterie", _HOME, _MODULES)


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
