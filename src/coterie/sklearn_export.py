"""Convert fitted estimators to the equivalent estimators of scikit-learn."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie.errors import ParameterError

# Estimators whose namesake in scikit-learn is not equivalent, or that need another explanation.
REASONS = {
    "AgglomerativeClustering": "scikit-learn's cannot predict; children_ and distances_ mean the same in both",
    "BisectingKMeans": "scikit-learn's does not expose its tree; KMeans can be converted",
    "Mixture": "scikit-learn has only Gaussian components; GaussianMixture can be converted",
}


class SklearnExport:
    """Mixin that adds `to_sklearn` to estimators."""

    def to_sklearn(self) -> Any:
        """Return an equivalent fitted estimator of scikit-learn, for tools that do not support coterie.

        `KMeans`, `MiniBatchKMeans`, `GaussianMixture` and `BayesianGaussianMixture` can be converted. The new estimator
        gives the same predictions. Options that scikit-learn does not have, such as 14 covariance structures and
        priors, are reflected in its fitted attributes only: fitting it again can give another result.

        Returns
        -------
        estimator
            Fitted estimator of `sklearn.cluster` or `sklearn.mixture`.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        name = type(self).__name__
        if name not in CONVERTERS:
            reason = REASONS.get(name, f"it has no {name}")
            raise ParameterError(
                f"{name} has no equivalent in scikit-learn: {reason}. Use coterie.save(model, path) to store the model"
            )
        exported = CONVERTERS[name](self)
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(exported, attribute, getattr(self, attribute))
        return exported


def kmeans(model: Any) -> Any:
    from sklearn.cluster import KMeans

    if model.metric_weights is not None:
        raise ParameterError(
            "KMeans with metric_weights has no equivalent in scikit-learn, which does not support weights of columns: "
            "multiply the columns by the square roots of the weights, and fit without metric_weights"
        )
    exported = _with_options(KMeans, model, "n_clusters", "max_iter", "tol")
    return _with_centers(exported, model, exported.fit, "n_iter_")


def minibatch(model: Any) -> Any:
    from sklearn.cluster import MiniBatchKMeans

    names = ("n_clusters", "max_iter", "tol", "batch_size", "max_no_improvement", "init_size", "reassignment_ratio")
    exported = _with_options(MiniBatchKMeans, model, *names)
    _with_centers(exported, model, exported.partial_fit, "n_iter_", "n_steps_")
    exported._counts = model.counts_.astype(model.cluster_centers_.dtype)  # the state that partial_fit continues from
    return exported


def gaussian_mixture(model: Any) -> Any:
    from sklearn.mixture import GaussianMixture

    exported = _with_options(GaussianMixture, model, "n_components", "tol", "reg_covar", "max_iter", "n_init")
    exported.covariance_type = model._model().form
    return _with_components(exported, model)


def bayesian_mixture(model: Any) -> Any:
    from sklearn.mixture import BayesianGaussianMixture

    names = (
        "n_components", "covariance_type", "tol", "reg_covar", "max_iter", "n_init", "weight_concentration_prior_type",
        "weight_concentration_prior", "mean_precision_prior", "mean_prior", "degrees_of_freedom_prior",
        "covariance_prior",
    )  # fmt: skip
    exported = _with_options(BayesianGaussianMixture, model, *names)
    posteriors = ("weight_concentration_", "mean_precision_", "degrees_of_freedom_")
    priors = ("weight_concentration_prior_", "mean_precision_prior_", "mean_prior_", "degrees_of_freedom_prior_")
    return _with_components(exported, model, *posteriors, *priors, "covariance_prior_")


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "BayesianGaussianMixture": bayesian_mixture,
    "GaussianMixture": gaussian_mixture,
    "KMeans": kmeans,
    "MiniBatchKMeans": minibatch,
}


def _with_options(kind: type, model: Any, *names: str) -> Any:
    """A new estimator with those options of the model that mean the same in scikit-learn."""
    seed = model.random_state
    options = {name: getattr(model, name) for name in names}
    return kind(**options, random_state=seed if isinstance(seed, int | np.random.RandomState) else None)


def _with_centers(exported: Any, model: Any, fit: Callable[..., Any], *names: str) -> Any:
    """Fit to the centers, which sets all attributes of this version of scikit-learn; then copy those of the model."""
    centers = model.cluster_centers_
    options = exported.get_params()
    exported.set_params(init=centers, n_init=1, n_clusters=len(centers), max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # raised if some centers are equal
        fit(centers)
    exported.set_params(**options)
    return _with_attributes(exported, model, "cluster_centers_", "labels_", "inertia_", *names)


def _with_components(exported: Any, model: Any, *names: str) -> Any:
    shared = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")
    exported.lower_bounds_ = list(getattr(model, "lower_bounds_", ()))  # `partial_fit` has none
    return _with_attributes(exported, model, *shared, "converged_", "n_iter_", "lower_bound_", *names)


def _with_attributes(exported: Any, model: Any, *names: str) -> Any:
    for name in names:
        value = getattr(model, name)
        setattr(exported, name, value.copy() if isinstance(value, np.ndarray) else value)
    return exported
