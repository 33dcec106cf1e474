"""The base class of estimators with centers."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from coterie.base.estimator import Estimator
from coterie.core.scale import LENGTHS, SQUARES, Powers, multiplied
from coterie.data import opened
from coterie.data.tensors import is_on_device

CENTERS_STORED: dict[str, Any] = {"cluster_centers_": "real K D", "labels_": "index<K *"}


def powers_of_fit(objective: str, powers: Powers, centers: Powers = LENGTHS) -> dict[str, Powers]:
    """Powers of the fitted attributes of an estimator with centers, whose `objective` has these `powers`."""
    return {"cluster_centers_": centers, objective: powers, "history_": powers}


CENTERS = powers_of_fit("inertia_", SQUARES)  # of K-means


@dataclass(eq=False, repr=False)
class Partitional(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """Base class of estimators with centers, which return labels and distances to centers.

    The fields of the dataclass are the options that all of them have; a subclass adds its own. Estimators are compared
    by identity, and shown by scikit-learn.
    """

    n_clusters: Any = 8
    _: KW_ONLY
    init: Any = "auto"
    n_init: int | str = "auto"
    max_iter: int = 300
    tol: float = 1e-4
    engine: Any = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    callback: Any = None
    verbose: int = 0

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weight of each row; None means 1 for all.

        Returns
        -------
        array of shape (n,)
            The attribute `labels_`.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit, and return the distance of every row to every center.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : ignored
        **options
            Other arguments of `fit`, such as `sample_weight`.

        Returns
        -------
        array of shape (n, K)
        """
        return super().fit_transform(X if is_on_device(X) else opened(X), y, **options)

    def transform(self, X: Any) -> Any:
        """Compute the distance of every row to every center.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows with the same columns as in `fit`.

        Returns
        -------
        array of shape (n, K)
        """
        return self._map(X, "distances")

    _objective: ClassVar[str] = "inertia_"  # fitted attribute that holds the objective

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the negative objective of `X`: larger is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows with the same columns as in `fit`.
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weight of each row; None means 1 for all.

        Returns
        -------
        float
        """
        model, stats = self._sum(X, sample_weight)
        name = self._objective
        objective = {name: model.objective(self._params, stats)}
        return -multiplied(objective, self._powers or {}, self._scale_of(sample_weight))[name]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
