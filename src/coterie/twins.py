"""The same model in scikit-learn, where it has one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie.core.errors import ParameterError

INSTEAD = {
    "AgglomerativeClustering": "its own cannot predict; children_ and distances_ mean the same in both",
    "BisectingKMeans": "its own keeps the tree out of reach; KMeans has a twin",
    "Mixture": "it has Gaussian components alone; GaussianMixture has a twin",
}


class HasTwin:
    """An estimator that scikit-learn may have, too."""

    def to_sklearn(self) -> Any:
        """The fitted estimator of scikit-learn that gives the same answers, for tools that know nothing of coterie.

        `KMeans`, `MiniBatchKMeans`, `GaussianMixture` and `BayesianGaussianMixture` have one; what scikit-learn cannot
        say (14 covariance structures, priors) is in the numbers, not in the options, so that a new fit may differ.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        name = type(self).__name__
        if name not in TWINS:
            why = INSTEAD.get(name, f"it has no {name}")
            raise ParameterError(
                f"{name} has no twin in scikit-learn: {why}. coterie.save(model, path) keeps a model of any kind"
            )
        twin = TWINS[name](self)
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(twin, attribute, getattr(self, attribute))
        return twin


def kmeans(model: Any) -> Any:
    from sklearn.cluster import KMeans

    if model.metric_weights is not None:
        raise ParameterError(
            "KMeans with metric_weights has no twin in scikit-learn, whose columns all weigh the same: fit rows whose "
            "columns are multiplied by the roots of the weights"
        )
    twin = _with_options(KMeans, model, "n_clusters", "max_iter", "tol")
    return _with_centers(twin, model, twin.fit, "n_iter_")


def minibatch(model: Any) -> Any:
    from sklearn.cluster import MiniBatchKMeans

    names = ("n_clusters", "max_iter", "tol", "batch_size", "max_no_improvement", "init_size", "reassignment_ratio")
    twin = _with_options(MiniBatchKMeans, model, *names)
    _with_centers(twin, model, twin.partial_fit, "n_iter_", "n_steps_")
    twin._counts = model.counts_.astype(model.cluster_centers_.dtype)  # what partial_fit goes on from
    return twin


def gaussian_mixture(model: Any) -> Any:
    from sklearn.mixture import GaussianMixture

    twin = _with_options(GaussianMixture, model, "n_components", "tol", "reg_covar", "max_iter", "n_init")
    twin.covariance_type = model._model().form
    return _with_components(twin, model)


def bayesian_mixture(model: Any) -> Any:
    from sklearn.mixture import BayesianGaussianMixture

    names = (
        "n_components", "covariance_type", "tol", "reg_covar", "max_iter", "n_init", "weight_concentration_prior_type",
        "weight_concentration_prior", "mean_precision_prior", "mean_prior", "degrees_of_freedom_prior",
        "covariance_prior",
    )  # fmt: skip
    twin = _with_options(BayesianGaussianMixture, model, *names)
    found = ("weight_concentration_", "mean_precision_", "degrees_of_freedom_")
    priors = ("weight_concentration_prior_", "mean_precision_prior_", "mean_prior_", "degrees_of_freedom_prior_")
    return _with_components(twin, model, *found, *priors, "covariance_prior_")


TWINS: dict[str, Callable[[Any], Any]] = {
    "BayesianGaussianMixture": bayesian_mixture,
    "GaussianMixture": gaussian_mixture,
    "KMeans": kmeans,
    "MiniBatchKMeans": minibatch,
}


def _with_options(kind: type, model: Any, *names: str) -> Any:
    """Its options where they mean the same."""
    seed = model.random_state
    shared = {name: getattr(model, name) for name in names}
    return kind(**shared, random_state=seed if isinstance(seed, int | np.random.RandomState) else None)


def _with_centers(twin: Any, model: Any, learn: Callable[..., Any], *names: str) -> Any:
    """Fitted to the centers themselves, so that it has all that its version keeps; then with what the model found."""
    centers = model.cluster_centers_
    options = twin.get_params()
    twin.set_params(init=centers, n_init=1, n_clusters=len(centers), max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of centers that are equal
        learn(centers)
    twin.set_params(**options)
    return _given(twin, model, "cluster_centers_", "labels_", "inertia_", *names)


def _with_components(twin: Any, model: Any, *names: str) -> Any:
    shared = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")
    return _given(twin, model, *shared, "converged_", "n_iter_", "lower_bound_", *names)


def _given(twin: Any, model: Any, *names: str) -> Any:
    for name in names:
        value = getattr(model, name)
        setattr(twin, name, value.copy() if isinstance(value, np.ndarray) else value)
    return twin
