"""All public estimator classes: tests that run over them include every class that is added later."""

from __future__ import annotations

from inspect import signature

from sklearn.base import BaseEstimator

import coterie

_OBJECTS = [getattr(coterie, name) for name in sorted(coterie.__all__)]
CLASSES = [each for each in _OBJECTS if isinstance(each, type) and issubclass(each, BaseEstimator)]


def seeded(kind, number=3, **options):
    """An estimator of that class with `number` clusters or components and a fixed random state."""
    known = signature(kind).parameters
    counts = [name for name in ("n_clusters", "n_components") if name in known]
    options = {counts[0]: number, **options} if counts else options
    return kind(**options, **({"random_state": 0} if "random_state" in known else {}))
