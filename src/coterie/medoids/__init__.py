"""K-medoids: clusters whose centers are rows, with any distance."""

from coterie.algorithms import estimators_of
from coterie.core.lazy import attach

_HOME = estimators_of(__name__)

__all__ = [*_HOME]

__getattr__ = attach(__name__, _HOME)
