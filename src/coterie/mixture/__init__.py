"""Mixture models fitted by EM and variational Bayes."""

from coterie.core.lazy import attach
from coterie.families.normal_prior import Prior

__all__ = ["BayesianGaussianMixture", "GaussianMixture", "Mixture", "Prior"]

__getattr__ = attach("coterie.mixture", dict.fromkeys(__all__[:3], "coterie"))
