"""The clusters of a fitted estimator, from what it stores: sizes, and the columns in which centers differ."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.families.structures import as_structure
from coterie.report.formatting import number

TRAITS = 3  # maximum number of columns for each cluster
SMALL = 0.05  # columns with a smaller share of the squared distance between a center and the mean are left out
ROUNDING = 1e-12  # values below this share of the largest one in their column are rounding errors
OBJECTIVES = {"inertia_": "inertia", "objective_": "objective", "lower_bound_": "lower bound"}


@dataclass(frozen=True)
class FittedClusters:
    """The clusters of a fitted estimator."""

    facts: list[str]  # number of clusters, rows, objective, iterations
    shares: list[float]  # (k,) of the rows; for mixtures their weights
    sizes: list[int] | None  # (k,) rows; None if the labels are not stored
    traits: list[list[tuple[str, float, float]]] | None  # for each cluster: column, value of the center, mean

    @property
    def k(self) -> int:
        return len(self.shares)


def fitted_clusters(model: Any) -> FittedClusters | None:
    """The clusters of `model`; None if it is not fitted, or stores neither labels nor weights of clusters."""
    labels, weights, centers = _labels(model), getattr(model, "weights_", None), _centers(model)
    if labels is None and weights is None:
        return None
    k = max(0 if centers is None else len(centers), 0 if weights is None else len(weights))
    sizes = None if labels is None else np.bincount(labels[labels >= 0], minlength=k)
    shares = _shares(sizes, weights)
    has_centers = centers is not None and len(centers) == len(shares) > 1 and centers.shape[1] > 0
    return FittedClusters(
        facts=_facts(model, len(shares), labels),
        shares=shares.tolist(),
        sizes=None if sizes is None else sizes.tolist(),
        traits=_traits(model, centers, shares) if has_centers else None,
    )


def _labels(model: Any) -> Array | None:
    """The labels of the fit, if they are in memory."""
    labels = getattr(model, "labels_", None)
    is_stored = isinstance(labels, np.ndarray) and labels.ndim == 1 and len(labels) and labels.dtype.kind in "iu"
    return labels if is_stored else None


def _centers(model: Any) -> Any:
    """Centers or means of shape (k, d); None if the model has none, or if they are series."""
    for name in ("cluster_centers_", "means_"):
        centers = getattr(model, name, None)
        if isinstance(centers, np.ndarray) and centers.ndim == 2 and np.isfinite(centers).all():
            return centers.astype(np.float64)
    return None


def _shares(sizes: Array | None, weights: Any) -> Array:
    shares = np.asarray(sizes if weights is None else weights, dtype=np.float64)
    total = shares.sum()
    return shares / total if total > 0 else shares


def _facts(model: Any, k: int, labels: Array | None) -> list[str]:
    facts = [count(k, "component" if hasattr(model, "weights_") else "cluster")]
    facts += [] if labels is None else [count(len(labels))]
    noise = 0 if labels is None else int(np.count_nonzero(labels < 0))
    facts += [f"{noise:,} in no cluster"] if noise else []
    values = {name: getattr(model, key, None) for key, name in OBJECTIVES.items()}
    facts += [f"{name} {number(float(value))}" for name, value in values.items() if isinstance(value, Real)][:1]
    if (n_iter := getattr(model, "n_iter_", None)) is not None:
        state = "converged after" if getattr(model, "converged_", True) else "not converged after"
        facts.append(f"{state} {count(int(n_iter), 'iteration')}")
    return facts


def _traits(model: Any, centers: Array, shares: Array) -> list[list[tuple[str, float, float]]]:
    """The columns with the largest shares of the squared distance between each center and the mean of all.

    Distances are those of the fit: in the units of X, or in standard deviations for mixtures, whose covariances adapt
    to the units.
    """
    centers = np.where(np.abs(centers) < ROUNDING * np.abs(centers).max(axis=0), 0.0, centers)
    mean = shares @ centers
    mean[np.abs(mean) < ROUNDING * np.abs(centers).max(axis=0)] = 0.0
    squares = (centers - mean) ** 2
    variance = _variance(model, shares)
    if variance is not None:
        variance = variance + shares @ squares
        squares = np.divide(squares, variance, out=np.zeros_like(squares), where=variance > 0)
    names = [str(name) for name in getattr(model, "feature_names_in_", range(centers.shape[1]))]
    names = names if hasattr(model, "feature_names_in_") else [f"x{name}" for name in names]
    traits = []
    for center, square in zip(centers, squares, strict=True):
        order = np.argsort(-square, kind="stable")[:TRAITS]
        large = [j for j in order.tolist() if square[j] > SMALL * square.sum()]
        traits.append([(names[j], float(center[j]), float(mean[j])) for j in large])
    return traits


def _variance(model: Any, shares: Array) -> Any:
    """Mean variance of the columns within the components of a Gaussian mixture (d,); None for other models."""
    covariances = getattr(model, "covariances_", None)
    if not isinstance(covariances, np.ndarray) or not hasattr(model, "covariance_type"):
        return None
    form = as_structure(model.covariance_type).form
    if form == "full":
        return shares @ np.diagonal(covariances, axis1=1, axis2=2)
    if form == "tied":
        return np.diagonal(covariances)
    return shares @ covariances
