"""Base classes of the estimators: they implement the scikit-learn API with a source, an engine and a model."""

from coterie.base.callbacks import callbacks
from coterie.base.distance_estimator import DistanceEstimator, ObjectEstimator, Objects
from coterie.base.estimator import Estimator, in_memory
from coterie.base.partitional import CENTERS, CENTERS_STORED, Partitional, powers_of_fit
from coterie.data.summary import Summary, summarize

__all__ = [
    "CENTERS", "CENTERS_STORED", "DistanceEstimator", "Estimator", "ObjectEstimator", "Objects",
    "Partitional", "Summary", "callbacks", "in_memory", "powers_of_fit", "summarize",
]  # fmt: skip
