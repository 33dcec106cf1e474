"""Mixture models fitted by EM and variational Bayes."""

from coterie.algorithms import estimators_of
from coterie.core.lazy import attach
from coterie.families.normal_prior import Prior

_HOME = estimators_of(__name__)

__all__ = ["Prior", *_HOME]

__getattr__ = attach(__name__, _HOME)
