"""Clustering: K-means and its family, in one consistent place, at the speed of the hardware."""

from coterie.algorithms import ESTIMATORS
from coterie.core.lazy import attach

__version__ = "0.1.0"

_HOME = {
    **ESTIMATORS,
    "Job": "coterie.jobs",
    "choose_k": "coterie.selection.choose_k",
    "diagnose": "coterie.diagnosis",
    "explain": "coterie.explanation",
    "export": "coterie.exports",
    "load": "coterie.persistence",
    "make_report": "coterie.jobs.html_report",
    "save": "coterie.persistence",
}

__all__ = ["__version__", *_HOME]

_MODULES = (
    "datasets",
    "density",
    "diagnosis",
    "distances",
    "engines",
    "errors",
    "explanation",
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
