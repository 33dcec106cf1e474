"""K-medoids: clusters whose centers are rows, with any distance."""

from coterie.core.lazy import attach

__all__ = ["KMedoids"]

__getattr__ = attach("coterie.medoids", dict.fromkeys(__all__, "coterie"))
