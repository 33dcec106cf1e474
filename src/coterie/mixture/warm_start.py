"""Fits of `GaussianMixture` that start from components of other fits."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie.families import forms
from coterie.mixture.gaussian_em import Components, GaussianEM
from coterie.mixture.gaussian_mixture import GaussianMixture


def fit_from(mixture: GaussianMixture, model: GaussianEM, components: Components, X: Any, w: Any) -> GaussianMixture:
    """Fit `mixture` from these components of `model`; its `warm_start` stays as it is."""
    warm_start = mixture.warm_start
    mixture._fitted_model, mixture._components = model, components
    return mixture.set_params(warm_start=True).fit(X, sample_weight=w).set_params(warm_start=warm_start)


def em_of(mixture: GaussianMixture) -> tuple[GaussianEM, Components]:
    """The model and the components of a fitted mixture."""
    return mixture._fitted_model, mixture._components


def em_objective(mixture: GaussianMixture) -> float:
    """The value that EM has minimised: the negative log-likelihood plus penalties."""
    stats: Any = mixture._state.seen
    objective, exponent = float(mixture._fitted_model.objective(mixture._components, stats)), mixture._scale.weights
    if any(mixture._scale):  # the statistics are those of divided rows
        objective += float(stats.log_likelihood) - float(np.ldexp(mixture.log_likelihood_, -exponent))
    return float(np.ldexp(objective, exponent))


def fit_with_copies(estimator: GaussianMixture, smaller: GaussianMixture, k: int, offset: float, X: Any, w: Any) -> Any:
    """Fit from the components of `smaller` and copies of the largest, shifted by `offset` standard deviations."""
    model, c = em_of(smaller)
    weights, means, covariances = c.weights, c.means, c.covariances
    while len(weights) < k:
        matrices = forms.dense(model.form, covariances, *means.shape)
        j = int(np.argmax(weights)) if offset else _least_penalised(matrices, model.penalty.floor)
        variance, axes = np.linalg.eigh(matrices[j])
        step = offset * np.sqrt(variance[-1]) * axes[:, -1]
        weights = np.append(weights, weights[j] / 2)
        weights[j] /= 2
        means = np.concatenate([means, means[j : j + 1] + step])
        means[j] -= step
        if model.form != "tied":
            covariances = np.concatenate([covariances, covariances[j : j + 1]])
    components = model.components(weights, means, covariances, c.orientation)
    larger = clone(estimator).set_params(n_components=k)
    return fit_from(larger, replace(model, n_components=k), components, X, w)


def _least_penalised(matrices: np.ndarray, floor: np.ndarray) -> int:
    precision = np.diagonal(np.linalg.inv(matrices), axis1=1, axis2=2)
    return int(np.argmin(precision @ floor))
